#include "core/array/filled.h"

#include <algorithm>
#include <complex>

#include "core/array/array_runtime.h"
#include "core/element_types.h"

namespace interp {

absl::StatusOr<Array> Filled(ArrayRuntime& runtime, const Shape& shape, DType dtype, double value,
                             Place place) {
  Tensor tensor;
  tensor.shape = shape;
  tensor.dtype = dtype;
  INTERP_RETURN_IF_ERROR(tensor.Allocate(runtime.host_pool()));
  const bool floats =
      WithOneOf<float, double, float16, bfloat16, std::complex<float>, std::complex<double>>(
          dtype, [&]<typename T>() {
            std::fill_n(tensor.mutable_data<T>(), tensor.numel(), static_cast<T>(value));
          });
  if (!floats) {
    return Unimplemented("an array of ", Name(dtype), " of one value; expected one of floats");
  }
  INTERP_ASSIGN_OR_RETURN(Array array, runtime.Adopt(tensor));
  if (place.on_host()) return array;
  return array.CopyTo(place);
}

}  // namespace interp
