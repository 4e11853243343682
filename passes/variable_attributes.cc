#include "passes/variable_attributes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/strip.h"
#include "core/program_print.h"

namespace interp {
namespace {

// Where an op has the value of an attribute as input: one tensor with all of it, or one for each
// number. Gradients have the same slots where they have a use for it.
struct AttrPlace {
  absl::string_view op;
  absl::string_view attr;
  absl::string_view tensor;
  absl::string_view list = "";
};

constexpr AttrPlace kAttrPlaces[] = {
    {"arg_max", "axis", "AxisTensor"},
    {"arg_min", "axis", "AxisTensor"},
    {"bincount", "minlength", "MinLengthTensor"},
    {"conv2d_transpose", "output_size", "OutputSizeTensor", "OutputSizeTensorList"},
    {"conv3d_transpose", "output_size", "OutputSizeTensor", "OutputSizeTensorList"},
    {"cumsum", "axis", "AxisTensor"},
    {"depthwise_conv2d_transpose", "output_size", "OutputSizeTensor", "OutputSizeTensorList"},
    {"eye", "num_rows", "NumRowsTensor"},
    {"eye", "num_columns", "NumColumnsTensor"},
    {"frobenius_norm", "dim", "AxisTensor", "AxisTensorList"},
    {"pad", "pad_value", "PadValueTensor"},
    {"pool2d", "ksize", "KernelSizeTensor", "KernelSizeTensorList"},
    {"reduce_max", "dim", "AxisTensor", "AxisTensorList"},
    {"reduce_mean", "dim", "AxisTensor", "AxisTensorList"},
    {"reduce_min", "dim", "AxisTensor", "AxisTensorList"},
    {"reduce_prod", "dim", "AxisTensor", "AxisTensorList"},
    {"reduce_sum", "dim", "AxisTensor", "AxisTensorList"},
    {"squeeze", "axes", "AxesTensor", "AxesTensorList"},
    {"squeeze2", "axes", "AxesTensor", "AxesTensorList"},
    {"tile", "repeat_times", "RepeatTimes", "repeat_times_tensor"},
};

const AttrPlace* FindAttrPlace(absl::string_view type, absl::string_view attr) {
  const absl::string_view forward = absl::StripSuffix(type, "_grad");
  const auto* const place =
      std::find_if(std::begin(kAttrPlaces), std::end(kAttrPlaces),
                   [&](const AttrPlace& at) { return at.op == forward && at.attr == attr; });
  return place == std::end(kAttrPlaces) ? nullptr : place;
}

bool HasInputSlot(const OpDef& def, absl::string_view name) {
  return std::any_of(def.inputs.begin(), def.inputs.end(),
                     [&](const SlotDef& slot) { return slot.name == name; });
}

bool IsVariableAttr(const Attr& attr) {
  return std::holds_alternative<VarName>(attr.value) ||
         std::holds_alternative<VarNames>(attr.value);
}

// The slot with the variables of the attribute as arguments.
absl::StatusOr<Slot> VariableSlot(const Program& program, const AttrPlace& place,
                                  const Attr& attr) {
  const auto* const one = std::get_if<VarName>(&attr.value);
  const std::vector<std::string> names =
      one != nullptr ? std::vector<std::string>{one->name} : std::get<VarNames>(attr.value).names;
  Slot slot;
  slot.name = std::string(one != nullptr || place.list.empty() ? place.tensor : place.list);
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

absl::Status BindAttributes(const Program& program, const OpDef& def, Op& op) {
  std::vector<Attr> kept;
  for (Attr& attr : op.attrs) {
    const AttrPlace* const place =
        IsVariableAttr(attr) ? FindAttrPlace(op.type, attr.name) : nullptr;
    if (place == nullptr) {
      kept.push_back(std::move(attr));
      continue;
    }
    if (!HasInputSlot(def, place->tensor)) continue;  // a gradient that has no use for it
    INTERP_ASSIGN_OR_RETURN(Slot slot, VariableSlot(program, *place, attr));
    // Of two forms of a value, ops differ in which they take.
    std::erase_if(op.inputs, [&](const Slot& old) {
      return old.name == place->tensor || (!place->list.empty() && old.name == place->list);
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
      const absl::Status bound = BindAttributes(program, *def, op);
      if (!bound.ok()) return Annotate(bound, DescribeOp(program, b, i));
    }
  }
  return program;
}

}  // namespace interp
