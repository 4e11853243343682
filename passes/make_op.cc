#include "passes/make_op.h"

#include <string>

#include "core/edit_op.h"

namespace interp {

Op MakeOp(absl::string_view type, SlotArgs inputs, SlotArgs outputs) {
  Op op;
  op.type = std::string(type);
  for (const auto& [slot, args] : inputs) AddInput(op, slot, args);
  for (const auto& [slot, args] : outputs) AddOutput(op, slot, args);
  return op;
}

Op MakeUnaryOp(absl::string_view type, VarId x, VarId out) {
  return MakeOp(type, {{"X", {x}}}, {{"Out", {out}}});
}

Op MakeBinaryOp(absl::string_view type, VarId x, VarId y, VarId out) {
  Op op = MakeOp(type, {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}});
  SetAttr(op, "axis", int32_t{-1});
  return op;
}

Op MakeScaleOp(VarId x, VarId out, double scale, double bias) {
  Op op = MakeUnaryOp("scale", x, out);
  SetAttr(op, "scale", static_cast<float>(scale));
  SetAttr(op, "bias", static_cast<float>(bias));
  SetAttr(op, "bias_after_scale", true);
  return op;
}

Op MakeCastOp(VarId x, VarId out, DType from, DType to) {
  Op op = MakeUnaryOp("cast", x, out);
  SetAttr(op, "in_dtype", static_cast<int32_t>(from));
  SetAttr(op, "out_dtype", static_cast<int32_t>(to));
  return op;
}

}  // namespace interp
