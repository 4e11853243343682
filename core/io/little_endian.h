// Little-endian numbers in bytes, on any machine.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace interp {

// The number at `offset`. REQUIRES: the bytes hold it.
template <std::unsigned_integral T>
T LoadLittle(absl::string_view bytes, uint64_t offset) {
  T value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
  } else {
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<T>(T{static_cast<uint8_t>(bytes[offset + i])} << (8 * i));
    }
  }
  return value;
}
inline float LoadLittleFloat(absl::string_view bytes, uint64_t offset) {
  return std::bit_cast<float>(LoadLittle<uint32_t>(bytes, offset));
}

template <std::unsigned_integral T>
void AppendLittle(T value, std::string& bytes) {
  for (size_t i = 0; i < sizeof(T); ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}
inline void AppendLittleFloat(float value, std::string& bytes) {
  AppendLittle(std::bit_cast<uint32_t>(value), bytes);
}

}  // namespace interp
