// What the steps of recurrences over the sequences of a LoD have in common: rows, activations, and
// the states that steps begin with.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"

namespace interp::cuda {

enum class GateActivation : int8_t { kIdentity, kSigmoid, kTanh, kRelu };

// Where the sequences of a run lie, see recurrent::StepOrder. Memory of the device.
struct StepRows {
  const int64_t* first = nullptr;   // by sorted sequence: its row in step 0
  const int64_t* starts = nullptr;  // by step: batch rows before it, and all of them
  int64_t steps = 0;
  int64_t stride = 1;  // rows from a step of a sequence to its next
};

// before [T, width] in batch rows: the rows of `states` [T, width], in the order of the input,
// behind the step before; at step 0 those of `first` [sequences, width], sorted; null: 0.
absl::Status StatesBeforeBatchRows(DType dtype, const StepRows& rows, int64_t count, int64_t width,
                                   const void* states, const void* first, void* before,
                                   cudaStream_t stream);

}  // namespace interp::cuda
