// One step of gru and gru_unit, backward, and the gradients of their weights.
#pragma once

#include <optional>

#include "kernels/product/gemm.h"
#include "kernels/recurrent/activation.h"
#include "kernels/recurrent/gru_attrs.h"
#include "kernels/recurrent/weight_gradients.h"

namespace interp::recurrent {

// Gradients of the sums that the gates were before they were activated. A product takes those of
// the gates, another those of the candidate, so they lie apart.
template <typename T>
struct GruGateGradients {
  T* gates = nullptr;      // [rows, 2 size]: update, reset
  T* candidate = nullptr;  // [rows, size]

  GruGateGradients From(int64_t row, int64_t size) const {
    return {gates + row * 2 * size, candidate + row * size};
  }
  // In the order of the input.
  void CopyRow(int64_t row, int64_t size, T* out) const {
    out = std::copy_n(gates + row * 2 * size, 2 * size, out);
    std::copy_n(candidate + row * size, size, out);
  }
};

// Gates lie in the order update, reset, candidate.
template <typename T>
struct GruCellGradient {
  int64_t size = 0;
  CellActivation gate = CellActivation::kSigmoid;
  CellActivation candidate = CellActivation::kTanh;
  bool origin_mode = false;
  const T* gate_weight = nullptr;   // [2 size, size], packed: the transpose of the forward one
  const T* state_weight = nullptr;  // [size, size], packed likewise

  // One step of `count` rows. `before(i)` is the state of row i before the step, null for 0, which
  // is so for all rows or for none. dh is the gradient of the new states and becomes that of the
  // states before, unless these are 0. `reset_grad` [count, size] is scratch.
  template <typename Before>
  void StepBack(int64_t count, const Before& before, const T* gates, T* dh, T* reset_grad,
                const GruGateGradients<T>& grad) const {
    const bool has_state = before(0) != nullptr;
    for (int64_t i = 0; i < count; ++i) {
      UpdateBack(before(i), gates + i * 3 * size, dh + i * size, grad.From(i, size));
    }
    if (!has_state) return;
    nn::GemmPacked(count, size, size, grad.candidate, size, state_weight, reset_grad, size,
                   /*accumulate=*/false);
    for (int64_t i = 0; i < count; ++i) {
      ResetBack(before(i), gates + (i * 3 + 1) * size, reset_grad + i * size,
                grad.gates + (i * 2 + 1) * size, dh + i * size);
    }
    nn::GemmPacked(count, 2 * size, size, grad.gates, 2 * size, gate_weight, dh, size,
                   /*accumulate=*/true);
  }

 private:
  // dh becomes the part of it that goes past the candidate. The reset gate's gradient becomes 0.
  void UpdateBack(const T* h, const T* u, T* dh, const GruGateGradients<T>& grad) const {
    const T* const c = u + 2 * size;
    T* const du = grad.gates;
    T* const dc = grad.candidate;
    for (int64_t j = 0; j < size; ++j) du[j] = dh[j] * (c[j] - (h == nullptr ? T{0} : h[j]));
    if (origin_mode) {
      for (int64_t j = 0; j < size; ++j) du[j] = -du[j];
      for (int64_t j = 0; j < size; ++j) dc[j] = dh[j] * (T{1} - u[j]);
      for (int64_t j = 0; j < size; ++j) dh[j] *= u[j];
    } else {
      for (int64_t j = 0; j < size; ++j) dc[j] = dh[j] * u[j];
      for (int64_t j = 0; j < size; ++j) dh[j] *= T{1} - u[j];
    }
    ScaleByDerivative(gate, u, du, size);
    ScaleByDerivative(candidate, c, dc, size);
    std::fill_n(du + size, size, T{0});
  }

  void ResetBack(const T* h, const T* r, const T* reset_grad, T* dr, T* dh) const {
    for (int64_t j = 0; j < size; ++j) dr[j] = reset_grad[j] * h[j];
    for (int64_t j = 0; j < size; ++j) dh[j] += reset_grad[j] * r[j];
    ScaleByDerivative(gate, r, dr, size);
  }
};

// Packed transposes of the two matrices of Weight (GruCell::Parts).
template <typename T>
struct GruTransposedWeights {
  Workspace gates;
  Workspace state;

  static absl::StatusOr<GruTransposedWeights> Pack(const KernelContext& ctx, const T* weight,
                                                   int64_t size) {
    INTERP_ASSIGN_OR_RETURN(Workspace gates, PackTransposed(ctx, weight, size, 2 * size));
    INTERP_ASSIGN_OR_RETURN(Workspace state,
                            PackTransposed(ctx, weight + 2 * size * size, size, size));
    return GruTransposedWeights{std::move(gates), std::move(state)};
  }

  GruCellGradient<T> Cell(const GruAttrs& attrs, int64_t size) const {
    return {size,
            attrs.gate,
            attrs.candidate,
            attrs.origin_mode,
            gates.template data<T>(),
            state.template data<T>()};
  }
};

// The gradient of Bias.
template <typename T>
void GruBiasGradient(int threads, const GruGateGradients<T>& grad, int64_t rows, int64_t size,
                     T* out) {
  SumRows(threads, grad.gates, rows, 2 * size, out);
  SumRows(threads, grad.candidate, rows, size, out + 2 * size);
}

}  // namespace interp::recurrent
