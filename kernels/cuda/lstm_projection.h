// The recurrent projection of lstmp: what lies between the products of a step, besides the cells of
// lstm.h. Every function is one launch, enqueued on `stream`, of float32 or float64.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/cuda/step_rows.h"

namespace interp::cuda {

// r = clip(activation(h ProjWeight)).
struct LstmProjection {
  StepRows rows = {};
  int64_t width = 0;  // of r
  GateActivation activation = GateActivation::kTanh;
  float clip = 0;  // r lies in [-clip, clip]; 0: anywhere
};

// Step `t` of the first `live` sorted sequences.
struct ProjectionStep {
  int64_t t = 0;
  int64_t live = 0;
  void* r = nullptr;    // [live, width], by sorted sequence: the products, which become r
  void* out = nullptr;  // r, [T, width], in the order of the input
};
absl::Status StepProjection(DType dtype, const LstmProjection& projection,
                            const ProjectionStep& step, cudaStream_t stream);

// The same step backward, `batch_row` batch rows behind the start. Sequences from `live_behind` on
// have no later step. What lies on a limit of the clip gets no gradient.
struct ProjectionStepBack {
  int64_t t = 0;
  int64_t live = 0;
  int64_t live_behind = 0;
  int64_t batch_row = 0;
  const void* r = nullptr;       // [T, width], in the order of the input, as is `r_grad`
  const void* r_grad = nullptr;  // given
  const void* dr = nullptr;      // [live, width], by sorted sequence: of later steps
  void* sums_grad = nullptr;     // [T, width] in batch rows: of the products
};
absl::Status StepProjectionBack(DType dtype, const LstmProjection& projection,
                                const ProjectionStepBack& step, cudaStream_t stream);

}  // namespace interp::cuda
