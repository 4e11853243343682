// Steps of gru over the sequences of a LoD, all live sequences at once: what lies between the two
// products of a step. Every function is one launch, enqueued on `stream`, of float32 or float64.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/step_rows.h"

namespace interp::cuda {

// Gates lie in the order update, reset, candidate.
struct GruCells {
  StepRows rows = {};  // without `first`, of one step: state p has row p
  int64_t size = 0;
  GateActivation gate = GateActivation::kSigmoid;
  GateActivation candidate = GateActivation::kTanh;
  bool origin_mode = false;    // the update gate keeps the old state, not the new one
  const void* bias = nullptr;  // [3 size]; null: 0
};

// Step `t` of the first `live` sorted sequences, `batch_row` batch rows behind the start. Memory
// by sorted sequence unless it says otherwise.
struct GruStep {
  int64_t t = 0;
  int64_t live = 0;
  int64_t batch_row = 0;
  bool has_state = false;        // `before`, and the sums, count; otherwise they are 0
  const void* input = nullptr;   // [T, 3 size], in the order of the input
  void* gates = nullptr;         // [live, 2 size]: what the state gives, then the activated gates
  void* reset = nullptr;         // [live, size]: the state behind the reset gate
  void* sums = nullptr;          // [live, size]: what that gives to the candidate
  const void* before = nullptr;  // [live, size]: the states before the step
  void* h = nullptr;             // [live, size]: those behind it; may be `before` or `hidden`
  void* hidden = nullptr;        // [T, size], in the order of the input
  // In batch rows; null: not kept.
  void* batch_gate = nullptr;    // [T, 3 size]
  void* batch_reset = nullptr;   // [T, size]
  void* batch_hidden = nullptr;  // [T, size]
};
// Activates update and reset gate and makes `reset`.
absl::Status StepGruGates(DType dtype, const GruCells& cells, const GruStep& step,
                          cudaStream_t stream);
// Activates the candidate and makes the new state.
absl::Status StepGruState(DType dtype, const GruCells& cells, const GruStep& step,
                          cudaStream_t stream);

// The same step backward. Sequences from `live_behind` on have no later step.
struct GruStepBack {
  int64_t t = 0;
  int64_t live = 0;
  int64_t live_behind = 0;
  int64_t batch_row = 0;
  const void* gates = nullptr;   // [T, 3 size] in batch rows
  const void* hidden = nullptr;  // [T, size], in the order of the input, as is `hidden_grad`
  const void* first = nullptr;   // [live, size], before step 0; null: 0
  const void* hidden_grad = nullptr;
  void* reset_grad = nullptr;      // [live, size], of the state behind the reset gate
  void* dh = nullptr;              // [live, size]
  void* gates_grad = nullptr;      // [T, 2 size] in batch rows: update, reset
  void* candidate_grad = nullptr;  // [T, size] in batch rows
  void* input_grad = nullptr;      // [T, 3 size], in the order of the input; may be null
};
// Gives the gradients of update gate and candidate, that of the reset gate as 0; dh becomes the
// part of it that goes past the candidate.
absl::Status StepGruStateBack(DType dtype, const GruCells& cells, const GruStepBack& step,
                              cudaStream_t stream);
// Gives the gradient of the reset gate and adds its part to dh. Of steps with a state before.
absl::Status StepGruResetBack(DType dtype, const GruCells& cells, const GruStepBack& step,
                              cudaStream_t stream);

}  // namespace interp::cuda
