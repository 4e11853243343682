#include "passes/import/fused_products.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/attr_reader.h"
#include "core/edit_op.h"
#include "passes/fresh_var.h"
#include "passes/make_op.h"

namespace interp {
namespace {

constexpr absl::string_view kResidual = "ResidualData";
constexpr absl::string_view kScale = "fused_output_scale";
constexpr absl::string_view kActivation = "fuse_activation";
constexpr absl::string_view kFcActivation = "activation_type";
constexpr absl::string_view kLists[] = {
    "fused_reshape_X",   "fused_transpose_X",   "fused_reshape_Y",     "fused_transpose_Y",
    "fused_reshape_Out", "fused_transpose_Out", "fused_reshape2_shape"};

const Slot* Residual(const Op& op) {
  const Slot* const slot = op.FindInput(kResidual);
  return slot == nullptr || slot->args.empty() ? nullptr : slot;
}

// Whether the op is one that is taken apart. Attributes of the wrong type count.
bool IsSplit(const Op& op) {
  if (op.type != "fc" && op.type != "fused_matmul") return false;
  AttrReader attrs(op);
  const bool lists = std::any_of(std::begin(kLists), std::end(kLists),
                                 [&](absl::string_view name) { return !attrs.Ints(name).empty(); });
  return lists || attrs.Float(kScale, 1) != 1 || Residual(op) != nullptr || !attrs.status().ok();
}

void SetInts(Op& op, absl::string_view name, const std::vector<int64_t>& values) {
  SetAttr(op, name, std::vector<int32_t>(values.begin(), values.end()));
}

// Splits one op into `ops`.
class Splitter {
 public:
  Splitter(Program& program, int64_t& next, Op op, std::vector<Op>& ops)
      : program_(program), next_(next), op_(std::move(op)), ops_(ops) {}

  absl::Status Split() {
    AttrReader attrs(op_);
    Slot* const out = OutputSlot();
    if (out == nullptr) return InvalidArgument("'", op_.type, "' has no output 'Out'");
    const VarId result = out->args[0];
    const std::vector<int64_t> out_axes = attrs.Ints("fused_transpose_Out");
    std::vector<int64_t> out_shape = attrs.Ints("fused_reshape_Out");
    if (out_shape.empty()) out_shape = attrs.Ints("fused_reshape2_shape");
    for (Slot& slot : op_.inputs) {
      if (slot.name != "X" && slot.name != "Y") continue;
      const std::string of = slot.name;
      for (VarId& arg : slot.args) {
        arg = Reshaped(arg, attrs.Ints("fused_reshape_" + of));
        arg = Transposed(arg, attrs.Ints("fused_transpose_" + of));
      }
    }
    VarId value = Temporary(result);
    out->args[0] = value;
    value = Finished(attrs, value, result);
    value = Reshaped(Transposed(value, out_axes), out_shape);
    INTERP_RETURN_IF_ERROR(attrs.status());
    Op& last = ops_.back();
    for (Slot& slot : last.outputs) std::replace(slot.args.begin(), slot.args.end(), value, result);
    return absl::OkStatus();
  }

 private:
  Slot* OutputSlot() {
    for (Slot& slot : op_.outputs) {
      if (slot.name == "Out" && slot.args.size() == 1) return &slot;
    }
    return nullptr;
  }

  VarId Temporary(VarId of) {
    return FreshVar(program_, absl::StrCat(program_.NameOf(of), "@FUSED_"), next_);
  }

  VarId Reshaped(VarId from, const std::vector<int64_t>& shape) {
    if (shape.empty()) return from;
    const VarId to = Temporary(from);
    SetInts(ops_.emplace_back(MakeUnaryOp("reshape2", from, to)), "shape", shape);
    return to;
  }

  VarId Transposed(VarId from, const std::vector<int64_t>& axes) {
    if (axes.empty()) return from;
    const VarId to = Temporary(from);
    SetInts(ops_.emplace_back(MakeUnaryOp("transpose2", from, to)), "axis", axes);
    return to;
  }

  // Puts the product there, which gives `value`, and what is done to its result.
  VarId Finished(AttrReader& attrs, VarId value, VarId result) {
    const float scale = attrs.Float(kScale, 1);
    const Slot* const residual = Residual(op_);
    if (residual != nullptr) return WithResidual(attrs, residual->args[0], scale, value, result);
    ops_.push_back(Product(/*keeps_activation=*/true));
    if (scale == 1) return value;
    const VarId scaled = Temporary(result);
    SetAttr(ops_.emplace_back(MakeUnaryOp("scale", value, scaled)), "scale", scale);
    return scaled;
  }

  VarId WithResidual(AttrReader& attrs, VarId residual, float scale, VarId value, VarId result) {
    std::string activation = attrs.String(kActivation, "");
    if (activation.empty()) activation = attrs.String(kFcActivation, "");
    const VarId sum = Temporary(result);
    Op add = MakeOp("fused_elementwise_add", {{"X", {value}}, {"Y", {residual}}}, {{"Out", {sum}}});
    SetAttr(add, kActivation, activation);
    for (const absl::string_view name : {"fuse_alpha", "fuse_beta"}) {
      if (const Attr* const attr = op_.FindAttr(name)) SetAttr(add, name, attr->value);
    }
    SetAttr(add, kScale, scale);
    ops_.push_back(Product(/*keeps_activation=*/false));
    ops_.push_back(std::move(add));
    return sum;
  }

  // The op without what others do now.
  Op Product(bool keeps_activation) const {
    Op op = op_;
    const auto is_residual = [](const Slot& slot) { return slot.name == kResidual; };
    op.inputs.erase(std::remove_if(op.inputs.begin(), op.inputs.end(), is_residual),
                    op.inputs.end());
    for (const absl::string_view name : kLists) {
      if (op.FindAttr(name) != nullptr) SetAttr(op, name, std::vector<int32_t>{});
    }
    if (op.FindAttr(kScale) != nullptr) SetAttr(op, kScale, 1.0F);
    for (const absl::string_view name : {kActivation, kFcActivation}) {
      if (!keeps_activation && op.FindAttr(name) != nullptr) SetAttr(op, name, std::string());
    }
    return op;
  }

  Program& program_;
  int64_t& next_;
  Op op_;
  std::vector<Op>& ops_;
};

}  // namespace

absl::StatusOr<Program> SplitFusedProducts(Program program) {
  int64_t next = 0;
  for (Block& block : program.blocks) {
    if (std::none_of(block.ops.begin(), block.ops.end(), IsSplit)) continue;
    std::vector<Op> ops;
    for (Op& op : block.ops) {
      if (IsSplit(op)) {
        INTERP_RETURN_IF_ERROR(Splitter(program, next, std::move(op), ops).Split());
      } else {
        ops.push_back(std::move(op));
      }
    }
    block.ops = std::move(ops);
  }
  return program;
}

}  // namespace interp
