// PackedConstants: the parameters of a compiled program, and what is computed of them before or in
// a first run: packed and transformed weights, folded constants, casts. A plan file keeps them
// (plan_file/plan_file.h), so that a process maps them and computes nothing of that.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/op_def.h"
#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/plan/plan.h"

namespace interp {

// A value of SharedConstants (core/op_context.h) as tensors.
struct PackedEntry {
  // The number of an instruction and kPackedArraysKey with the kernel's key: PackedArrays. -1 -
  // block and a VarId: that constant's copy. -1 - block and kFoldedKey: folded constants.
  int32_t instruction = 0;
  uint64_t key = 0;
  std::vector<VarId> vars = {};  // of folded constants, by tensor
  std::vector<Tensor> tensors = {};
  // XXH64, seed 1, of the bytes of each tensor. They are compared when the value is first asked
  // for, so that what no run needs is not even read from the disk.
  std::vector<uint64_t> checksums = {};
};

// No VarId: the key of all folded constants of a block.
inline constexpr uint64_t kFoldedKey = std::numeric_limits<uint64_t>::max();

// Immutable once a core has it. Memory of the tensors is that of the file, and never written to.
struct PackedConstants {
  // What the entries were computed by (MachineFingerprint); other machines compute their own.
  std::string machine = {};
  std::vector<NamedTensor> parameters = {};        // sorted by name
  std::vector<uint64_t> parameter_checksums = {};  // as those of entries; by parameter
  std::vector<PackedEntry> entries = {};           // sorted by instruction, then key; no two alike
};

// The processor and the build of interp that run this. Packed weights of another may be laid out
// otherwise.
const std::string& MachineFingerprint();

// XXH64, seed 1, of a tensor's elements as they lie in memory.
uint64_t ChecksumOf(const Tensor& tensor);

// DataLoss for a parameter whose checksum differs, of those that instructions of the plans read for
// want of a packed form. What a kernel reads only when it is to run another shape is not looked at.
absl::Status CheckReadParameters(absl::Span<const Plan> plans, const PackedConstants& packed);

// InvalidArgument unless the entry can be a value of these plans: instruction, variables, places,
// dtypes and layouts fit. Sizes of PackedArrays are for the kernels to check.
absl::Status CheckPackedEntry(absl::Span<const Plan> plans, const PackedEntry& entry);

}  // namespace interp
