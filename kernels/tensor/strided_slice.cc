// strided_slice: Out = every `strides`-th element of Input from `starts` to `ends` (exclusive)
// along `axes`; dimensions in `decrease_axis` have length 1 then and are dropped. When every
// dimension is dropped, Out keeps the shape [1].
#include "core/op_def.h"
#include "kernels/tensor/input_gradient.h"
#include "kernels/tensor/kept_strides.h"
#include "kernels/tensor/strided_window.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

using strided_slice::FindWindow;
using strided_slice::kInput;
using strided_slice::StridedSliceAttrs;
using strided_slice::Window;

constexpr int kOut = 0;

absl::Status InferStridedSlice(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Window window, FindWindow(ctx));
  INTERP_ASSIGN_OR_RETURN(Shape shape,
                          DropUnitDims(window.size, ctx.attrs<StridedSliceAttrs>().decrease_axis));
  if (shape.rank() == 0 && window.size.rank() > 0) shape.push_back(1);
  ctx.SetShape(kOut, shape);
  ShareLod(ctx.input(kInput), ctx.output(kOut));
  return absl::OkStatus();
}

absl::Status StridedSlice(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const Window window, FindWindow(ctx));
  const Strides from = StridesOf(input);
  INTERP_ASSIGN_OR_RETURN(
      const Strides to,
      StridesWithDropped(out, window.size.rank(), ctx.attrs<StridedSliceAttrs>().decrease_axis));
  int64_t offset = 0;
  CopyDims dims;
  for (int i = 0; i < window.size.rank(); ++i) {
    offset += window.along[i].first * from[i];
    dims.push_back({window.size[i], window.along[i].step * from[i], to[i]});
  }
  return CopyStrided(ctx, dims, {input, offset}, {out});
}

INTERP_REGISTER_OP(OpDef{
    .type = "strided_slice",
    .inputs = strided_slice::Inputs(0),
    .outputs = {{"Out"}},
    .parse = ParseAttrs<StridedSliceAttrs, strided_slice::ReadStridedSliceAttrs>,
    .infer = InferStridedSlice,
    .kernels = MoveKernels(StridedSlice),
    .layout = LayoutRule::kFollows,
    .gradient = InputGradient(strided_slice::Inputs(0)),
});

}  // namespace
}  // namespace interp
