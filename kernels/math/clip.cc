// clip: Out = X brought into [min, max]. The tensors Min and Max win over the attributes. Of
// selected rows, those of the same row are added up first.
#include "kernels/math/clip.h"

#include "kernels/math/unary.h"

namespace interp {
namespace {

using unary::kOut;
using unary::kX;
constexpr BoundSlots kBounds = {.min = 1, .max = 2};

absl::Status InferClip(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckBounds(ctx, kBounds));
  return InferUnary(ctx);
}

template <typename T>
struct ClipTo {
  T min, max;
  T operator()(T x) const {
    x = x < min ? min : x;
    return x > max ? max : x;
  }
};

template <typename T>
absl::Status ClipRows(KernelContext& ctx, const ClipTo<ComputeType<T>>& clip) {
  Variable& out = ctx.output_variable(kOut);
  INTERP_RETURN_IF_ERROR(MergeRows(ctx, ctx.input_variable(kX), out));
  MapInPlace<T>(ctx.num_threads(), out.tensor, clip);
  return absl::OkStatus();
}

template <typename T>
absl::Status Clip(KernelContext& ctx) {
  const Bounds<ComputeType<T>> bounds = BoundsOf<T>(ctx, kBounds);
  const ClipTo<ComputeType<T>> clip{bounds.min, bounds.max};
  if (clip.min > clip.max) {
    return InvalidArgument("min is ", clip.min, " and max is ", clip.max,
                           ", expected min to be at most max");
  }
  INTERP_ASSIGN_OR_RETURN(const bool rows, AreRows(ctx, kX, kOut));
  if (rows) return ClipRows<T>(ctx, clip);
  MapUnary<T, T>(ctx, clip);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "clip",
    .inputs = {{"X", kMayBeRows}, {"Min", kOptional}, {"Max", kOptional}},
    .outputs = {{"Out", kMayBeRows}},
    .parse = ParseAttrs<ClipAttrs, ClipAttrs::Read>,
    .infer = InferClip,
    .kernels = {{DType::kFloat32, Clip<float>},
                {DType::kFloat64, Clip<double>},
                {DType::kFloat16, Clip<float16>},
                {DType::kInt32, Clip<int32_t>},
                {DType::kInt64, Clip<int64_t>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"X", "Min", "Max", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
