#include "interpreter/run/finite.h"

#include <cmath>

namespace interp {
namespace {

// `parts`: numbers in an element.
template <typename T>
bool AllFinite(const Tensor& tensor, int64_t parts = 1) {
  const T* data = static_cast<const T*>(tensor.raw_data());
  for (int64_t i = 0; i < tensor.numel() * parts; ++i) {
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
    case DType::kComplex64:
      return AllFinite<float>(tensor, 2);
    case DType::kComplex128:
      return AllFinite<double>(tensor, 2);
    default:
      return true;
  }
}

}  // namespace interp
