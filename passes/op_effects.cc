#include "passes/op_effects.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/strip.h"
#include "core/attr_reader.h"
#include "core/each_argument.h"
#include "core/sub_blocks.h"

namespace interp {
namespace {

// Old programs have INT where new ones have BOOLEAN.
bool IsTrue(const Op& op, absl::string_view name) { return AttrReader(op).Bool(name, false); }

bool Names(const Slot& slot, VarId id) { return absl::c_linear_search(slot.args, id); }

// State is listed as Mean and MeanOut, or as InScale and OutScale. Y over X, or Out, is a result.
bool IsState(absl::string_view input, absl::string_view output) {
  if (absl::ConsumeSuffix(&output, "Out")) return !output.empty() && input == output;
  return absl::ConsumePrefix(&output, "Out") && absl::ConsumePrefix(&input, "In") &&
         !output.empty() && input == output;
}

// Whether all that the op has the variable for, as an output, is state.
bool IsOnlyState(const Op& op, VarId id) {
  return std::all_of(op.outputs.begin(), op.outputs.end(), [&](const Slot& output) {
    return !Names(output, id) ||
           std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Slot& input) {
             return Names(input, id) && IsState(input.name, output.name);
           });
  });
}

void AddOwnUses(const Op& op, OpUses& uses) {
  for (const Slot& slot : op.inputs) {
    uses.reads.insert(uses.reads.end(), slot.args.begin(), slot.args.end());
  }
  for (const VarId id : EachArgument(op.outputs)) {
    if (!LeavesUntouched(op, id)) uses.writes.push_back(id);
  }
}

bool AnyTensorArray(const std::vector<SlotDef>& slots) {
  return std::any_of(slots.begin(), slots.end(),
                     [](const SlotDef& slot) { return (slot.flags & kTensorArray) != 0; });
}

}  // namespace

std::vector<VarId> ArgumentsOf(const std::vector<Slot>& slots) {
  std::vector<VarId> args;
  for (const Slot& slot : slots) args.insert(args.end(), slot.args.begin(), slot.args.end());
  return args;
}

bool IsInTestMode(const Op& op) {
  const bool test = IsTrue(op, "is_test") && !IsTrue(op, "trainable_statistics");
  return test || IsTrue(op, "use_global_stats");
}

bool LeavesUntouched(const Op& op, VarId output) {
  if (op.type == "hierarchical_sigmoid") return HasArgument(op.inputs, output);
  return IsInTestMode(op) && HasArgument(op.inputs, output) && IsOnlyState(op, output) &&
         !HasSubBlock(op);
}

OpUses UsesOf(const Program& program, const Op& op) {
  OpUses uses;
  AddOwnUses(op, uses);
  if (!HasSubBlock(op)) return uses;
  absl::flat_hash_set<int32_t> seen;  // ops of nested blocks may run one block many times
  std::vector<int32_t> left;
  // Programs that nobody has verified yet may name blocks that they do not have.
  const auto add = [&](int32_t block) {
    const bool there = block >= 0 && block < std::ssize(program.blocks);
    if (there && seen.insert(block).second) left.push_back(block);
  };
  ForEachSubBlock(op, add);
  while (!left.empty()) {
    const int32_t block = left.back();
    left.pop_back();
    for (const Op& inner : program.blocks[block].ops) {
      AddOwnUses(inner, uses);
      ForEachSubBlock(inner, add);
    }
  }
  return uses;
}

bool MaySecretlyShare(const Op& op, const OpDef* def) {
  return def == nullptr || def->dynamic_outputs || AnyTensorArray(def->inputs) ||
         AnyTensorArray(def->outputs) || HasSubBlock(op);
}

bool ReadsMemory(const OpDef* def, const Slot& slot) {
  if (def == nullptr) return true;
  const int position = def->InputIndex(slot.name);
  return position < 0 || (def->inputs[position].flags & kNoNeedBuffer) == 0;
}

absl::flat_hash_set<VarId> UpdatedInPlace(const Block& block) {
  absl::flat_hash_set<VarId> updated;
  for (const Op& op : block.ops) {
    absl::flat_hash_set<VarId> inputs;
    for (const Slot& slot : op.inputs) inputs.insert(slot.args.begin(), slot.args.end());
    for (const VarId var : EachArgument(op.outputs)) {
      if (inputs.contains(var)) updated.insert(var);
    }
  }
  return updated;
}

}  // namespace interp
