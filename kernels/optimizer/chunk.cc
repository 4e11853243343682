#include "kernels/optimizer/chunk.h"

#include <algorithm>

#include "core/float16.h"

namespace interp::optimizer {
namespace {

// Calls visit(T()) with the type of the elements.
template <typename Visit>
void WithFloatType(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kFloat16:
      return visit(float16());
    case DType::kBFloat16:
      return visit(bfloat16());
    case DType::kFloat64:
      return visit(double());
    default:  // infer has refused everything else
      return visit(float());
  }
}

template <typename From, typename To>
void Convert(const From* from, int64_t n, To* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

}  // namespace

template <typename M>
void ReadChunk(const Tensor& tensor, int64_t at, int64_t n, M* out) {
  WithFloatType(tensor.dtype,
                [&](auto type) { Convert(tensor.data<decltype(type)>() + at, n, out); });
}

template <typename M>
void WriteChunk(const M* values, int64_t at, int64_t n, Tensor& tensor) {
  WithFloatType(tensor.dtype,
                [&](auto type) { Convert(values, n, tensor.mutable_data<decltype(type)>() + at); });
}

template void ReadChunk(const Tensor&, int64_t, int64_t, float*);
template void ReadChunk(const Tensor&, int64_t, int64_t, double*);
template void WriteChunk(const float*, int64_t, int64_t, Tensor&);
template void WriteChunk(const double*, int64_t, int64_t, Tensor&);

}  // namespace interp::optimizer
