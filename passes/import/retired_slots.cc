#include "passes/import/retired_slots.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/each_argument.h"
#include "core/gradient.h"
#include "core/program_print.h"
#include "passes/verify.h"

namespace interp {
namespace {

constexpr absl::string_view kGradientOp = "_grad";

struct RetiredSlot {
  absl::string_view op;
  absl::string_view slot;
};

// What RoisNum and RpnRoisNum say since 2.0; until then the LoD of the boxes said it, too.
constexpr RetiredSlot kRetiredInputs[] = {{"roi_align", "RoisLod"}, {"roi_pool", "RoisLod"}};
constexpr RetiredSlot kRetiredOutputs[] = {{"generate_proposals", "RpnRoisLod"}};

template <size_t n>
bool IsIn(const RetiredSlot (&table)[n], absl::string_view op, absl::string_view slot) {
  return std::any_of(std::begin(table), std::end(table),
                     [&](const RetiredSlot& row) { return row.op == op && row.slot == slot; });
}

// The slots of one op that are to go.
class Retired {
 public:
  Retired(const OpRegistry& ops, absl::string_view type) : type_(type), def_(ops.Find(type)) {
    if (def_ != nullptr && absl::EndsWith(type, kGradientOp)) {
      forward_ = ops.Find(absl::StripSuffix(type, kGradientOp));
    }
  }

  bool Input(const Slot& slot) const {
    if (slot.args.empty() || def_ == nullptr || def_->InputIndex(slot.name) >= 0) return false;
    if (IsIn(kRetiredInputs, type_, slot.name)) return true;
    const absl::string_view name = absl::StripSuffix(slot.name, kGradientSuffix);
    return IsForwardInput(name) || (forward_ != nullptr && forward_->OutputIndex(name) >= 0);
  }

  bool Output(const Slot& slot) const {
    if (slot.args.empty() || def_ == nullptr || def_->OutputIndex(slot.name) >= 0) return false;
    if (IsIn(kRetiredOutputs, type_, slot.name)) return true;
    absl::string_view name = slot.name;
    return absl::ConsumeSuffix(&name, kGradientSuffix) && IsForwardInput(name);
  }

 private:
  bool IsForwardInput(absl::string_view name) const {
    return forward_ != nullptr &&
           (forward_->InputIndex(name) >= 0 || IsIn(kRetiredInputs, forward_->type, name));
  }

  const absl::string_view type_;
  const OpDef* const def_;
  const OpDef* forward_ = nullptr;  // of a gradient op
};

// By VarId: read by an op, fetched or kept from run to run. REQUIRES: VerifyStructure(program).
std::vector<bool> FindNeeded(const Program& program, const PassContext& context) {
  std::vector<bool> needed(program.names.size());
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      for (const VarId id : EachArgument(op.inputs)) needed[id] = true;
    }
    for (const Var& var : block.vars) needed[var.id] = needed[var.id] || var.persistable;
  }
  for (const std::string& name : context.fetches.value_or(std::vector<std::string>())) {
    if (const VarId id = program.Find(name); id >= 0) needed[id] = true;
  }
  if (const VarId empty = program.Find(kEmptyVarName); empty >= 0) needed[empty] = false;
  return needed;
}

// Inputs first: what only they read is needed no more. Whether an op has outputs that are to go.
bool DropInputs(const OpRegistry& ops, Program& program) {
  bool outputs = false;
  for (Block& block : program.blocks) {
    for (Op& op : block.ops) {
      const Retired retired(ops, op.type);
      std::erase_if(op.inputs, [&](const Slot& slot) { return retired.Input(slot); });
      outputs = outputs || std::any_of(op.outputs.begin(), op.outputs.end(),
                                       [&](const Slot& slot) { return retired.Output(slot); });
    }
  }
  return outputs;
}

absl::Status CheckNotNeeded(const Program& program, const std::vector<bool>& needed,
                            const Slot& slot) {
  for (const VarId id : slot.args) {
    if (!needed[id]) continue;
    return Unimplemented("output '", slot.name,
                         "' is one of earlier releases that interp does not compute, but '",
                         program.NameOf(id), "' is read, fetched or persistable");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> DropRetiredSlots(Program program, const PassContext& context) {
  if (!DropInputs(context.ops, program)) return program;
  INTERP_RETURN_IF_ERROR(VerifyStructure(program));
  const std::vector<bool> needed = FindNeeded(program, context);
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    std::vector<Op>& ops = program.blocks[b].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      const Retired retired(context.ops, ops[i].type);
      for (const Slot& slot : ops[i].outputs) {
        if (!retired.Output(slot)) continue;
        const absl::Status unneeded = CheckNotNeeded(program, needed, slot);
        if (!unneeded.ok()) return Annotate(unneeded, DescribeOp(program, b, i));
      }
      std::erase_if(ops[i].outputs, [&](const Slot& slot) { return retired.Output(slot); });
    }
  }
  return program;
}

}  // namespace interp
