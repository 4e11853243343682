// Steps of lstm over the sequences of a LoD, all live sequences at once: what lies between the
// products of a step. Every function is one launch, enqueued on `stream`, of float32 or float64.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/step_rows.h"

namespace interp::cuda {

// Numbered as recurrent::CellActivation.
struct LstmCells {
  StepRows rows = {};
  int64_t size = 0;
  GateActivation gate = GateActivation::kSigmoid;
  GateActivation cell = GateActivation::kTanh;
  GateActivation candidate = GateActivation::kTanh;
  const void* bias = nullptr;  // [4 size], behind it the peepholes [3 size]
  bool peepholes = false;
  float clip = 0;  // c lies in [-clip, clip]; 0: anywhere
};

// Step `t` of the first `live` sorted sequences, `batch_row` batch rows behind the start. Memory
// by sorted sequence unless it says otherwise.
struct LstmStep {
  int64_t t = 0;
  int64_t live = 0;
  int64_t batch_row = 0;
  const void* input = nullptr;  // [T, 4 size], in the order of the input
  const void* sums = nullptr;   // what the state gives, [live, 4 size]; null: 0
  void* c = nullptr;            // [live, size], in place
  void* h = nullptr;            // [live, size]: what the cells give
  // In the order of the input; null: not kept.
  void* hidden = nullptr;    // [T, size], h
  void* cell_out = nullptr;  // [T, size]
  // In batch rows; null: not kept.
  void* batch_gate = nullptr;    // [T, 4 size], activated
  void* batch_active = nullptr;  // [T, size], cell(c)
  void* batch_hidden = nullptr;  // [T, size], h
};
absl::Status StepLstm(DType dtype, const LstmCells& cells, const LstmStep& step,
                      cudaStream_t stream);

// The same step backward. Sequences from `live_behind` on have no later step.
struct LstmStepBack {
  int64_t t = 0;
  int64_t live = 0;
  int64_t live_behind = 0;
  int64_t batch_row = 0;
  const void* gates = nullptr;    // [T, 4 size] in batch rows
  const void* active = nullptr;   // [T, size] in batch rows
  const void* c = nullptr;        // [T, size], in the order of the input
  const void* c_first = nullptr;  // [live, size], before step 0; null: 0
  // The gradient of h: `dh`, or where that is null the sum of the other two.
  const void* dh = nullptr;        // [live, size]
  const void* r_grad = nullptr;    // [T, size], in the order of the input
  const void* dr = nullptr;        // [live, size], of the state behind the step
  void* dc = nullptr;              // the same, becomes that of the state before the step
  void* gates_grad = nullptr;      // [T, 4 size] in batch rows
  void* input_grad = nullptr;      // [T, 4 size], in the order of the input; may be null
  void* peephole_grads = nullptr;  // [T, 3 size] in batch rows, the terms of the sums; may be null
};
absl::Status StepLstmBack(DType dtype, const LstmCells& cells, const LstmStepBack& step,
                          cudaStream_t stream);

}  // namespace interp::cuda
