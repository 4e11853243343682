// Elements of device memory as the host sees them, for emulated libraries, which compute in double.
#pragma once

#include <library_types.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/float16.h"

namespace interp::cuda_emulation {

inline size_t ElementBytes(cudaDataType_t type) {
  return type == CUDA_R_64F ? sizeof(double) : type == CUDA_R_32F ? sizeof(float) : 2;
}

template <typename T>
std::vector<double> LoadAs(const char* from, int64_t count) {
  const T* const values = reinterpret_cast<const T*>(from);
  return std::vector<double>(values, values + count);
}
// `count` elements of `type`.
inline std::vector<double> Load(cudaDataType_t type, const char* from, int64_t count) {
  switch (type) {
    case CUDA_R_64F:
      return LoadAs<double>(from, count);
    case CUDA_R_32F:
      return LoadAs<float>(from, count);
    case CUDA_R_16F:
      return LoadAs<float16>(from, count);
    case CUDA_R_16BF:
      return LoadAs<bfloat16>(from, count);
  }
  return {};
}

// To the ten bits of fraction that tensor cores keep of float32.
inline void RoundToTf32(std::vector<double>& values) {
  constexpr uint32_t kDropped = (1u << 13) - 1;
  for (double& value : values) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    if (!std::isnan(value)) value = std::bit_cast<float>((bits + (kDropped >> 1)) & ~kDropped);
  }
}

template <typename T>
void StoreAs(const std::vector<double>& values, char* to) {
  T* const out = reinterpret_cast<T*>(to);
  for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<T>(static_cast<float>(values[i]));
}
// Rounds to `type`, as an accumulator in float would be.
inline void Store(cudaDataType_t type, const std::vector<double>& values, char* to) {
  switch (type) {
    case CUDA_R_64F:
      for (size_t i = 0; i < values.size(); ++i) reinterpret_cast<double*>(to)[i] = values[i];
      return;
    case CUDA_R_32F:
      return StoreAs<float>(values, to);
    case CUDA_R_16F:
      return StoreAs<float16>(values, to);
    case CUDA_R_16BF:
      return StoreAs<bfloat16>(values, to);
  }
}

}  // namespace interp::cuda_emulation
