// SplitBatch: the shares of a batch that replicas compute.
#pragma once

#include <vector>

#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/plan/plan.h"

namespace interp {

struct BatchShare {
  std::vector<Tensor> feeds;  // share the batch's memory
  int64_t num_samples = 0;
};

// Cuts `batch` into up to `count` shares, in order and as even as can be: the first ones have one
// sample more where it does not divide. A batch of fewer samples than `count` gives fewer shares.
//
// Feeds whose declared first dim is open hold samples and are cut; all others go to every share
// whole. Of a feed with a LoD samples are the sequences of its first level. Errors: InvalidArgument
// where no feed holds samples, for feeds of different numbers of them, for an empty batch and for a
// LoD that does not fit.
absl::StatusOr<std::vector<BatchShare>> SplitBatch(absl::Span<const Tensor> batch,
                                                   absl::Span<const FeedSpec> feeds, int count);

}  // namespace interp
