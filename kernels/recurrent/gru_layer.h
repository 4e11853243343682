// A run of gru over all steps of all sequences.
#pragma once

#include <algorithm>

#include "kernels/recurrent/gru_cell.h"
#include "kernels/recurrent/step_order.h"

namespace interp::recurrent {

// One run.
template <typename T>
struct GruRun {
  const StepOrder& order;
  const GruCell<T>& cell;
  const T* input = nullptr;  // [T, 3 size]
  const T* bias = nullptr;   // [3 size], or null
  bool has_state = false;    // h holds a state before step 0
  // By sorted sequence.
  T* h = nullptr;       // [rows, size]
  T* gates = nullptr;   // [rows, 3 size], scratch
  T* reset = nullptr;   // [rows, size], scratch
  T* hidden = nullptr;  // [T, size], in the order of the input
  // Outputs in batch rows; null: not kept.
  T* batch_gate = nullptr;
  T* batch_reset = nullptr;
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
        batch_gate != nullptr ? batch_gate + batch_row * 3 * size : gates + begin * 3 * size;
    T* const r = batch_reset != nullptr ? batch_reset + batch_row * size : reset + begin * size;
    T* const state = h + begin * size;
    for (int64_t i = 0; i < count; ++i) {
      LoadGates(input + order.row(t, begin + i) * 3 * size, g + i * 3 * size);
    }
    cell.Step(count, t > 0 || has_state ? state : nullptr, g, r, state);
    if (batch_hidden != nullptr) std::copy_n(state, count * size, batch_hidden + batch_row * size);
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(state + i * size, size, hidden + order.row(t, begin + i) * size);
    }
  }

  void LoadGates(const T* x, T* g) const {
    if (bias == nullptr) {
      std::copy_n(x, 3 * cell.size, g);
    } else {
      for (int64_t j = 0; j < 3 * cell.size; ++j) g[j] = x[j] + bias[j];
    }
  }
};

// Memory for the state and scratch of a run, which starts from `h0` [sequences, size] or, where it
// is null, from 0.
template <typename T>
absl::StatusOr<Workspace> StartGru(const KernelContext& ctx, const Tensor* h0, GruRun<T>& run) {
  const int64_t rows = run.order.rows();
  const int64_t size = run.cell.size;
  INTERP_ASSIGN_OR_RETURN(Workspace memory,
                          ctx.workspace(static_cast<size_t>(rows * 5 * size) * sizeof(T)));
  run.h = memory.data<T>();
  run.gates = run.h + rows * size;
  run.reset = run.gates + rows * 3 * size;
  if (h0 != nullptr) {
    run.has_state = true;
    GatherStates(run.order, h0->data<T>(), size, run.h);
  }
  return memory;
}

}  // namespace interp::recurrent
