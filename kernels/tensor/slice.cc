// slice: Out = the part of Input between `starts` and `ends` (exclusive) along `axes`; dimensions
// in `decrease_axis` have length 1 then and are dropped. Bounds are clipped to the tensor. Of
// arrays it becomes an op of slice_array.cc.
#include "absl/algorithm/container.h"
#include "core/op_def.h"
#include "kernels/tensor/input_gradient.h"
#include "kernels/tensor/kept_strides.h"
#include "kernels/tensor/slice_window.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

using slice::FindWindow;
using slice::kInput;
using slice::SliceAttrs;
using slice::Window;

constexpr int kOut = 0;

absl::Status InferSlice(InferContext& ctx) {
  const SliceAttrs& attrs = ctx.attrs<SliceAttrs>();
  INTERP_ASSIGN_OR_RETURN(const Window window, FindWindow(ctx));
  INTERP_ASSIGN_OR_RETURN(const Shape shape, DropUnitDims(window.size, attrs.decrease_axis));
  ctx.SetShape(kOut, shape);
  const bool cuts_rows = absl::c_linear_search(attrs.axes, 0);
  if (!cuts_rows) ShareLod(ctx.input(kInput), ctx.output(kOut));
  return absl::OkStatus();
}

absl::Status Slice(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const Window window, FindWindow(ctx));
  const Strides from = StridesOf(input);
  INTERP_ASSIGN_OR_RETURN(
      const Strides to,
      StridesWithDropped(out, window.size.rank(), ctx.attrs<SliceAttrs>().decrease_axis));
  int64_t offset = 0;
  CopyDims dims;
  for (int i = 0; i < window.size.rank(); ++i) {
    offset += window.start[i] * from[i];
    dims.push_back({window.size[i], from[i], to[i]});
  }
  return CopyStrided(ctx, dims, {input, offset}, {out});
}

INTERP_REGISTER_OP(OpDef{
    .type = "slice",
    .inputs = slice::Inputs(0),
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SliceAttrs, slice::ReadSliceAttrs>,
    .infer = InferSlice,
    .kernels = MoveKernels(Slice),
    .layout = LayoutRule::kFollows,
    .gradient = InputGradient(slice::Inputs(0)),
});

}  // namespace
}  // namespace interp
