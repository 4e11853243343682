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

// Samples as feeds of a program.
struct Gathered {
  std::vector<Tensor> feeds;  // in the order of the program's feeds; none where no sample is whole
  int64_t num_skipped = 0;    // samples that are damaged and left out
  absl::Status problem;       // of the first of them
};

// Thread-safety: Gather from one thread at a time.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual int64_t num_samples() const = 0;
  // A batch of these samples, in new memory. `epoch` decides what is random about a sample, with
  // the sample's number and nothing else. A source may leave out samples that are damaged; then the
  // batch is smaller.
  virtual absl::StatusOr<Gathered> Gather(absl::Span<const int64_t> samples, int64_t epoch) = 0;
};

// Samples in memory.
std::shared_ptr<SampleSource> SourceOf(std::shared_ptr<const Dataset> dataset);

}  // namespace interp
