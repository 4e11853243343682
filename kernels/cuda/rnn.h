// Recurrent cells of dense batches, for all sequences of one step at once: what lies between the
// products of a step. Every function is one launch, enqueued on `stream`, of float32 or float64.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

// Numbered as nn::RnnMode. Gates lie as in kernels/recurrent/rnn_cell.h: LSTM input, forget,
// candidate, output; GRU reset, update, candidate; the others have one.
enum class RecurrentCell : int8_t { kTanh, kRelu, kLstm, kGru };

// Which sequences of a batch have a step. A length that no sequence can have is as good as the
// nearest that one can.
struct StepLengths {
  const void* lengths = nullptr;  // of the device, one for each sequence; null: all are full
  DType dtype = DType::kInt64;    // or int32
};

// The sizes of a step, and where it is.
struct RecurrentStep {
  RecurrentCell cell = RecurrentCell::kTanh;
  StepLengths lengths = {};
  int64_t batch = 0;
  int64_t hidden = 0;
  int64_t width = 0;  // elements from a row of `y` or `dy` to the next
  int64_t step = 0;
};

// One step. A sequence that has ended keeps its states and gets zeros as output.
struct CellMemory {
  const void* input_bias = nullptr;  // [gates * hidden]
  const void* state_bias = nullptr;
  const void* hidden_sums = nullptr;  // GRU: what the state gives, [batch, gates * hidden]
  void* gates = nullptr;              // sums before, activated gates after: [batch, gates * hidden]
  void* h = nullptr;                  // [batch, hidden], in place
  void* c = nullptr;                  // LSTM, the same
  void* y = nullptr;                  // gets the new h
  void* kept = nullptr;  // [batch, hidden] or null; LSTM: new c, GRU: the state's candidate sum
};
absl::Status StepCells(DType dtype, const RecurrentStep& step, const CellMemory& memory,
                       cudaStream_t stream);

// One step backward. `dh` and `dc` are gradients of the states behind the step and become what
// reaches those before it past the weights; a sequence that has ended keeps them.
struct CellGradientMemory {
  const void* gates = nullptr;  // activated
  const void* kept = nullptr;
  // LSTM: c, GRU: h before the step, of step `step_before`, in rows `before_width` apart; of
  // sequences without that step, or all where it is null, `first`, [batch, hidden].
  const void* before = nullptr;
  int64_t before_width = 0;
  int64_t step_before = 0;
  const void* first = nullptr;
  const void* dy = nullptr;
  void* dh = nullptr;      // [batch, hidden], in place
  void* dc = nullptr;      // LSTM, the same
  void* dgates = nullptr;  // [batch, gates * hidden]: of what the input gives
  void* dstate = nullptr;  // of what the state gives; the same memory but for GRU
};
absl::Status StepCellsBack(DType dtype, const RecurrentStep& step, const CellGradientMemory& memory,
                           cudaStream_t stream);

// The states before all steps: states [steps, batch, hidden] out of `out`, which has those behind
// them in rows `step.width` apart, and `first`, those before the first step. `backward`: steps go
// from the last to the first.
absl::Status StatesBeforeSteps(DType dtype, const RecurrentStep& step, int64_t steps, bool backward,
                               const void* out, const void* first, void* states,
                               cudaStream_t stream);

}  // namespace interp::cuda
