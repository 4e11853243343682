#include "interpreter/run/finite.h"

#include <cmath>

namespace interp {
namespace {

template <typename T>
bool AllFinite(const Tensor& tensor) {
  const T* data = tensor.data<T>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (!std::isfinite(static_cast<double>(data[i]))) return false;
  }
  return true;
}

}  // namespace

bool HasOnlyFinite(const Tensor& tensor) {
  if (!tensor.has_memory()) return true;
  switch (tensor.dtype) {
    case DType::kFloat32:
      return AllFinite<float>(tensor);
    case DType::kFloat64:
      return AllFinite<double>(tensor);
    case DType::kFloat16:
      return AllFinite<float16>(tensor);
    case DType::kBFloat16:
      return AllFinite<bfloat16>(tensor);
    default:
      return true;
  }
}

}  // namespace interp
