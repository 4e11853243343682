#include "interpreter/plan/instruction.h"

#include <algorithm>

namespace interp {
namespace {

// Of hidden arguments: the sub-block takes the variable whatever it holds.
constexpr int kHiddenFlags = kOptional | kVariadic | kAnyDType | kMayBeEmpty;

int SlotOf(const ArgCounts& counts, int arg) {
  int slot = 0;
  for (int end = counts[0]; arg >= end; end += counts[++slot]) {
  }
  return slot;
}

int FlagsOf(const std::vector<SlotDef>& slots, int slot) {
  return slot < static_cast<int>(slots.size()) ? slots[slot].flags : kHiddenFlags;
}

// Where an argument stands: its slot and its position there.
struct Position {
  int slot = 0;
  int index = 0;
};

Position PositionOf(const ArgCounts& counts, int arg) {
  Position at;
  for (; arg >= counts[at.slot]; arg -= counts[at.slot++]) {
  }
  at.index = arg;
  return at;
}

bool Lists(const std::vector<SharePair>& pairs, Position in, Position out) {
  return std::any_of(pairs.begin(), pairs.end(), [&](const SharePair& pair) {
    return pair.input == in.slot && pair.output == out.slot && in.index == out.index &&
           (pair.each || in.index == 0);
  });
}

}  // namespace

absl::string_view Name(QueueKind queue) { return queue == QueueKind::kHost ? "host" : "device"; }

int InputSlotOf(const Instruction& instruction, int arg) {
  return SlotOf(instruction.input_counts, arg);
}

int OutputSlotOf(const Instruction& instruction, int arg) {
  return SlotOf(instruction.output_counts, arg);
}

int InputFlags(const Instruction& instruction, int arg) {
  return FlagsOf(instruction.def->inputs, InputSlotOf(instruction, arg));
}

int OutputFlags(const Instruction& instruction, int arg) {
  return FlagsOf(instruction.def->outputs, OutputSlotOf(instruction, arg));
}

bool TakesDType(const Instruction& instruction, int arg, DType dtype) {
  return instruction.dtype == DType::kUndefined || dtype == instruction.dtype ||
         (InputFlags(instruction, arg) & kAnyDType) != 0;
}

namespace {

bool TakesTensors(const std::vector<SlotDef>& slots) {
  return std::none_of(slots.begin(), slots.end(),
                      [](const SlotDef& slot) { return (slot.flags & kTensorArray) != 0; });
}

}  // namespace

bool CanFold(const Instruction& instruction) {
  const OpDef& def = *instruction.def;
  return !def.side_effect && !def.random && !def.dynamic_outputs && def.sub_block == nullptr &&
         TakesTensors(def.inputs) && TakesTensors(def.outputs) &&
         def.kernels[instruction.kernel].place == PlaceKind::kCpu;
}

bool IsHiddenInput(const Instruction& instruction, int arg) {
  return instruction.sub_block >= 0 &&
         InputSlotOf(instruction, arg) == static_cast<int>(instruction.def->inputs.size());
}

bool TakesInput(const Instruction& instruction, VarId id) {
  for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
    if (instruction.inputs[arg] == id && !IsHiddenInput(instruction, arg)) return true;
  }
  return false;
}

bool IsHiddenOutput(const Instruction& instruction, int arg) {
  return instruction.sub_block >= 0 &&
         OutputSlotOf(instruction, arg) == static_cast<int>(instruction.def->outputs.size());
}

bool IsHostInput(const Instruction& instruction, int arg) {
  return !instruction.place.on_host() &&
         (InputFlags(instruction, arg) & (kHostInput | kValueInInfer)) != 0;
}

bool IsView(const Instruction& instruction, const InplacePair& pair) {
  return Lists(instruction.def->view, PositionOf(instruction.input_counts, pair.input),
               PositionOf(instruction.output_counts, pair.output));
}

bool DeclaresShare(const Instruction& instruction, int in, int out) {
  const Position from = PositionOf(instruction.input_counts, in);
  const Position to = PositionOf(instruction.output_counts, out);
  const bool inplace = instruction.def->kernels[instruction.kernel].inplace;
  return (inplace && Lists(instruction.def->inplace, from, to)) ||
         Lists(instruction.def->view, from, to);
}

}  // namespace interp
