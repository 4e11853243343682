// Vectors of neighbouring elements in the type to compute in: float for bfloat16.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/float16.h"

namespace interp::nn {

// kCount neighbours that are stored as T.
template <typename T, int kCount>
struct Lanes {
  typedef T type __attribute__((vector_size(kCount * sizeof(T))));

  static type Load(const T* from) {
    type value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  static void Store(type value, T* to) { std::memcpy(to, &value, sizeof(value)); }
};

namespace lanes_internal {

// 16-bit numbers and what they are widened to. One by one for each count: GCC 12 loses the vector
// size of types that depend on a template's argument.
template <int kCount>
struct Halves;
#define INTERP_DEFINE_HALVES(count)                                              \
  template <>                                                                    \
  struct Halves<count> {                                                         \
    typedef uint16_t Narrow __attribute__((vector_size(2 * (count))));           \
    typedef uint32_t Wide __attribute__((vector_size(4 * (count))));             \
    static Wide Widen(Narrow v) { return __builtin_convertvector(v, Wide); }     \
    static Narrow Shorten(Wide v) { return __builtin_convertvector(v, Narrow); } \
  }
INTERP_DEFINE_HALVES(1);
INTERP_DEFINE_HALVES(4);
INTERP_DEFINE_HALVES(8);
INTERP_DEFINE_HALVES(16);
#undef INTERP_DEFINE_HALVES

}  // namespace lanes_internal

// Computed with as float.
template <int kCount>
struct Lanes<bfloat16, kCount> {
  using Halves = lanes_internal::Halves<kCount>;
  using Bits = typename Halves::Wide;
  using type = typename Lanes<float, kCount>::type;

  static type Load(const bfloat16* from) {
    typename Halves::Narrow bits;
    std::memcpy(&bits, from, sizeof(bits));
    return (type)(Halves::Widen(bits) << 16);
  }
  // As bfloat16::FromFloat.
  static void Store(type value, bfloat16* to) {
    const Bits bits = (Bits)value;
    const Bits rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const Bits nan = (bits >> 16) | 0x40U;
    const auto is_nan = (Bits)((bits & 0x7fffffffU) > 0x7f800000U);
    const typename Halves::Narrow narrow = Halves::Shorten((nan & is_nan) | (rounded & ~is_nan));
    std::memcpy(static_cast<void*>(to), &narrow, sizeof(narrow));
  }
};

}  // namespace interp::nn
