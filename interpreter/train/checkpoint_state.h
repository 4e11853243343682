// The text in a checkpoint that says where training stands: state.txt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/resource/random_stream.h"
#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/train/batch_loader.h"

namespace interp {

// What a position in the data is relative to: in another order it would mean other samples.
struct DataOrder {
  int64_t num_samples = 0;
  BatchOptions batches = {};  // `ahead` changes no order
};

struct CheckpointState {
  int64_t step = 0;
  DataPosition next;
  DataOrder order;
  RandomState random;
  std::vector<std::string> names;  // of the values beside it, in their order
  // ChecksumOf the rest and the values. Version 2 of the text lacks it.
  std::optional<uint64_t> checksum = std::nullopt;
};

// XXH64 of the lines before the checksum, seed 1, and of the elements of each value in turn, seed
// that of what comes before. REQUIRES: host memory.
uint64_t ChecksumOf(const CheckpointState& state, absl::Span<const NamedTensor> values);

std::string ToText(const CheckpointState& state);
// Errors: DataLoss for text that is cut off or no state; Unimplemented for one of a newer version.
absl::StatusOr<CheckpointState> ParseCheckpointState(const std::string& text);

// InvalidArgument when the next batch of `saved` would be another one in `now`.
absl::Status CheckSameOrder(const DataOrder& saved, const DataOrder& now);

}  // namespace interp
