// What lstm and lstmp share: the cell, and a run over all steps of all sequences.
#pragma once

#include <algorithm>

#include "kernels/product/gemm.h"
#include "kernels/recurrent/activation.h"
#include "kernels/recurrent/lstm_attrs.h"
#include "kernels/recurrent/step_order.h"

namespace interp::recurrent {

// x[i] limited to [-limit, limit]; unchanged when the limit is not positive.
template <typename T>
void Clip(T limit, T* x, int64_t size) {
  if (!(limit > T{0})) return;
  for (int64_t i = 0; i < size; ++i) {
    const T low = x[i] < -limit ? -limit : x[i];
    x[i] = low > limit ? limit : low;
  }
}

// One step of one sequence. Gates lie in the order candidate, input, forget, output.
template <typename T>
struct LstmCell {
  int64_t size = 0;
  CellActivation gate = CellActivation::kSigmoid;
  CellActivation cell = CellActivation::kTanh;
  CellActivation candidate = CellActivation::kTanh;
  const T* peepholes = nullptr;  // of input, forget and output gate; null: none
  T clip = 0;                    // of the cell state; 0: none

  // Replaces the sums in `gates` by the activated gates, and c by the next state. `active` becomes
  // the activated state and may be h.
  void Step(T* gates, T* c, T* active, T* h) const {
    T* const input = gates + size;
    T* const forget = input + size;
    T* const output = forget + size;
    Activate(candidate, gates, size);
    if (peepholes != nullptr) {
      for (int64_t j = 0; j < size; ++j) input[j] += peepholes[j] * c[j];
      for (int64_t j = 0; j < size; ++j) forget[j] += peepholes[size + j] * c[j];
    }
    Activate(gate, input, 2 * size);
    for (int64_t j = 0; j < size; ++j) c[j] = gates[j] * input[j] + c[j] * forget[j];
    Clip(clip, c, size);
    if (peepholes != nullptr) {
      for (int64_t j = 0; j < size; ++j) output[j] += peepholes[2 * size + j] * c[j];
    }
    Activate(gate, output, size);
    std::copy_n(c, size, active);
    Activate(cell, active, size);
    for (int64_t j = 0; j < size; ++j) h[j] = output[j] * active[j];
  }
};

template <typename T>
LstmCell<T> MakeLstmCell(const LstmAttrs& attrs, int64_t size, const T* bias) {
  return {.size = size,
          .gate = attrs.gate,
          .cell = attrs.cell,
          .candidate = attrs.candidate,
          .peepholes = attrs.peepholes ? bias + 4 * size : nullptr,
          .clip = static_cast<T>(attrs.cell_clip)};
}

// The recurrent projection of lstmp: r = clip(activation(h W)).
template <typename T>
struct LstmProjection {
  const T* weight = nullptr;  // [size, width], packed; null: r is h
  CellActivation activation = CellActivation::kTanh;
  T clip = 0;
  T* h = nullptr;  // [rows, size], scratch
};

// One run.
template <typename T>
struct LstmRun {
  const StepOrder& order;
  const LstmCell<T>& cell;
  LstmProjection<T> projection;
  int64_t width = 0;          // of r
  const T* input = nullptr;   // [T, 4 size]
  const T* bias = nullptr;    // [4 size]
  const T* weight = nullptr;  // [width, 4 size], packed
  bool has_state = false;     // r holds a state before step 0
  // State, by sorted sequence: [rows, width] and [rows, size]. `c` is set before the run.
  T* r = nullptr;
  T* c = nullptr;
  T* gates = nullptr;  // [rows, 4 size], scratch; not needed when batch_gate is kept
  // Outputs in the order of the input.
  T* r_out = nullptr;
  T* c_out = nullptr;  // may be null
  // Outputs in batch rows; null: not kept.
  T* batch_gate = nullptr;
  T* batch_active = nullptr;
  T* batch_hidden = nullptr;

  void Run(int threads) const {
    ForEachStep(order, threads,
                [this](int64_t t, int64_t begin, int64_t count) { Step(t, begin, count); });
  }

 private:
  void Step(int64_t t, int64_t begin, int64_t count) const {
    const int64_t size = cell.size;
    const int64_t batch_row = order.starts[t] + begin;
    T* const g =
        batch_gate != nullptr ? batch_gate + batch_row * 4 * size : gates + begin * 4 * size;
    for (int64_t i = 0; i < count; ++i) {
      const T* const x = input + order.row(t, begin + i) * 4 * size;
      T* const sums = g + i * 4 * size;
      for (int64_t j = 0; j < 4 * size; ++j) sums[j] = x[j] + bias[j];
    }
    if (t > 0 || has_state) {
      nn::GemmPacked(count, width, 4 * size, r + begin * width, width, weight, g, 4 * size,
                     /*accumulate=*/true);
    }
    T* const h = (projection.weight != nullptr ? projection.h : r) + begin * size;
    for (int64_t i = 0; i < count; ++i) {
      T* const active =
          batch_active != nullptr ? batch_active + (batch_row + i) * size : h + i * size;
      cell.Step(g + i * 4 * size, c + (begin + i) * size, active, h + i * size);
    }
    if (projection.weight != nullptr) Project(h, batch_row, begin, count);
    for (int64_t i = begin; i < begin + count; ++i) {
      const int64_t row = order.row(t, i);
      std::copy_n(r + i * width, width, r_out + row * width);
      if (c_out != nullptr) std::copy_n(c + i * size, size, c_out + row * size);
    }
  }

  void Project(const T* h, int64_t batch_row, int64_t begin, int64_t count) const {
    const int64_t size = cell.size;
    if (batch_hidden != nullptr) std::copy_n(h, count * size, batch_hidden + batch_row * size);
    T* const out = r + begin * width;
    nn::GemmPacked(count, size, width, h, size, projection.weight, out, width,
                   /*accumulate=*/false);
    Activate(projection.activation, out, count * width);
    Clip(projection.clip, out, count * width);
  }
};

}  // namespace interp::recurrent
