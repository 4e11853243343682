// clip_grad: X@GRAD = Out@GRAD where X lies between the bounds, 0 on them and outside.
#include "kernels/math/clip.h"
#include "kernels/math/unary_grad.h"
#include "kernels/util/gradient_rows.h"
#include "kernels/util/second_gradient_slots.h"

namespace interp {
namespace {

constexpr BoundSlots kBounds = {.min = 3, .max = 4};

absl::Status InferClipGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckBounds(ctx, kBounds));
  return InferUnaryGrad(ctx, unary_grad::kX);
}

template <typename T>
struct PassBetween {
  Bounds<T> bounds;
  T operator()(T x, T grad) const {
    const bool passes = (x > bounds.min) & (x < bounds.max);
    return passes ? grad : T{0};
  }
};

template <typename T>
absl::Status ClipGrad(KernelContext& ctx) {
  MapUnaryGrad<T>(ctx, unary_grad::kX, PassBetween<T>{BoundsOf<T>(ctx, kBounds)});
  return absl::OkStatus();
}

OpDef ClipGradDef() {
  OpDef def = PlainUnaryGradDef("clip_grad", unary_grad::kX,
                                GradientRows([]<typename T>() -> KernelFn { return ClipGrad<T>; }));
  def.inputs.push_back({"Min", kOptional});
  def.inputs.push_back({"Max", kOptional});
  def.parse = ParseAttrs<ClipAttrs, ClipAttrs::Read>;
  def.infer = InferClipGrad;
  return def;
}

constexpr SecondGradient kClipSecond = {.type = "clip_double_grad",
                                        .values = {{{"X", "X"}, {"Min", "Min"}, {"Max", "Max"}}},
                                        .incoming = {{{"grad_x@GRAD", "X@GRAD"}}},
                                        .results = {{{"grad_out@GRAD", "Out@GRAD"}}}};

INTERP_REGISTER_OP(WithSecond<kClipSecond>(ClipGradDef()));

}  // namespace
}  // namespace interp
