// Gradients of ops that reduce dimensions.
#pragma once

#include <utility>
#include <vector>

#include "kernels/math/reduction.h"
#include "kernels/util/broadcast.h"
#include "kernels/util/data_or_null.h"

namespace interp {

// The slots come first that DimsOf reads.
namespace reduction_grad {
inline constexpr int kX = 0;
inline constexpr int kOut = 3;
inline constexpr int kOutGrad = 4;
inline constexpr int kXGrad = 0;
}  // namespace reduction_grad

// Definition of a gradient op with these slots, and no attributes but ReductionAttrs. `x_flags` and
// `out_flags` say how X and Out are used.
OpDef ReductionGradDef(absl::string_view type, int x_flags, int out_flags,
                       std::vector<KernelDef> kernels);

// Output: shape and LoD of X. Out@GRAD fits its reduction.
absl::Status InferReductionGrad(InferContext& ctx);

// The loops over X@GRAD and a tensor that lies in memory as Out does.
absl::StatusOr<BroadcastPlan> PlanReductionGrad(const KernelContext& ctx);

// What elements of X meet: two numbers per output, made from Out and Out@GRAD.
template <typename T>
struct PerOutput {
  T a, b;
};

// X@GRAD[i] = op(X[i], a, b) with the PerOutput {a, b} = prepare(o) of its output o.
template <typename T, typename Prepare, typename Op>
absl::Status MapReductionGrad(KernelContext& ctx, const Prepare& prepare, const Op& op) {
  INTERP_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanReductionGrad(ctx));
  const int64_t outputs = ctx.input(reduction_grad::kOutGrad).numel();
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(outputs) * sizeof(PerOutput<T>)));
  auto* const prepared = work.data<PerOutput<T>>();
  for (int64_t o = 0; o < outputs; ++o) prepared[o] = prepare(o);
  const T* x = ctx.input(reduction_grad::kX).data<T>();
  T* x_grad = ctx.output(reduction_grad::kXGrad).mutable_data<T>();
  ForEachPiece(plan, ctx.num_threads(), static_cast<const PerOutput<T>*>(prepared),
               [=](int64_t begin, int64_t n, const PerOutput<T>* values) {
                 for (int64_t i = 0; i < n; ++i) {
                   x_grad[begin + i] = op(x[begin + i], values[i].a, values[i].b);
                 }
               });
  return absl::OkStatus();
}

// X@GRAD = op(X, Out, Out@GRAD); without Out, 0 in its place.
template <typename T, typename Op>
absl::Status RunReductionGrad(KernelContext& ctx, const Op& op) {
  const Tensor* out = ctx.optional_input(reduction_grad::kOut);
  const T* outs = DataOrNull<T>(out);
  const T* grads = ctx.input(reduction_grad::kOutGrad).data<T>();
  const auto prepare = [=](int64_t o) {
    return PerOutput<T>{outs != nullptr ? outs[o] : T{0}, grads[o]};
  };
  return MapReductionGrad<T>(ctx, prepare, op);
}

template <typename Op, typename T>
absl::Status ReductionGrad(KernelContext& ctx) {
  return RunReductionGrad<T>(ctx, Op());
}

template <typename Op>
std::vector<KernelDef> ReductionGradKernels() {
  return {{DType::kFloat32, ReductionGrad<Op, float>},
          {DType::kFloat64, ReductionGrad<Op, double>}};
}

}  // namespace interp
