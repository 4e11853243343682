// slice_grad: Input@GRAD = Out@GRAD where the slice was taken, 0 elsewhere.
#include "core/op_def.h"
#include "kernels/tensor/input_gradient.h"
#include "kernels/tensor/slice_window.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/second_gradient.h"

namespace interp {
namespace {

using slice::FindWindow;
using slice::kInput;
using slice::kOutGrad;
using slice::SliceAttrs;
using slice::Window;

constexpr int kInputGrad = 0;

DType GradientDType(const DTypeContext& ctx) { return ctx.input(kOutGrad); }

absl::Status InferSliceGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Window window, FindWindow(ctx));
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          DropUnitDims(window.size, ctx.attrs<SliceAttrs>().decrease_axis));
  // Paddle gives a slice of all dimensions the shape [1] in older programs, [] in newer ones.
  const Shape& given = ctx.input(kOutGrad).shape;
  if (!(given == shape) && !(shape.rank() == 0 && given == Shape{1})) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(given), ", expected ",
                           ToString(shape));
  }
  ctx.SetShape(kInputGrad, ctx.input(kInput).shape);
  return absl::OkStatus();
}

absl::Status SliceGrad(KernelContext& ctx) {
  const Tensor& out_grad = ctx.input(kOutGrad);
  Tensor& input_grad = ctx.output(kInputGrad);
  INTERP_ASSIGN_OR_RETURN(const Window window, FindWindow(ctx));
  const Strides from = StridesOf(window.size, out_grad.layout);
  const Strides to = StridesOf(input_grad);
  int64_t offset = 0;
  CopyDims dims;
  for (int i = 0; i < window.size.rank(); ++i) {
    offset += window.start[i] * to[i];
    dims.push_back({window.size[i], from[i], to[i]});
  }
  if (!(window.size == input_grad.shape)) INTERP_RETURN_IF_ERROR(FillZero(ctx, input_grad));
  return CopyStrided(ctx, dims, {out_grad}, {input_grad, offset});
}

constexpr SecondGradient kSliceSecond = {.type = "slice",
                                         .values = {{{"StartsTensor", "StartsTensor"},
                                                     {"EndsTensor", "EndsTensor"},
                                                     {"StartsTensorList", "StartsTensorList"},
                                                     {"EndsTensorList", "EndsTensorList"}}},
                                         .incoming = {{{"Input", "Input@GRAD"}}},
                                         .results = {{{"Out", "Out@GRAD"}}}};

INTERP_REGISTER_OP(OpDef{
    .type = "slice_grad",
    .inputs = WithOutGrad(slice::Inputs(kNoNeedBuffer | kAnyDType | kAnyLayout),
                          /*gradient_flags=*/0),
    .outputs = {{"Input@GRAD"}},
    .parse = ParseAttrs<SliceAttrs, slice::ReadSliceAttrs>,
    .kernel_dtype = GradientDType,
    .infer = InferSliceGrad,
    .kernels = MoveKernels(SliceGrad),
    .gradient = {.make = MakeSecondGradient<kSliceSecond>},
});

}  // namespace
}  // namespace interp
