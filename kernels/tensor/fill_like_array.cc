// fill_any_like_array: what fill_any_like is of tensor arrays (passes/import/array_ops.h). Out has
// a tensor of zeros for each element of X. Gradients of arrays that nothing makes begin so; the
// value is 0.
#include "core/op_def.h"
#include "kernels/control_flow/gradient_values.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct FillLikeArrayAttrs {
  DType dtype = DType::kUndefined;  // kUndefined: those of the elements
};

FillLikeArrayAttrs ReadFillLikeArrayAttrs(AttrReader& reader) {
  if (reader.Float("value", 0.0F) != 0.0F) {
    reader.Fail("attribute 'value' for an array is to be 0");
  }
  return {reader.Type("dtype", DType::kUndefined)};
}

absl::Status FillLikeArray(KernelContext& ctx) {
  const DType dtype = ctx.attrs<FillLikeArrayAttrs>().dtype;
  for (const Tensor& element : ctx.input_array(kX)) {
    if (dtype == DType::kUndefined || element.dtype == dtype) continue;
    return InvalidArgument("attribute 'dtype' is ", Name(dtype), " for an array of ",
                           Name(element.dtype), ", expected -1 or the same");
  }
  return control_flow::FillZerosLike(ctx, ctx.input_variable(kX), ctx.output_variable(kOut));
}

INTERP_REGISTER_OP(OpDef{
    .type = "fill_any_like_array",
    .inputs = {{"X", kTensorArray}},
    .outputs = {{"Out", kTensorArray}},
    .parse = ParseAttrs<FillLikeArrayAttrs, ReadFillLikeArrayAttrs>,
    .kernels = {{DType::kUndefined, FillLikeArray}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
