// Ops of one tensor, element by element: Out[i] = op(X[i]).
//
// A function is a struct with a call operator. Its members are the op's attributes, read once by a
// static `Read`; a struct without members needs none:
//
//   struct LeakyRelu {
//     float alpha;
//     static LeakyRelu Read(AttrReader& attrs) { return {attrs.Float("alpha", 0.02f)}; }
//     template <typename T>
//     T operator()(T x) const { return x > 0 ? x : x * static_cast<T>(alpha); }
//   };
//   INTERP_REGISTER_OP(UnaryDef<LeakyRelu>("leaky_relu", UnaryKernels<LeakyRelu, float, double>(),
//                                          UnaryGradient::kOfX));
//
// Its attributes may also be a base, which the gradient (unary_grad.h) has too. Where there is a
// faster way than the call operator, `void Row(const float* x, float* out, int64_t n) const` does n
// floats that lie in one piece; `out` may be `x`.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/rows.h"

namespace interp {

namespace unary {
inline constexpr int kX = 0;
inline constexpr int kOut = 0;
}  // namespace unary

// What the gradient of a function takes besides Out@GRAD.
enum class UnaryGradient : uint8_t { kOfX, kOfOut, kOfBoth, kZero };
GradientDef ToGradientDef(UnaryGradient kind);

// Output: shape and LoD of X.
absl::Status InferUnary(InferContext& ctx);

// Output: the shape of X. Some of Paddle's ops hand no LoD on.
absl::Status InferUnaryWithoutLod(InferContext& ctx);

// A definition with X, Out, no attributes and no gradient; Out may be written over X.
OpDef PlainUnaryDef(absl::string_view type, std::vector<KernelDef> kernels);

// A function from its attributes.
template <typename Op>
Op ReadFunction(AttrReader& attrs) {
  return Op{Op::Read(attrs)};
}

// The definition of a function that has attributes, or not.
template <typename Op>
OpDef UnaryDef(absl::string_view type, std::vector<KernelDef> kernels, UnaryGradient gradient) {
  OpDef def = PlainUnaryDef(type, std::move(kernels));
  if constexpr (!std::is_empty_v<Op>) def.parse = ParseAttrs<Op, ReadFunction<Op>>;
  def.gradient = ToGradientDef(gradient);
  return def;
}

// The type op() is called with: integers that give floats are converted first.
template <typename T, typename R>
using UnaryArgument =
    std::conditional_t<std::is_integral_v<T> && std::is_floating_point_v<R>, R, ComputeType<T>>;

// Out = op(X) for X of T and Out of R. The pragma allows Out to be X.
template <typename T, typename R, typename Op>
void MapUnary(KernelContext& ctx, const Op& op) {
  const T* x = ctx.input(unary::kX).data<T>();
  R* out = ctx.output(unary::kOut).mutable_data<R>();
  const int64_t n = ctx.output(unary::kOut).numel();
  ParallelFor(ctx.num_threads(), n, kElementwiseGrain, [=](int64_t begin, int64_t end) {
    const Op local = op;  // its members stay in registers: `out` cannot alias them
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      out[i] = static_cast<R>(local(static_cast<UnaryArgument<T, R>>(x[i])));
    }
  });
}

// Out = row(X) for floats, of which row(x, out, n) takes n that lie in one piece.
template <typename Row>
void MapUnaryRows(KernelContext& ctx, const Row& row) {
  const float* x = ctx.input(unary::kX).data<float>();
  float* out = ctx.output(unary::kOut).mutable_data<float>();
  ParallelFor(ctx.num_threads(), ctx.output(unary::kOut).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) { row(x + begin, out + begin, end - begin); });
}

template <typename Op>
concept HasRow = requires(const Op& op, const float* x, float* out) {
  op.Row(x, out, int64_t{});
};

template <typename T, typename R, typename Op>
void MapFunction(KernelContext& ctx, const Op& op) {
  if constexpr (HasRow<Op> && std::is_same_v<T, float> && std::is_same_v<R, float>) {
    MapUnaryRows(ctx, [&op](const float* x, float* out, int64_t n) { op.Row(x, out, n); });
  } else {
    MapUnary<T, R>(ctx, op);
  }
}

template <typename Op, typename T, typename R = T>
absl::Status Unary(KernelContext& ctx) {
  if constexpr (std::is_empty_v<Op>) {
    MapFunction<T, R>(ctx, Op());
  } else {
    MapFunction<T, R>(ctx, ctx.attrs<Op>());
  }
  return absl::OkStatus();
}

// Kernel table rows of one function for several dtypes, in and out alike.
template <typename Op, typename... Ts>
std::vector<KernelDef> UnaryKernels() {
  return {{DTypeOf<Ts>, Unary<Op, Ts>}...};
}

// The same for functions that take selected rows, too, in a definition made by TakingRows.
template <typename Op, typename... Ts>
std::vector<KernelDef> RowsUnaryKernels() {
  return {{DTypeOf<Ts>, WithRows<Unary<Op, Ts>>}...};
}
OpDef TakingRows(OpDef def);

// A function of floats; all of them have these three dtypes.
template <typename Op>
OpDef FloatUnaryDef(absl::string_view type, UnaryGradient gradient) {
  return UnaryDef<Op>(type, UnaryKernels<Op, float, double, float16>(), gradient);
}

// An activation: what networks apply between products, and so of bfloat16 too.
template <typename Op>
OpDef ActivationDef(absl::string_view type, UnaryGradient gradient) {
  return UnaryDef<Op>(type, UnaryKernels<Op, float, double, float16, bfloat16>(), gradient);
}

}  // namespace interp
