// Dataset: samples in memory, ready to be cut into batches.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/plan/plan.h"

namespace interp {

// One array per feed, in the order of the feeds; the first dimension counts samples.
struct Dataset {
  std::vector<NamedTensor> arrays;
  int64_t num_samples = 0;
};

// Brings `arrays` into the order, dtypes and sample shapes that `feeds` declare: arrays that no
// feed names are left out, integers and floats are converted, and samples of as many elements as
// declared are reshaped ([n,28,28] to [n,1,28,28]). Bytes that become floats are divided by 255.
// Errors: NotFound for a feed without array; InvalidArgument for arrays of different lengths, for
// samples of another size, and for values that the dtype does not hold.
absl::StatusOr<Dataset> FitDataset(const std::vector<NamedTensor>& arrays,
                                   const std::vector<FeedSpec>& feeds);

}  // namespace interp
