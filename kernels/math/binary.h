// Ops of two tensors, element by element, with broadcasting: out = op(X, Y).
//
// A function is a struct with a call operator for two values of the type to compute in:
//
//   struct Add {
//     template <typename T>
//     T operator()(T a, T b) const { return WrapAdd(a, b); }
//   };
#pragma once

#include <utility>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/broadcast.h"

namespace interp {

namespace binary {
inline constexpr int kX = 0;
inline constexpr int kY = 1;
inline constexpr int kOut = 0;
}  // namespace binary

struct BinaryAttrs {
  int axis = kTrailingAxis;
};

// Reads `axis`. Attributes of fused and quantised forms are refused unless they do nothing.
BinaryAttrs ReadBinaryAttrs(AttrReader& attrs);

// Output: the broadcast shape, the LoD of X.
absl::Status InferBinary(InferContext& ctx);

// What most gradients of such ops take and give.
GradientDef BinaryGradient();

// Definitions from kernels: Out has the dtype of the operands, and may be written over one...
OpDef ArithmeticDef(absl::string_view type, std::vector<KernelDef> kernels, GradientDef gradient);
// ... or is bool; nothing has a gradient.
OpDef PredicateDef(absl::string_view type, std::vector<KernelDef> kernels);

// The operands of one call and how to walk them.
struct BinaryOperands {
  const Tensor* x = nullptr;
  const Tensor* y = nullptr;
  BroadcastPlan plan;
  Tensor copy;  // of an operand whose memory the output would overwrite too early
};
absl::Status PrepareOperands(KernelContext& ctx, BinaryOperands& operands);

// Kernel of function Op on tensors of T with a result of R.
template <typename Op, typename T, typename R = T>
absl::Status Binary(KernelContext& ctx) {
  BinaryOperands in;
  INTERP_RETURN_IF_ERROR(PrepareOperands(ctx, in));
  RunBroadcast(in.plan, ctx.num_threads(), in.x->data<T>(), in.y->data<T>(),
               ctx.output(binary::kOut).mutable_data<R>(), [](T a, T b) {
                 using C = ComputeType<T>;
                 return static_cast<R>(Op()(static_cast<C>(a), static_cast<C>(b)));
               });
  return absl::OkStatus();
}

// Kernel table rows of one function for several dtypes, in and out alike.
template <typename Op, typename... Ts>
std::vector<KernelDef> BinaryKernels() {
  return {{DTypeOf<Ts>, Binary<Op, Ts>}...};
}
// The same with a bool result.
template <typename Op, typename... Ts>
std::vector<KernelDef> PredicateKernels() {
  return {{DTypeOf<Ts>, Binary<Op, Ts, bool>}...};
}

}  // namespace interp
