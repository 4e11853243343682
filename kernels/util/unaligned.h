// Elements of a given size at any address, for loops that move data without looking at it.
#pragma once

#include <cstdint>

namespace interp {

// An element of kBytes bytes at any address, of whatever type it was stored as.
template <int kBytes>
struct UnalignedElement;
template <>
struct UnalignedElement<1> {
  typedef uint8_t Type __attribute__((may_alias));
};
template <>
struct UnalignedElement<2> {
  typedef uint16_t Type __attribute__((aligned(1), may_alias));
};
template <>
struct UnalignedElement<4> {
  typedef uint32_t Type __attribute__((aligned(1), may_alias));
};
template <>
struct UnalignedElement<8> {
  typedef uint64_t Type __attribute__((aligned(1), may_alias));
};
template <>
struct UnalignedElement<16> {
  typedef uint64_t Type __attribute__((vector_size(16), aligned(1), may_alias));
};

}  // namespace interp
