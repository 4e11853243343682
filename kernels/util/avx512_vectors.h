// Vectors of 16 floats, where the build has AVX-512: the intrinsics and loops over rows.
#pragma once

#if defined(__AVX512DQ__)

#include <cstdint>

// GCC 12 takes the undefined lanes of its own intrinsics for a mistake of ours.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

namespace interp {

// Calls body(i, lanes) for 16 elements from i on at a time, or for the `lanes` that are left.
template <typename Body>
void ForVectors(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) body(i, static_cast<__mmask16>(0xffff));
  if (i < n) body(i, static_cast<__mmask16>((1U << (n - i)) - 1));
}

}  // namespace interp

#endif
