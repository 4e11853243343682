// What an op does to variables beyond what its argument lists show.
#pragma once

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/op_def.h"
#include "core/program.h"

namespace interp {

// A copy of the arguments of all slots; EachArgument goes through them without one.
std::vector<VarId> ArgumentsOf(const std::vector<Slot>& slots);

// Whether an op that lists state uses it and leaves it: attribute is_test without
// trainable_statistics, or use_global_stats.
bool IsInTestMode(const Op& op);

// True when the op leaves `output`, an output of its, as it was: an op in test mode lists state
// such as batch_norm's mean as input and as output, but does not change it. hierarchical_sigmoid
// lists its weights so.
bool LeavesUntouched(const Op& op, VarId output);

// The variables that an op and the blocks that it runs, and theirs, have as inputs, and those that
// they change; the empty name is one of them. What a block changes it may also leave as it was: it
// may not run, or skip what writes it. Linear in arguments: a block counts once.
struct OpUses {
  std::vector<VarId> reads;
  std::vector<VarId> writes;
};
OpUses UsesOf(const Program& program, const Op& op);

// True when kernels of the op may make outputs share memory with inputs in ways that the pairs of
// the definition do not show: tensor arrays, sub-blocks, outputs allocated by the kernel, and ops
// without definition (null).
bool MaySecretlyShare(const Op& op, const OpDef* def);

// What single ops of the block have as input and as output. An op that runs a block has everything
// that the block overwrites as both, where its slots name it.
absl::flat_hash_set<VarId> UpdatedInPlace(const Block& block);

// Whether an input slot is read at all: kNoNeedBuffer slots give shape and dtype only.
bool ReadsMemory(const OpDef* def, const Slot& slot);

}  // namespace interp
