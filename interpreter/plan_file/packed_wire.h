// Packed constants as messages, with their tensors in the data behind the message of a plan file.
// Private to this folder.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/buffer.h"
#include "core/status.h"
#include "interpreter/compile/compiled_program.h"
#include "interpreter/plan_file/plan_wire.h"

namespace interp {

// Where the data begin in a file: mapped pages hold nothing else.
inline constexpr uint64_t kPackedDataAlignment = 4096;

// A tensor and where it lies in the data.
using PlacedTensor = std::pair<uint64_t, Tensor>;

// Fills an empty `to` and returns the tensors in the order in which they lie. InvalidArgument for
// one that is not on the host or has a LoD.
absl::StatusOr<std::vector<PlacedTensor>> EncodePacked(const PackedConstants& packed,
                                                       proto::plan::Packed& to);

// What lies in a file.
struct PackedData {
  BufferRef file;
  size_t begin = 0;  // of the data in it
  size_t size_bytes = 0;
};

// Reads `from`, which may hold anything, with tensors in `data`. InvalidArgument where it does not
// fit `compiled` or the data. Values of packed entries are not looked at.
absl::StatusOr<std::shared_ptr<const PackedConstants>> DecodePacked(
    const proto::plan::Packed& from, const PackedData& data, const CompiledProgram& compiled);

}  // namespace interp
