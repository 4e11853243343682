// Gradients of weights: one product over the rows of all steps. That of a bias is SumRows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/op_def.h"
#include "kernels/product/gemm.h"
#include "kernels/product/weight_product.h"
#include "kernels/recurrent/step_order.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/row_sum.h"

namespace interp::recurrent {

// out [inputs, outputs] = x^T grad, of x [rows, inputs] and grad [rows, outputs]
template <typename T>
absl::Status WeightGradient(const KernelContext& ctx, int64_t rows, const T* x, int64_t inputs,
                            const T* grad, int64_t outputs, T* out) {
  const auto gather = [=](int64_t first, int64_t count, T* to) {
    std::copy_n(x + first * inputs, count * inputs, to);
  };
  return nn::WeightProduct<T, decltype(gather)>({rows, inputs, outputs}, gather, grad)
      .Run(ctx, out);
}

// Packs the transpose of `weight` [rows, columns] for GemmPacked.
template <typename T>
absl::StatusOr<Workspace> PackTransposed(const KernelContext& ctx, const T* weight, int64_t rows,
                                         int64_t columns) {
  const auto size = static_cast<size_t>(nn::PackedSize<T>(columns, rows));
  INTERP_ASSIGN_OR_RETURN(Workspace packed, ctx.workspace(size * sizeof(T)));
  nn::PackMatrix(columns, rows, weight, int64_t{1}, columns, packed.data<T>());
  return packed;
}

// Rows of a state, `width` wide, as the sequences of `order` had them before each of their steps.
template <typename T>
struct StatesBefore {
  const StepOrder& order;
  int64_t width = 0;
  const T* states = nullptr;   // behind each step, in the order of the input
  const T* initial = nullptr;  // before step 0, by sequence; null: 0

  // Before step `t` of sorted sequence `position`; null: 0.
  const T* Row(int64_t t, int64_t position) const {
    if (t > 0) return states + order.row(t - 1, position) * width;
    return initial == nullptr ? nullptr : initial + order.sequences[position] * width;
  }
};

// out [inputs, outputs] = sum of (state before)^T grad over batch rows.
template <typename T>
absl::Status RecurrentWeightGradient(const KernelContext& ctx, const StatesBefore<T>& before,
                                     const T* grad, int64_t outputs, T* out) {
  const StepOrder& order = before.order;
  // Batch rows with a state: all, or those after step 0.
  const int64_t first = before.initial != nullptr || order.steps() == 0 ? 0 : order.starts[1];
  std::vector<const T*> states;
  states.reserve(order.starts.back() - first);
  for (int64_t t = before.initial == nullptr ? 1 : 0; t < order.steps(); ++t) {
    for (int64_t p = 0; p < order.live(t); ++p) states.push_back(before.Row(t, p));
  }
  const auto gather = [&](int64_t from, int64_t count, T* to) {
    for (int64_t i = from; i < from + count; ++i) to = std::copy_n(states[i], before.width, to);
  };
  const int64_t rows = std::ssize(states);
  return nn::WeightProduct<T, decltype(gather)>({rows, before.width, outputs}, gather,
                                                grad + first * outputs)
      .Run(ctx, out);
}

// Puts rows by sorted sequence where their sequences are; rows of empty sequences become 0.
template <typename T>
void ScatterStates(const StepOrder& order, const T* sorted, int64_t width, T* states) {
  std::fill_n(states, std::ssize(order.sequences) * width, T{0});
  for (int64_t p = 0; p < order.rows(); ++p) {
    std::copy_n(sorted + p * width, width, states + order.sequences[p] * width);
  }
}

}  // namespace interp::recurrent
