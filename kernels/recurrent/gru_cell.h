// One step of gru and gru_unit.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/product/gemm.h"
#include "kernels/recurrent/activation.h"
#include "kernels/recurrent/packed_weights.h"

namespace interp::recurrent {

// Gates lie in the order update, reset, candidate.
template <typename T>
struct GruCell {
  int64_t size = 0;
  CellActivation gate = CellActivation::kSigmoid;
  CellActivation candidate = CellActivation::kTanh;
  bool origin_mode = false;         // the update gate keeps the old state, not the new one
  const T* gate_weight = nullptr;   // [size, 2 size], packed
  const T* state_weight = nullptr;  // [size, size], packed

  // The matrices in the memory of Weight.
  static std::array<MatrixPart, 2> Parts(int64_t size) {
    return {{{size, 2 * size}, {size, size}}};
  }
  void SetWeights(const T* packed) {
    gate_weight = packed;
    state_weight = packed + nn::PackedSize<T>(size, 2 * size);
  }

  // Replaces what the input contributes in `gates` [count, 3 size] by the activated gates. `reset`
  // becomes the state behind the reset gate, `next`, which may be h, the new state. h is null where
  // the state is 0.
  void Step(int64_t count, const T* h, T* gates, T* reset, T* next) const {
    if (h != nullptr) {
      nn::GemmPacked(count, size, 2 * size, h, size, gate_weight, gates, 3 * size,
                     /*accumulate=*/true);
    }
    for (int64_t i = 0; i < count; ++i) {
      Activate(gate, gates + i * 3 * size, 2 * size);
      Reset(h == nullptr ? nullptr : h + i * size, gates + (i * 3 + 1) * size, reset + i * size);
    }
    if (h != nullptr) {
      nn::GemmPacked(count, size, size, reset, size, state_weight, gates + 2 * size, 3 * size,
                     /*accumulate=*/true);
    }
    for (int64_t i = 0; i < count; ++i) {
      Activate(candidate, gates + (i * 3 + 2) * size, size);
      Update(h == nullptr ? nullptr : h + i * size, gates + i * 3 * size, next + i * size);
    }
  }

 private:
  void Reset(const T* h, const T* r, T* reset) const {
    for (int64_t j = 0; j < size; ++j) reset[j] = h == nullptr ? T{0} : r[j] * h[j];
  }

  void Update(const T* h, const T* u, T* next) const {
    const T* const c = u + 2 * size;
    if (h == nullptr) {
      for (int64_t j = 0; j < size; ++j) next[j] = (origin_mode ? T{1} - u[j] : u[j]) * c[j];
    } else if (origin_mode) {
      for (int64_t j = 0; j < size; ++j) next[j] = u[j] * h[j] + (T{1} - u[j]) * c[j];
    } else {
      for (int64_t j = 0; j < size; ++j) next[j] = (T{1} - u[j]) * h[j] + u[j] * c[j];
    }
  }
};

}  // namespace interp::recurrent
