// clip: Out = X brought into [min, max]. The tensors Min and Max win over the attributes. Of
// selected rows, those of the same row are added up first.
#include <limits>

#include "kernels/math/unary.h"

namespace interp {
namespace {

using unary::kOut;
using unary::kX;
constexpr int kMin = 1;
constexpr int kMax = 2;

struct ClipAttrs {
  double min, max;
};

ClipAttrs ReadClipAttrs(AttrReader& attrs) {
  return {attrs.Double("min", std::numeric_limits<float>::lowest()),
          attrs.Double("max", std::numeric_limits<float>::max())};
}

absl::Status InferClip(InferContext& ctx) {
  for (const int slot : {kMin, kMax}) {
    const Tensor* bound = ctx.optional_input(slot);
    if (bound != nullptr && bound->numel() != 1) {
      return InvalidArgument("input '", slot == kMin ? "Min" : "Max", "' is ", DescribeType(*bound),
                             ", expected one element");
    }
  }
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
  using C = ComputeType<T>;
  const ClipAttrs& attrs = ctx.attrs<ClipAttrs>();
  const auto bound = [&](int slot, double attr) {
    const Tensor* tensor = ctx.optional_input(slot);
    return tensor != nullptr ? static_cast<C>(*tensor->data<T>()) : Saturate<C>(attr);
  };
  const ClipTo<C> clip{bound(kMin, attrs.min), bound(kMax, attrs.max)};
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
    .parse = ParseAttrs<ClipAttrs, ReadClipAttrs>,
    .infer = InferClip,
    .kernels = {{DType::kFloat32, Clip<float>},
                {DType::kFloat64, Clip<double>},
                {DType::kFloat16, Clip<float16>},
                {DType::kInt32, Clip<int32_t>},
                {DType::kInt64, Clip<int64_t>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}},
});

}  // namespace
}  // namespace interp
