#include "kernels/optimizer/chunk.h"

#include <algorithm>

#include "core/element_types.h"

namespace interp::optimizer {
namespace {

// Calls body.operator()<T>() for the type of the elements; infer has refused all but these.
template <typename Body>
void WithFloatType(DType dtype, const Body& body) {
  WithOneOf<float, double, float16, bfloat16>(dtype, body);
}

template <typename From, typename To>
void Convert(const From* from, int64_t n, To* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

}  // namespace

template <typename M>
void ReadChunk(const Tensor& tensor, int64_t at, int64_t n, M* out) {
  WithFloatType(tensor.dtype, [&]<typename T>() { Convert(tensor.data<T>() + at, n, out); });
}

template <typename M>
void WriteChunk(const M* values, int64_t at, int64_t n, Tensor& tensor) {
  WithFloatType(tensor.dtype,
                [&]<typename T>() { Convert(values, n, tensor.mutable_data<T>() + at); });
}

template void ReadChunk(const Tensor&, int64_t, int64_t, float*);
template void ReadChunk(const Tensor&, int64_t, int64_t, double*);
template void WriteChunk(const float*, int64_t, int64_t, Tensor&);
template void WriteChunk(const double*, int64_t, int64_t, Tensor&);

}  // namespace interp::optimizer
