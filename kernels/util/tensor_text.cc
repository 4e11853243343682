#include "kernels/util/tensor_text.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace interp {
namespace {

template <typename T>
std::string Join(const Tensor& tensor, int64_t count) {
  using Printed = std::conditional_t<std::is_integral_v<T>, int64_t, float>;
  const T* const data = tensor.data<T>();
  return absl::StrJoin(data, data + count, " ", [](std::string* out, T value) {
    if constexpr (std::is_same_v<T, double>) {
      absl::StrAppend(out, value);
    } else {
      absl::StrAppend(out, static_cast<Printed>(value));
    }
  });
}

std::string JoinValues(const Tensor& tensor, int64_t count) {
  switch (tensor.dtype) {
    case DType::kFloat32:
      return Join<float>(tensor, count);
    case DType::kFloat64:
      return Join<double>(tensor, count);
    case DType::kFloat16:
      return Join<float16>(tensor, count);
    case DType::kBFloat16:
      return Join<bfloat16>(tensor, count);
    case DType::kInt32:
      return Join<int32_t>(tensor, count);
    case DType::kInt64:
      return Join<int64_t>(tensor, count);
    case DType::kInt16:
      return Join<int16_t>(tensor, count);
    case DType::kInt8:
      return Join<int8_t>(tensor, count);
    case DType::kUInt8:
      return Join<uint8_t>(tensor, count);
    case DType::kBool:
      return Join<bool>(tensor, count);
    default:
      return absl::StrCat("values of ", Name(tensor.dtype));
  }
}

}  // namespace

std::string ValuesText(const Tensor& tensor, int64_t most) {
  if (tensor.numel() > 0 && !tensor.has_memory()) return "[no value]";
  const int64_t count = most < 0 ? tensor.numel() : std::min(most, tensor.numel());
  return absl::StrCat("[", count > 0 ? JoinValues(tensor, count) : "", "]");
}

std::string LodText(const Lod& lod) {
  std::string text = "{";
  for (const std::vector<int64_t>& level : lod) {
    absl::StrAppend(&text, "{", absl::StrJoin(level, ", "), "}");
  }
  return text + "}";
}

}  // namespace interp
