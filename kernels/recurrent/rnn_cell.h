// Recurrent cells: what happens to one row (one sequence of a batch) in one time step, after the
// matrix products. Gate values are replaced by the activated ones, in the order of the weights.
#pragma once

#include <cstdint>

#include "kernels/util/vector_math.h"

namespace interp::nn {

enum class RnnMode : int8_t { kTanh, kRelu, kLstm, kGru };

inline int64_t GateCount(RnnMode mode) {
  return mode == RnnMode::kLstm ? 4 : (mode == RnnMode::kGru ? 3 : 1);
}

// What the cell of one row reads and writes. Its loops are vectorised: none of this overlaps, but
// that y, kept and the memory they double may be the same.
template <typename T>
struct CellRow {
  const T* bias;         // added to the gates
  const T* hidden_bias;  // GRU: of the candidate, inside the reset gate
  const T* hidden;       // GRU: what the state contributes to the gates
  T* gates;              // sums before, activated gates after
  T* h;                  // the state, in place
  T* c;                  // LSTM: the cell state, in place
  T* y;                  // gets the new h, too
  T* kept;               // LSTM: gets the new c; GRU: the state's share of the candidate
};

// The gates are input, forget, candidate, output.
template <typename T>
void LstmCell(int64_t size, const CellRow<T>& row) {
  const T* bias = row.bias;
  T* gates = row.gates;
  T* h = row.h;
  T* c = row.c;
  T* y = row.y;
  T* kept = row.kept;
#pragma GCC ivdep
  for (int64_t j = 0; j < size; ++j) {
    const T input = Sigmoid(gates[j] + bias[j]);
    const T forget = Sigmoid(gates[size + j] + bias[size + j]);
    const T candidate = Tanh(gates[2 * size + j] + bias[2 * size + j]);
    const T output = Sigmoid(gates[3 * size + j] + bias[3 * size + j]);
    gates[j] = input;
    gates[size + j] = forget;
    gates[2 * size + j] = candidate;
    gates[3 * size + j] = output;
    const T next = forget * c[j] + input * candidate;
    c[j] = kept[j] = next;
    h[j] = y[j] = output * Tanh(next);
  }
}

// The gates are reset, update, candidate; their sums hold what the input contributes.
template <typename T>
void GruCell(int64_t size, const CellRow<T>& row) {
  const T* bias = row.bias;
  const T* hidden_bias = row.hidden_bias;
  const T* hidden = row.hidden;
  T* gates = row.gates;
  T* h = row.h;
  T* y = row.y;
  T* kept = row.kept;
#pragma GCC ivdep
  for (int64_t j = 0; j < size; ++j) {
    const T reset = Sigmoid(gates[j] + hidden[j] + bias[j]);
    const T update = Sigmoid(gates[size + j] + hidden[size + j] + bias[size + j]);
    const T share = hidden[2 * size + j] + hidden_bias[j];
    const T candidate = Tanh(gates[2 * size + j] + bias[2 * size + j] + reset * share);
    gates[j] = reset;
    gates[size + j] = update;
    gates[2 * size + j] = candidate;
    kept[j] = share;
    h[j] = y[j] = update * h[j] + (T{1} - update) * candidate;
  }
}

template <typename T>
void TanhCell(int64_t size, const CellRow<T>& row) {
  const T* bias = row.bias;
  T* gates = row.gates;
  T* h = row.h;
  T* y = row.y;
#pragma GCC ivdep
  for (int64_t j = 0; j < size; ++j) h[j] = y[j] = gates[j] = Tanh(gates[j] + bias[j]);
}

template <typename T>
void ReluCell(int64_t size, const CellRow<T>& row) {
  const T* bias = row.bias;
  T* gates = row.gates;
  T* h = row.h;
  T* y = row.y;
#pragma GCC ivdep
  for (int64_t j = 0; j < size; ++j) {
    const T sum = gates[j] + bias[j];
    h[j] = y[j] = gates[j] = sum < T{0} ? T{0} : sum;
  }
}

}  // namespace interp::nn
