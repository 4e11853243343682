// fill_any_like: Out = attribute `value` in the shape of X; attribute `dtype` -1 means that of X.
// fill_zeros_like, fill_zeros_like2: the same with 0. fill_any: the same in the dtype of X, which
// programs write over; its gradient is 0.
#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/infer_like.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kValueTensor = 1;
constexpr int kOut = 0;

struct FillLikeAttrs {
  float value = 0;
  DType dtype = DType::kUndefined;  // kUndefined: that of X
};

FillLikeAttrs ReadFillLikeAttrs(AttrReader& reader) {
  return {reader.Float("value", 0.0f), reader.Type("dtype", DType::kUndefined)};
}

DType FillLikeDType(const DTypeContext& ctx) {
  const DType dtype = ctx.attrs<FillLikeAttrs>().dtype;
  return dtype == DType::kUndefined ? ctx.input(kX) : dtype;
}

absl::Status FillLike(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  const ScalarBytes value = ToScalarBytes(out.dtype, ctx.attrs<FillLikeAttrs>().value);
  return FillElements(ctx, value, out);
}

// The value may be a tensor.
absl::Status FillLikeValue(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const ScalarBytes value,
                          ReadScalar(ctx, kValueTensor, "value", out.dtype,
                                     ToScalarBytes(out.dtype, ctx.attrs<FillLikeAttrs>().value)));
  return FillElements(ctx, value, out);
}

OpDef FillLikeDef(absl::string_view type, absl::string_view input = "X",
                  absl::string_view output = "Out") {
  return OpDef{
      .type = type,
      .inputs = {{input, kNoNeedBuffer | kAnyDType | kAnyLayout}},
      .outputs = {{output}},
      .parse = ParseAttrs<FillLikeAttrs, ReadFillLikeAttrs>,
      .kernel_dtype = FillLikeDType,
      .infer = InferLike<kX, kOut>,
      .kernels = MoveKernels(FillLike),
      .layout = LayoutRule::kFollows,
      .gradient = {.none = true},
  };
}

OpDef FillLikeValueDef(absl::string_view type) {
  OpDef def = FillLikeDef(type);
  def.inputs.push_back({"ValueTensor", kOptional | kAnyDType | kHostInput, "value"});
  def.kernels = MoveKernels(FillLikeValue);
  return def;
}

OpDef FillAnyDef() {
  OpDef def = FillLikeValueDef("fill_any");
  def.gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}};
  return def;
}

// The value is that of the forward op, which has no part in the gradient.
FillLikeAttrs NoAttrs(AttrReader& /*reader*/) { return {}; }

OpDef FillAnyGradDef() {
  OpDef def = FillLikeDef("fill_any_grad", "Out@GRAD", "X@GRAD");
  def.parse = ParseAttrs<FillLikeAttrs, NoAttrs>;
  return def;
}

INTERP_REGISTER_OP(FillLikeValueDef("fill_any_like"));
INTERP_REGISTER_OP(FillAnyDef());
INTERP_REGISTER_OP(FillAnyGradDef());
INTERP_REGISTER_OP(FillLikeDef("fill_zeros_like"));
INTERP_REGISTER_OP(FillLikeDef("fill_zeros_like2"));

}  // namespace
}  // namespace interp
