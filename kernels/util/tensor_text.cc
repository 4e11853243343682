#include "kernels/util/tensor_text.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/element_types.h"

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
  std::string text;
  const auto join = [&]<typename T>() { text = Join<T>(tensor, count); };
  return WithNumber(tensor.dtype, join) ? text : absl::StrCat("values of ", Name(tensor.dtype));
}

}  // namespace

std::string ValuesText(const Tensor& tensor, int64_t most) {
  if (tensor.numel() > 0 && !tensor.has_memory()) return "[no value]";
  const int64_t count = most < 0 ? tensor.numel() : std::min(most, tensor.numel());
  return absl::StrCat("[", count > 0 ? JoinValues(tensor, count) : "", "]");
}

std::string BracedLodText(const Lod& lod) {
  std::string text = "{";
  for (const std::vector<int64_t>& level : lod) {
    absl::StrAppend(&text, "{", absl::StrJoin(level, ", "), "}");
  }
  return text + "}";
}

}  // namespace interp
