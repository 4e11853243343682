// fill_any_like: Out = attribute `value` in the shape of X; attribute `dtype` -1 means that of X.
// fill_zeros_like, fill_zeros_like2: the same with 0.
#include "core/op_def.h"
#include "kernels/util/scalar_bytes.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kX = 0;
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

absl::Status InferFillLike(InferContext& ctx) {
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status FillLike(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  const ScalarBytes value = ToScalarBytes(out.dtype, ctx.attrs<FillLikeAttrs>().value);
  FillElements(ctx.num_threads(), SizeOf(out.dtype), value.bytes.data(), out.mutable_raw_data(),
               out.numel());
  return absl::OkStatus();
}

OpDef FillLikeDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kNoNeedBuffer | kAnyDType | kAnyLayout}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<FillLikeAttrs, ReadFillLikeAttrs>,
      .kernel_dtype = FillLikeDType,
      .infer = InferFillLike,
      .kernels = {{DType::kUndefined, FillLike}},
      .layout = LayoutRule::kFollows,
      .gradient = {.none = true},
  };
}

INTERP_REGISTER_OP(FillLikeDef("fill_any_like"));
INTERP_REGISTER_OP(FillLikeDef("fill_zeros_like"));
INTERP_REGISTER_OP(FillLikeDef("fill_zeros_like2"));

}  // namespace
}  // namespace interp
