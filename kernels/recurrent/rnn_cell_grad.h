// Gradients of recurrent cells: one row (one sequence of a batch) in one time step. `gates` are the
// activated ones; `dgates` gets the gradients of what was activated. `dh` and `dy`, the gradient of
// the output, sum up to that of the new state; dh becomes what reaches the old one past the
// weights. The loops are vectorised: only what is named twice overlaps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/util/vector_math.h"

namespace interp::nn {

// c and c_before are the cell states after and before the step; dc goes from one to the other.
template <typename T>
void LstmCellGrad(int64_t size, const T* gates, const T* c, const T* c_before, const T* dy, T* dh,
                  T* dc, T* dgates) {
  const T* input = gates;
  const T* forget = gates + size;
  const T* candidate = gates + 2 * size;
  const T* output = gates + 3 * size;
#pragma GCC ivdep
  for (int64_t j = 0; j < size; ++j) {
    const T active = Tanh(c[j]);
    const T dstate = dh[j] + dy[j];
    const T dcell = dc[j] + dstate * output[j] * (T{1} - active * active);
    dgates[j] = dcell * candidate[j] * input[j] * (T{1} - input[j]);
    dgates[size + j] = dcell * c_before[j] * forget[j] * (T{1} - forget[j]);
    dgates[2 * size + j] = dcell * input[j] * (T{1} - candidate[j] * candidate[j]);
    dgates[3 * size + j] = dstate * active * output[j] * (T{1} - output[j]);
    dc[j] = dcell * forget[j];
    dh[j] = 0;
  }
}

// `share` is the state's share of the candidate before the reset gate; `dstate` gets the gradients
// of what the state contributes to the gates, `dgates` of what the input does.
template <typename T>
void GruCellGrad(int64_t size, const T* gates, const T* share, const T* h_before, const T* dy,
                 T* dh, T* dgates, T* dstate) {
  const T* reset = gates;
  const T* update = gates + size;
  const T* candidate = gates + 2 * size;
#pragma GCC ivdep
  for (int64_t j = 0; j < size; ++j) {
    const T dnext = dh[j] + dy[j];
    const T dcandidate = dnext * (T{1} - update[j]) * (T{1} - candidate[j] * candidate[j]);
    const T dreset = dcandidate * share[j] * reset[j] * (T{1} - reset[j]);
    const T dupdate = dnext * (h_before[j] - candidate[j]) * update[j] * (T{1} - update[j]);
    dgates[j] = dstate[j] = dreset;
    dgates[size + j] = dstate[size + j] = dupdate;
    dgates[2 * size + j] = dcandidate;
    dstate[2 * size + j] = dcandidate * reset[j];
    dh[j] = dnext * update[j];
  }
}

template <typename T>
void TanhCellGrad(int64_t size, const T* gates, const T* dy, T* dh, T* dgates) {
#pragma GCC ivdep
  for (int64_t j = 0; j < size; ++j) {
    dgates[j] = (dh[j] + dy[j]) * (T{1} - gates[j] * gates[j]);
    dh[j] = 0;
  }
}

template <typename T>
void ReluCellGrad(int64_t size, const T* gates, const T* dy, T* dh, T* dgates) {
#pragma GCC ivdep
  for (int64_t j = 0; j < size; ++j) {
    dgates[j] = gates[j] > T{0} ? dh[j] + dy[j] : T{0};
    dh[j] = 0;
  }
}

}  // namespace interp::nn
