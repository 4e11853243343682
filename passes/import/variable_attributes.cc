#include "passes/import/variable_attributes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "core/program_print.h"

namespace interp {
namespace {

// The slots that an op has for the value of an attribute; null: none.
struct AttrSlots {
  const SlotDef* tensor = nullptr;  // all of it
  const SlotDef* list = nullptr;    // one number an argument
  bool empty() const { return tensor == nullptr && list == nullptr; }
};

AttrSlots FindAttrSlots(const OpDef& def, absl::string_view attr) {
  AttrSlots found;
  for (const SlotDef& slot : def.inputs) {
    if (slot.attr != attr) continue;
    ((slot.flags & kVariadic) != 0 ? found.list : found.tensor) = &slot;
  }
  return found;
}

bool IsVariableAttr(const Attr& attr) {
  return std::holds_alternative<VarName>(attr.value) ||
         std::holds_alternative<VarNames>(attr.value);
}

// The slot with the variables of the attribute as arguments.
absl::StatusOr<Slot> VariableSlot(const Program& program, const AttrSlots& slots,
                                  const Attr& attr) {
  const auto* const one = std::get_if<VarName>(&attr.value);
  const std::vector<std::string> names =
      one != nullptr ? std::vector<std::string>{one->name} : std::get<VarNames>(attr.value).names;
  const bool listed = slots.tensor == nullptr || (one == nullptr && slots.list != nullptr);
  Slot slot;
  slot.name = std::string((listed ? slots.list : slots.tensor)->name);
  if (names.empty()) {
    return InvalidArgument("attribute '", attr.name, "' is a list of no variables");
  }
  for (const std::string& name : names) {
    if (name == kEmptyVarName) {
      return InvalidArgument("attribute '", attr.name, "' is the variable '", name,
                             "', which stands for none");
    }
    slot.args.push_back(program.Find(name));
    if (slot.args.back() < 0) {
      return InvalidArgument("attribute '", attr.name, "' is the variable '", name,
                             "', which the program does not have");
    }
  }
  return slot;
}

// `forward` is the definition of the op or, of a gradient, that of the op it is the gradient of:
// gradients have slots of the same names where they have a use for them.
absl::Status BindAttributes(const Program& program, const OpDef& def, const OpDef& forward,
                            Op& op) {
  std::vector<Attr> kept;
  for (Attr& attr : op.attrs) {
    const AttrSlots slots = IsVariableAttr(attr) ? FindAttrSlots(forward, attr.name) : AttrSlots();
    if (slots.empty()) {
      kept.push_back(std::move(attr));
      continue;
    }
    INTERP_ASSIGN_OR_RETURN(Slot slot, VariableSlot(program, slots, attr));
    if (def.InputIndex(slot.name) < 0) continue;  // a gradient that has no use for it
    // Of two forms of a value, ops differ in which they take.
    std::erase_if(op.inputs, [&](const Slot& old) {
      return (slots.tensor != nullptr && old.name == slots.tensor->name) ||
             (slots.list != nullptr && old.name == slots.list->name);
    });
    op.inputs.push_back(std::move(slot));
  }
  op.attrs = std::move(kept);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> BindVariableAttributes(Program program, const PassContext& context) {
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    std::vector<Op>& ops = program.blocks[b].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      Op& op = ops[i];
      if (std::none_of(op.attrs.begin(), op.attrs.end(), IsVariableAttr)) continue;
      const OpDef* const def = context.ops.Find(op.type);
      if (def == nullptr) continue;
      const OpDef* const forward = context.ops.Find(absl::StripSuffix(op.type, "_grad"));
      const absl::Status bound =
          BindAttributes(program, *def, forward != nullptr ? *forward : *def, op);
      if (!bound.ok()) return Annotate(bound, DescribeOp(program, b, i));
    }
  }
  return program;
}

}  // namespace interp
