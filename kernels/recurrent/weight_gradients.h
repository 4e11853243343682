// Gradients of weights and biases: products and sums over the rows of all steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/op_def.h"
#include "kernels/nn/gemm.h"
#include "kernels/nn/image.h"
#include "kernels/recurrent/step_order.h"
#include "kernels/util/parallel_for.h"

namespace interp::recurrent {

// out[j] = sum of x[i, j] over all rows, in their order. Threads share the columns.
template <typename T>
void SumRows(int threads, const T* x, int64_t rows, int64_t columns, T* out) {
  ParallelFor(threads, columns, 1 + kElementwiseGrain / (rows + 1),
              [=](int64_t begin, int64_t end) {
                std::fill(out + begin, out + end, T{0});
                for (int64_t i = 0; i < rows; ++i) {
                  const T* const row = x + i * columns;
                  for (int64_t j = begin; j < end; ++j) out[j] += row[j];
                }
              });
}

// One product of a weight gradient: out [inputs, outputs] = x^T grad over `rows` rows, where row i
// of x, `inputs` wide, is at row_of(i), and grad is [rows, outputs].
//
// It is summed up from slices of rows, whose transposes and panels stay in cache: those of all rows
// at once would take more memory than anything else in a gradient op.
template <typename T, typename RowOf>
class WeightProduct {
 public:
  struct Sizes {
    int64_t rows = 0;
    int64_t inputs = 0;
    int64_t outputs = 0;
  };
  WeightProduct(const Sizes& sizes, const RowOf& row_of, const T* grad)
      : sizes_(sizes), row_of_(row_of), grad_(grad) {}

  absl::Status Run(const KernelContext& ctx, T* out) const {
    if (sizes_.rows == 0) {
      std::fill_n(out, sizes_.inputs * sizes_.outputs, T{0});
      return absl::OkStatus();
    }
    const int64_t most = std::min(sizes_.rows, kSlice);
    const int64_t packed_size = nn::PackedSize<T>(most, sizes_.outputs);
    const int64_t elements = packed_size + sizes_.inputs * (most + kSlice + kGap);
    INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                            ctx.workspace(static_cast<size_t>(elements) * sizeof(T)));
    T* const packed = memory.data<T>();
    T* const gathered = packed + packed_size;
    T* const transposed = gathered + sizes_.inputs * most;
    for (int64_t first = 0; first < sizes_.rows; first += kSlice) {
      const int64_t count = std::min(sizes_.rows - first, kSlice);
      Pack(ctx.num_threads(), first, count, packed);
      for (int64_t i = 0; i < count; ++i) {
        std::copy_n(row_of_(first + i), sizes_.inputs, gathered + i * sizes_.inputs);
      }
      nn::TransposeBlock(gathered, sizes_.inputs, transposed, kSlice + kGap, count, sizes_.inputs);
      Multiply(ctx.num_threads(), count, transposed, packed, /*accumulate=*/first > 0, out);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kSlice = 256;        // rows; what GemmPacked takes at once, too
  static constexpr int64_t kGap = 16;           // keeps rows of the transpose out of one cache set
  static constexpr int64_t kGrain = 64 * 1024;  // multiplications worth a thread of their own

  void Pack(int threads, int64_t first, int64_t count, T* packed) const {
    const int64_t columns = sizes_.outputs;
    const T* const grad = grad_ + first * columns;
    const int64_t panels = (columns + nn::kPanel<T> - 1) / nn::kPanel<T>;
    ParallelFor(threads, panels, 1 + kElementwiseGrain / (count * nn::kPanel<T>),
                [=](int64_t begin, int64_t end) {
                  const int64_t j = begin * nn::kPanel<T>;
                  nn::PackMatrix(count, std::min(end * nn::kPanel<T>, columns) - j, grad + j,
                                 columns, int64_t{1}, packed + j * count);
                });
  }

  void Multiply(int threads, int64_t count, const T* x, const T* packed, bool accumulate,
                T* out) const {
    const int64_t columns = sizes_.outputs;
    ParallelFor(threads, sizes_.inputs, 1 + kGrain / (count * columns),
                [=](int64_t begin, int64_t end) {
                  constexpr int64_t kStride = kSlice + kGap;
                  nn::GemmPacked(end - begin, count, columns, x + begin * kStride, kStride, packed,
                                 out + begin * columns, columns, accumulate);
                });
  }

  const Sizes sizes_;
  const RowOf& row_of_;
  const T* const grad_;
};

// The product for an x [rows, inputs].
template <typename T>
absl::Status WeightGradient(const KernelContext& ctx, int64_t rows, const T* x, int64_t inputs,
                            const T* grad, int64_t outputs, T* out) {
  const auto row_of = [=](int64_t i) { return x + i * inputs; };
  return WeightProduct<T, decltype(row_of)>({rows, inputs, outputs}, row_of, grad).Run(ctx, out);
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
  const auto row_of = [&](int64_t i) { return states[i]; };
  return WeightProduct<T, decltype(row_of)>({std::ssize(states), before.width, outputs}, row_of,
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
