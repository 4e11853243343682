#include "tests/cuda_emulation/nccl_sums.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/float16.h"

namespace interp::cuda_emulation {
namespace {

template <typename T>
T Combine(ncclRedOp_t operation, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Bits = uint64_t;  // which wraps around
    if (operation == ncclSum) return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
    if (operation == ncclProd) return static_cast<T>(static_cast<Bits>(a) * static_cast<Bits>(b));
    return operation == ncclMax ? std::max(a, b) : std::min(a, b);
  } else {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto x = static_cast<Wide>(a);
    const auto y = static_cast<Wide>(b);
    if (operation == ncclSum) return static_cast<T>(x + y);
    if (operation == ncclProd) return static_cast<T>(x * y);
    return static_cast<T>(operation == ncclMax ? std::fmax(x, y) : std::fmin(x, y));
  }
}

template <typename T>
std::string ReduceAs(ncclRedOp_t operation, const std::vector<std::string>& parts, size_t first) {
  std::string sum = parts[first];
  T* const out = reinterpret_cast<T*>(sum.data());
  for (size_t i = 1; i < parts.size(); ++i) {
    const T* const in = reinterpret_cast<const T*>(parts[(first + i) % parts.size()].data());
    for (size_t e = 0; e < sum.size() / sizeof(T); ++e) out[e] = Combine(operation, out[e], in[e]);
  }
  return sum;
}

}  // namespace

size_t ElementBytes(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclFloat64:
      return 8;
  }
  return 0;
}

std::string ReduceRanks(ncclDataType_t type, ncclRedOp_t operation,
                        const std::vector<std::string>& parts, size_t first) {
  switch (type) {
    case ncclInt8:
      return ReduceAs<int8_t>(operation, parts, first);
    case ncclUint8:
      return ReduceAs<uint8_t>(operation, parts, first);
    case ncclInt32:
      return ReduceAs<int32_t>(operation, parts, first);
    case ncclInt64:
      return ReduceAs<int64_t>(operation, parts, first);
    case ncclFloat16:
      return ReduceAs<float16>(operation, parts, first);
    case ncclBfloat16:
      return ReduceAs<bfloat16>(operation, parts, first);
    case ncclFloat32:
      return ReduceAs<float>(operation, parts, first);
    case ncclFloat64:
      return ReduceAs<double>(operation, parts, first);
  }
  return {};
}

}  // namespace interp::cuda_emulation
