// SampleSource: what batches are made of, by number.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/train/dataset.h"

namespace interp {

// Thread-safety: Gather from one thread at a time.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual int64_t num_samples() const = 0;
  // The feeds of a batch of these samples, in the order of the program's feeds; new memory each
  // time. `epoch` decides what is random about a sample, with the sample's number and nothing else.
  // A source may leave out samples that are damaged, but not all of them; then the batch is
  // smaller.
  virtual absl::StatusOr<std::vector<Tensor>> Gather(absl::Span<const int64_t> samples,
                                                     int64_t epoch) = 0;
};

// Samples in memory.
std::shared_ptr<SampleSource> SourceOf(std::shared_ptr<const Dataset> dataset);

}  // namespace interp
