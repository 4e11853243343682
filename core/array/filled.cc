#include "core/array/filled.h"

#include <algorithm>

#include "core/array/array_runtime.h"
#include "core/float16.h"

namespace interp {
namespace {

template <typename T>
void Fill(double value, Tensor& tensor) {
  std::fill_n(tensor.mutable_data<T>(), tensor.numel(), static_cast<T>(value));
}

}  // namespace

absl::StatusOr<Array> Filled(ArrayRuntime& runtime, const Shape& shape, DType dtype, double value,
                             Place place) {
  Tensor tensor;
  tensor.shape = shape;
  tensor.dtype = dtype;
  INTERP_RETURN_IF_ERROR(tensor.Allocate(runtime.host_pool()));
  switch (dtype) {
    case DType::kFloat32:
      Fill<float>(value, tensor);
      break;
    case DType::kFloat64:
      Fill<double>(value, tensor);
      break;
    case DType::kFloat16:
      Fill<float16>(value, tensor);
      break;
    case DType::kBFloat16:
      Fill<bfloat16>(value, tensor);
      break;
    default:
      return Unimplemented("an array of ", Name(dtype), " of one value; expected one of floats");
  }
  INTERP_ASSIGN_OR_RETURN(Array array, runtime.Adopt(tensor));
  if (place.on_host()) return array;
  return array.CopyTo(place);
}

}  // namespace interp
