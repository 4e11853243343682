// Arrays in pieces of the type an update computes in, float or double. Arrays of that type are used
// where they lie; others are converted in pieces that stay in cache.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace interp::optimizer {

// Elements of a piece. Their grouping does not depend on the number of threads, so neither do bits.
inline constexpr int64_t kChunk = 1024;

inline int64_t NumChunks(int64_t elements) { return (elements + kChunk - 1) / kChunk; }

// Converts elements [at, at + n) of a tensor of floats.
template <typename M>
void ReadChunk(const Tensor& tensor, int64_t at, int64_t n, M* out);
template <typename M>
void WriteChunk(const M* values, int64_t at, int64_t n, Tensor& tensor);

// Elements [at, at + n): where they lie, or a converted copy in `buffer`.
template <typename M>
const M* LoadChunk(const Tensor& tensor, int64_t at, int64_t n, M* buffer) {
  if (tensor.dtype == DTypeOf<M>) return tensor.data<M>() + at;
  ReadChunk(tensor, at, n, buffer);
  return buffer;
}

// Where new values of [at, ...) are to be written: the tensor itself, or `buffer` until StoreChunk.
template <typename M>
M* TargetOf(Tensor& tensor, int64_t at, M* buffer) {
  return tensor.dtype == DTypeOf<M> ? tensor.mutable_data<M>() + at : buffer;
}
template <typename M>
void StoreChunk(const M* values, int64_t at, int64_t n, Tensor& tensor) {
  if (tensor.dtype == DTypeOf<M> && tensor.data<M>() + at == values) return;
  WriteChunk(values, at, n, tensor);
}

// The value of a tensor of one float.
template <typename M>
M ScalarOf(const Tensor& tensor) {
  M value;
  ReadChunk(tensor, 0, 1, &value);
  return value;
}
template <typename M>
void SetScalar(M value, Tensor& tensor) {
  WriteChunk(&value, 0, 1, tensor);
}

}  // namespace interp::optimizer
