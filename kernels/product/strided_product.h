// Products of matrices whose rows lie apart, as they do in tensors whose batch dims stand between
// or behind those of the matrices: heads of attention that nobody has transposed.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "core/op_def.h"

namespace interp::nn {

// One dim of a batch, and the elements from a matrix to the next along it; 0 where it is repeated.
struct StridedBatchDim {
  int64_t length = 1;
  int64_t x_step = 0;
  int64_t y_step = 0;
  int64_t out_step = 0;
};

// out[i, j] = the sum over l of x[i, l] y[l, j]. Of each operand, one of the two strides is 1.
// Columns of the result follow one another.
struct StridedProduct {
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  int64_t x_row = 1;     // from x[i, l] to x[i + 1, l]
  int64_t x_column = 1;  // to x[i, l + 1]
  int64_t y_row = 1;
  int64_t y_column = 1;
  int64_t out_row = 1;
  absl::InlinedVector<StridedBatchDim, 4> batch = {};

  int64_t count() const;  // of matrices in the result
};

// Packs each Y right before it is multiplied with. T is float or double.
template <typename T>
absl::Status RunStridedProduct(const KernelContext& ctx, const StridedProduct& product, const T* x,
                               const T* y, T* out);

}  // namespace interp::nn
