// What lstm_grad and lstmp_grad share: a cell backward, and a run over all steps from the last to
// the first.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/product/gemm.h"
#include "kernels/recurrent/lstm_layer.h"
#include "kernels/recurrent/weight_gradients.h"

namespace interp::recurrent {

// What the forward step of one sequence left.
template <typename T>
struct LstmStepValues {
  const T* gates;   // activated: candidate, input, forget, output
  const T* active;  // cell(c)
  const T* c;       // the state behind the step
  const T* before;  // the state before it; null: 0
};

// Makes gates_grad of the gradient of h. dc is the gradient of the state behind the step and
// becomes that of the state before it.
template <typename T>
void StepBack(const LstmCell<T>& cell, const LstmStepValues<T>& values, const T* dh, T* dc,
              T* gates_grad) {
  const int64_t size = cell.size;
  const T* const a = values.gates;
  const T* const input = a + size;
  const T* const forget = input + size;
  const T* const output = forget + size;
  T* const da = gates_grad;
  T* const di = da + size;
  T* const df = di + size;
  T* const dout = df + size;
  for (int64_t j = 0; j < size; ++j) dout[j] = dh[j] * values.active[j];
  ScaleByDerivative(cell.gate, output, dout, size);
  for (int64_t j = 0; j < size; ++j) da[j] = dh[j] * output[j];
  ScaleByDerivative(cell.cell, values.active, da, size);
  for (int64_t j = 0; j < size; ++j) dc[j] += da[j];
  if (cell.peepholes != nullptr) {
    for (int64_t j = 0; j < size; ++j) dc[j] += dout[j] * cell.peepholes[2 * size + j];
  }
  if (cell.clip > T{0}) {
    for (int64_t j = 0; j < size; ++j) dc[j] = std::abs(values.c[j]) < cell.clip ? dc[j] : T{0};
  }
  for (int64_t j = 0; j < size; ++j) da[j] = dc[j] * input[j];
  for (int64_t j = 0; j < size; ++j) di[j] = dc[j] * a[j];
  for (int64_t j = 0; j < size; ++j)
    df[j] = values.before == nullptr ? T{0} : dc[j] * values.before[j];
  ScaleByDerivative(cell.candidate, a, da, size);
  ScaleByDerivative(cell.gate, input, di, 2 * size);
  for (int64_t j = 0; j < size; ++j) dc[j] *= forget[j];
  if (cell.peepholes != nullptr) {
    for (int64_t j = 0; j < size; ++j) {
      dc[j] += di[j] * cell.peepholes[j] + df[j] * cell.peepholes[size + j];
    }
  }
}

// The recurrent projection of lstmp, backward.
template <typename T>
struct LstmProjectionGradient {
  const T* weight = nullptr;  // [width, size], packed; null: r is h
  CellActivation activation = CellActivation::kTanh;
  T clip = 0;
  const T* r = nullptr;  // [T, width], in the order of the input
  T* dh = nullptr;       // [rows, size], scratch
  T* sums = nullptr;     // [T, width], in batch rows: gradient of the sums before the activation

  // Turns the gradient of r of input row `row` into that of the sums.
  void Activate(int64_t row, int64_t width, T* dr) const {
    const T* const value = r + row * width;
    if (clip > T{0}) {
      for (int64_t j = 0; j < width; ++j) dr[j] = std::abs(value[j]) < clip ? dr[j] : T{0};
    }
    ScaleByDerivative(activation, value, dr, width);
  }
};

// One run. Sequences are independent, so threads share them out.
template <typename T>
struct LstmGradientRun {
  const StepOrder& order;
  const LstmCell<T>& cell;
  LstmProjectionGradient<T> projection;
  StatesBefore<T> cells;          // of c
  int64_t width = 0;              // of r
  const T* gates = nullptr;       // [T, 4 size], batch rows
  const T* active = nullptr;      // [T, size], batch rows
  const T* r_grad = nullptr;      // [T, width], in the order of the input
  const T* weight = nullptr;      // [4 size, width], packed
  bool wants_first_state = true;  // whether dr before step 0 is needed
  // By sorted sequence: gradients of the state, 0 before the run; those before step 0 behind it.
  T* dr = nullptr;  // [rows, width]
  T* dc = nullptr;  // [rows, size]
  // Results.
  T* gates_grad = nullptr;  // [T, 4 size], batch rows
  T* input_grad = nullptr;  // the same in the order of the input; may be null

  void Run(int threads) const {
    ForEachStepBack(order, threads,
                    [this](int64_t t, int64_t begin, int64_t count) { Step(t, begin, count); });
  }

 private:
  void Step(int64_t t, int64_t begin, int64_t count) const {
    const int64_t size = cell.size;
    const int64_t batch_row = order.starts[t] + begin;
    T* const state = dr + begin * width;
    AddOfStep(order, t, begin, count, r_grad, width, state);
    const T* const dh = projection.weight == nullptr ? state : Project(t, begin, count);
    T* const grad = gates_grad + batch_row * 4 * size;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = order.row(t, begin + i);
      const LstmStepValues<T> values = {gates + (batch_row + i) * 4 * size,
                                        active + (batch_row + i) * size, cells.states + row * size,
                                        cells.Row(t, begin + i)};
      StepBack(cell, values, dh + i * size, dc + (begin + i) * size, grad + i * 4 * size);
      if (input_grad == nullptr) continue;
      std::copy_n(grad + i * 4 * size, 4 * size, input_grad + row * 4 * size);
    }
    if (t == 0 && !wants_first_state) return;
    nn::GemmPacked(count, 4 * size, width, grad, 4 * size, weight, state, width,
                   /*accumulate=*/false);
  }

  // The gradient of h.
  const T* Project(int64_t t, int64_t begin, int64_t count) const {
    const int64_t size = cell.size;
    T* const state = dr + begin * width;
    for (int64_t i = 0; i < count; ++i) {
      projection.Activate(order.row(t, begin + i), width, state + i * width);
    }
    std::copy_n(state, count * width, projection.sums + (order.starts[t] + begin) * width);
    T* const dh = projection.dh + begin * size;
    nn::GemmPacked(count, width, size, state, width, projection.weight, dh, size,
                   /*accumulate=*/false);
    return dh;
  }
};

}  // namespace interp::recurrent
