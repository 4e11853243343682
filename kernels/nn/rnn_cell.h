// Recurrent cells: what happens to one row (one sequence of a batch) in one time step, after the
// matrix products. Gate values are replaced by the activated ones, in the order of the weights.
// Gates and states lie apart: too many for the compiler to check by itself.
#pragma once

#include <cstdint>

#include "kernels/util/vector_math.h"

namespace interp::nn {

enum class RnnMode : int8_t { kTanh, kRelu, kLstm, kGru };

inline int64_t GateCount(RnnMode mode) {
  return mode == RnnMode::kLstm ? 4 : (mode == RnnMode::kGru ? 3 : 1);
}

// `gates` holds input, forget, candidate, output. c is updated in place.
template <typename T>
void LstmCell(int64_t size, T* gates, T* c, T* h) {
  T* input = gates;
  T* forget = gates + size;
  T* candidate = gates + 2 * size;
  T* output = gates + 3 * size;
#pragma GCC ivdep
  for (int64_t j = 0; j < size; ++j) {
    input[j] = Sigmoid(input[j]);
    forget[j] = Sigmoid(forget[j]);
    candidate[j] = Tanh(candidate[j]);
    output[j] = Sigmoid(output[j]);
    c[j] = forget[j] * c[j] + input[j] * candidate[j];
    h[j] = output[j] * Tanh(c[j]);
  }
}

// `gates` holds what the input contributes to reset, update and candidate; `hidden` what the state
// does, with the candidate's own bias.
template <typename T>
void GruCell(int64_t size, T* gates, const T* hidden, T* h) {
  T* reset = gates;
  T* update = gates + size;
  T* candidate = gates + 2 * size;
#pragma GCC ivdep
  for (int64_t j = 0; j < size; ++j) {
    reset[j] = Sigmoid(reset[j] + hidden[j]);
    update[j] = Sigmoid(update[j] + hidden[size + j]);
    candidate[j] = Tanh(candidate[j] + reset[j] * hidden[2 * size + j]);
    h[j] = update[j] * h[j] + (T{1} - update[j]) * candidate[j];
  }
}

template <typename T>
void TanhCell(int64_t size, T* gates, T* h) {
#pragma GCC ivdep
  for (int64_t j = 0; j < size; ++j) h[j] = gates[j] = Tanh(gates[j]);
}

template <typename T>
void ReluCell(int64_t size, T* gates, T* h) {
#pragma GCC ivdep
  for (int64_t j = 0; j < size; ++j) h[j] = gates[j] = gates[j] < T{0} ? T{0} : gates[j];
}

}  // namespace interp::nn
