// Vectors as long as a register of the processor that is compiled for.
#pragma once

namespace interp {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <typename T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
  // For loads and stores of any alignment; may alias everything.
  typedef T unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
  static constexpr int kLanes = kVectorBytes / sizeof(T);
};

}  // namespace interp
