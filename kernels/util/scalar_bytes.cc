#include "kernels/util/scalar_bytes.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/element_types.h"

namespace interp {
namespace {

template <typename T>
ScalarBytes Pack(T value) {
  ScalarBytes scalar;
  std::memcpy(scalar.bytes.data(), &value, sizeof(T));
  return scalar;
}

int64_t Saturate(double value) {
  constexpr double kLimit = 0x1p63;
  if (std::isnan(value)) return 0;
  if (value >= kLimit) return std::numeric_limits<int64_t>::max();
  if (value < -kLimit) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

}  // namespace

ScalarBytes ToScalarBytes(DType dtype, double value) {
  switch (dtype) {
    case DType::kBool:
      return Pack(value != 0);
    case DType::kFloat16:
      return Pack(float16(static_cast<float>(value)));
    case DType::kBFloat16:
      return Pack(bfloat16(static_cast<float>(value)));
    case DType::kFloat32:
      return Pack(static_cast<float>(value));
    case DType::kFloat64:
      return Pack(value);
    case DType::kComplex64:
      return Pack(std::complex<float>(static_cast<float>(value)));
    case DType::kComplex128:
      return Pack(std::complex<double>(value));
    default:
      return ToScalarBytes(dtype, Saturate(value));
  }
}

ScalarBytes ToScalarBytes(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kInt8:
      return Pack(static_cast<int8_t>(value));
    case DType::kUInt8:
      return Pack(static_cast<uint8_t>(value));
    case DType::kInt16:
      return Pack(static_cast<int16_t>(value));
    case DType::kInt32:
      return Pack(static_cast<int32_t>(value));
    case DType::kInt64:
      return Pack(value);
    case DType::kUndefined:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return ScalarBytes();
    default:
      return ToScalarBytes(dtype, static_cast<double>(value));
  }
}

absl::StatusOr<ScalarBytes> FirstElementAs(DType dtype, const Tensor& tensor) {
  ScalarBytes scalar;
  const auto pack = [&]<typename T>() {
    using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    scalar = ToScalarBytes(dtype, static_cast<Wide>(*tensor.data<T>()));
  };
  if (WithNumber(tensor.dtype, pack)) return scalar;
  return InvalidArgument("value tensor is ", DescribeType(tensor), ", expected a real number");
}

absl::StatusOr<ScalarBytes> ReadScalar(const OpContext& ctx, int slot, absl::string_view name,
                                       DType dtype, const ScalarBytes& attr) {
  const Tensor* const tensor = ctx.optional_input(slot);
  if (tensor == nullptr) return attr;
  if (tensor->numel() != 1 || !tensor->has_memory()) {
    return InvalidArgument("'", name, "' is ", DescribeType(*tensor), ", expected one element");
  }
  return FirstElementAs(dtype, *tensor);
}

absl::StatusOr<float> ReadFloat(const OpContext& ctx, int slot, absl::string_view name,
                                float attr) {
  INTERP_ASSIGN_OR_RETURN(const ScalarBytes scalar,
                          ReadScalar(ctx, slot, name, DType::kFloat32,
                                     ToScalarBytes(DType::kFloat32, static_cast<double>(attr))));
  float value = 0;
  std::memcpy(&value, scalar.bytes.data(), sizeof(value));
  return value;
}

}  // namespace interp
