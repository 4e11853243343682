#include "core/comm/reduce_parts.h"

#include <algorithm>
#include <array>
#include <complex>
#include <type_traits>

#include "core/element_types.h"

namespace interp {
namespace {

constexpr int64_t kBlock = 1024;  // elements, so that sums stay in the cache

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <typename T>
using Sum = std::conditional_t<kIsHalf<T>, float, T>;

// As unsigned 64-bit numbers integers wrap around, whatever their width.
template <typename T>
T Add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <typename T>
T Multiply(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a && b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}
template <typename T>
T Larger(T a, T b) {
  if constexpr (IsComplex(DTypeOf<T>)) {
    return a;  // CheckReducible
  } else {
    return a > b || a != a ? a : b;
  }
}
template <typename T>
T Smaller(T a, T b) {
  if constexpr (IsComplex(DTypeOf<T>)) {
    return a;  // CheckReducible
  } else {
    return a < b || a != a ? a : b;
  }
}

template <typename T, typename Op>
void Reduce(const std::vector<const void*>& parts, int64_t count, void* out, Op op) {
  std::array<Sum<T>, kBlock> sums;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    const T* const first = static_cast<const T*>(parts[0]) + begin;
    for (int64_t i = 0; i < size; ++i) sums[i] = static_cast<Sum<T>>(first[i]);
    for (size_t p = 1; p < parts.size(); ++p) {
      const T* const part = static_cast<const T*>(parts[p]) + begin;
      for (int64_t i = 0; i < size; ++i) sums[i] = op(sums[i], static_cast<Sum<T>>(part[i]));
    }
    T* const to = static_cast<T*>(out) + begin;
    for (int64_t i = 0; i < size; ++i) to[i] = static_cast<T>(sums[i]);
  }
}

template <typename T>
void ReduceAs(ReduceKind kind, const std::vector<const void*>& parts, int64_t count, void* out) {
  switch (kind) {
    case ReduceKind::kSum:
      return Reduce<T>(parts, count, out, Add<Sum<T>>);
    case ReduceKind::kProd:
      return Reduce<T>(parts, count, out, Multiply<Sum<T>>);
    case ReduceKind::kMax:
      return Reduce<T>(parts, count, out, Larger<Sum<T>>);
    case ReduceKind::kMin:
      return Reduce<T>(parts, count, out, Smaller<Sum<T>>);
  }
}

}  // namespace

absl::string_view Name(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return "sum";
    case ReduceKind::kMax:
      return "max";
    case ReduceKind::kMin:
      return "min";
    case ReduceKind::kProd:
      return "prod";
  }
  return "";
}

absl::Status CheckReducible(DType dtype, ReduceKind kind) {
  const bool is_complex = IsComplex(dtype);
  const bool ordered = kind == ReduceKind::kMax || kind == ReduceKind::kMin;
  const bool unknown =
      dtype == DType::kUndefined || dtype == DType::kFloat8E4M3 || dtype == DType::kFloat8E5M2;
  if (!unknown && !(is_complex && ordered)) return absl::OkStatus();
  return Unimplemented("there is no ", Name(kind), " of ", Name(dtype), " over ranks");
}

void ReduceParts(DType dtype, ReduceKind kind, const std::vector<const void*>& parts, int64_t count,
                 void* out) {
  // CheckReducible refuses all others.
  WithElement(dtype, [&]<typename T>() { ReduceAs<T>(kind, parts, count, out); });
}

}  // namespace interp
