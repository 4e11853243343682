// Gradients of ops of one tensor: X@GRAD[i] = op(V[i], Out@GRAD[i]) for V = X or Out.
//
// A gradient is a struct as in unary.h, whose call operator takes two numbers and which says what V
// is. Attributes are a base that it shares with its function:
//
//   struct LeakyReluGrad : LeakyReluAttrs {
//     static constexpr UnaryGradient kKind = UnaryGradient::kOfX;
//     template <typename T>
//     T operator()(T x, T grad) const { return x < 0 ? grad * static_cast<T>(alpha) : grad; }
//   };
//   INTERP_REGISTER_OP(UnaryGradDef<LeakyReluGrad>("leaky_relu_grad"));
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/math/unary.h"

namespace interp {

// X and Out are slots of all these ops, since older programs fill in both.
namespace unary_grad {
inline constexpr int kX = 0;
inline constexpr int kOut = 1;
inline constexpr int kOutGrad = 2;
inline constexpr int kXGrad = 0;

inline constexpr int SlotOf(UnaryGradient kind) {
  return kind == UnaryGradient::kOfOut ? kOut : kind == UnaryGradient::kZero ? kOutGrad : kX;
}
}  // namespace unary_grad

// Output: shape and LoD of `slot`, which Out@GRAD fits.
absl::Status InferUnaryGrad(InferContext& ctx, int slot);

// A definition without attributes whose kernels read slot `slot`, or no value where that is
// Out@GRAD.
OpDef PlainUnaryGradDef(absl::string_view type, int slot, std::vector<KernelDef> kernels);

// X@GRAD = op(value, Out@GRAD). The pragma allows X@GRAD to be either.
template <typename T, typename Op>
void MapUnaryGrad(KernelContext& ctx, int slot, const Op& op) {
  const T* value = ctx.input(slot).data<T>();
  const T* grad = ctx.input(unary_grad::kOutGrad).data<T>();
  T* out = ctx.output(unary_grad::kXGrad).mutable_data<T>();
  const int64_t n = ctx.output(unary_grad::kXGrad).numel();
  using C = ComputeType<T>;
  ParallelFor(ctx.num_threads(), n, kElementwiseGrain, [=](int64_t begin, int64_t end) {
    const Op local = op;  // its members stay in registers: `out` cannot alias them
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      out[i] = local(static_cast<C>(value[i]), static_cast<C>(grad[i]));
    }
  });
}

// X@GRAD = row(value, Out@GRAD) for floats, of which row(value, grad, out, n) takes n that lie in
// one piece.
template <typename Row>
void MapUnaryGradRows(KernelContext& ctx, int slot, const Row& row) {
  const float* value = ctx.input(slot).data<float>();
  const float* grad = ctx.input(unary_grad::kOutGrad).data<float>();
  float* out = ctx.output(unary_grad::kXGrad).mutable_data<float>();
  ParallelFor(ctx.num_threads(), ctx.output(unary_grad::kXGrad).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                row(value + begin, grad + begin, out + begin, end - begin);
              });
}

template <typename Op, typename T>
absl::Status UnaryGrad(KernelContext& ctx) {
  constexpr int kSlot = unary_grad::SlotOf(Op::kKind);
  if constexpr (std::is_empty_v<Op>) {
    MapUnaryGrad<T>(ctx, kSlot, Op());
  } else {
    MapUnaryGrad<T>(ctx, kSlot, ctx.attrs<Op>());
  }
  return absl::OkStatus();
}

template <typename Op>
OpDef UnaryGradDef(absl::string_view type) {
  OpDef def = PlainUnaryGradDef(
      type, unary_grad::SlotOf(Op::kKind),
      {{DType::kFloat32, UnaryGrad<Op, float>}, {DType::kFloat64, UnaryGrad<Op, double>}});
  if constexpr (!std::is_empty_v<Op>) def.parse = ParseAttrs<Op, ReadFunction<Op>>;
  return def;
}

// The same, of integers too.
template <typename Op>
OpDef NumberUnaryGradDef(absl::string_view type) {
  OpDef def = UnaryGradDef<Op>(type);
  def.kernels.push_back({DType::kInt32, UnaryGrad<Op, int32_t>});
  def.kernels.push_back({DType::kInt64, UnaryGrad<Op, int64_t>});
  return def;
}

// The gradient of what ActivationDef defines.
template <typename Op>
OpDef ActivationGradDef(absl::string_view type) {
  OpDef def = UnaryGradDef<Op>(type);
  def.kernels.push_back({DType::kBFloat16, UnaryGrad<Op, bfloat16>});
  return def;
}

}  // namespace interp
