// strided_slice_grad: Input@GRAD = Out@GRAD where the slice was taken, 0 elsewhere.
#include "core/op_def.h"
#include "kernels/tensor/input_gradient.h"
#include "kernels/tensor/strided_window.h"
#include "kernels/util/data_mover.h"

namespace interp {
namespace {

using strided_slice::FindWindow;
using strided_slice::kInput;
using strided_slice::kOutGrad;
using strided_slice::Progression;
using strided_slice::StridedSliceAttrs;
using strided_slice::Window;

constexpr int kInputGrad = 0;

DType GradientDType(const DTypeContext& ctx) { return ctx.input(kOutGrad); }

absl::Status InferStridedSliceGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Window window, FindWindow(ctx));
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          DropUnitDims(window.size, ctx.attrs<StridedSliceAttrs>().decrease_axis));
  const Shape& given = ctx.input(kOutGrad).shape;
  if (!(given == shape) && !(shape.rank() == 0 && given == Shape{1})) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(given), ", expected ",
                           ToString(shape));
  }
  ctx.ShareShape(kInput, kInputGrad);
  return absl::OkStatus();
}

// Copies need ascending destinations, so dimensions taken from the back are turned on both sides.
absl::Status StridedSliceGrad(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(kOutGrad);
  Tensor& input_grad = ctx.output(kInputGrad);
  INTERP_ASSIGN_OR_RETURN(const Window window, FindWindow(ctx));
  INTERP_RETURN_IF_ERROR(FillZero(ctx, input_grad));
  if (out_grad.numel() == 0) return absl::OkStatus();
  const Strides from = StridesOf(window.size, out_grad.layout);
  const Strides to = StridesOf(input_grad);
  int64_t source = 0;
  int64_t target = 0;
  CopyDims dims;
  for (int i = 0; i < window.size.rank(); ++i) {
    const Progression& along = window.along[i];
    const int64_t last = window.size[i] - 1;
    if (along.step > 0) {
      target += along.first * to[i];
      dims.push_back({window.size[i], from[i], along.step * to[i]});
    } else {
      source += last * from[i];
      target += (along.first + last * along.step) * to[i];
      dims.push_back({window.size[i], -from[i], -along.step * to[i]});
    }
  }
  return CopyStrided(ctx, dims, {out_grad, source}, {input_grad, target});
}

INTERP_REGISTER_OP(OpDef{
    .type = "strided_slice_grad",
    .inputs = WithOutGrad(strided_slice::Inputs(kNoNeedBuffer | kAnyDType | kAnyLayout),
                          /*gradient_flags=*/0),
    .outputs = {{"Input@GRAD"}},
    .parse = ParseAttrs<StridedSliceAttrs, strided_slice::ReadStridedSliceAttrs>,
    .kernel_dtype = GradientDType,
    .infer = InferStridedSliceGrad,
    .kernels = MoveKernels(StridedSliceGrad),
});

}  // namespace
}  // namespace interp
