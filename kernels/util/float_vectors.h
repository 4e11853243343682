// Vectors of floats as wide as the build's registers, for functions over rows: 16 with AVX-512, 8
// with AVX2 and FMA. INTERP_FLOAT_LANES is their number, 0 where there are none and nothing else
// is declared.
//
// Sums, differences, products and quotients of vectors are written with operators.
#pragma once

#if defined(__AVX512DQ__)
#define INTERP_FLOAT_LANES 16
#elif defined(__AVX2__) && defined(__FMA__)
#define INTERP_FLOAT_LANES 8
#else
#define INTERP_FLOAT_LANES 0
#endif

#if INTERP_FLOAT_LANES > 0

#include <cstdint>
#include <cstring>

// GCC 12 takes the undefined lanes of its own intrinsics for a mistake of ours.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

namespace interp {

#if INTERP_FLOAT_LANES == 16

using Floats = __m512;
using FloatMask = __mmask16;

inline Floats Broadcast(float x) { return _mm512_set1_ps(x); }
inline Floats Load(__mmask16 lanes, const float* from) {
  return _mm512_maskz_loadu_ps(lanes, from);
}
inline void Store(__mmask16 lanes, float* to, Floats v) { _mm512_mask_storeu_ps(to, lanes, v); }

inline Floats MulAdd(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
inline Floats MinusMulAdd(Floats a, Floats b, Floats c) { return _mm512_fnmadd_ps(a, b, c); }
inline Floats Abs(Floats v) { return _mm512_abs_ps(v); }
// Of a NaN and a number the second.
inline Floats Min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
inline Floats Max(Floats a, Floats b) { return _mm512_max_ps(a, b); }

inline FloatMask IsGreater(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
inline FloatMask HasSign(Floats v) { return _mm512_movepi32_mask(_mm512_castps_si512(v)); }
inline Floats Select(FloatMask mask, Floats yes, Floats no) {
  return _mm512_mask_blend_ps(mask, no, yes);
}
// The magnitude of `v`, which has no sign, with the sign of `sign`.
inline Floats WithSignOf(Floats sign, Floats v) {
  return _mm512_or_ps(v, _mm512_and_ps(sign, Broadcast(-0.0F)));
}

// v 2^n for a whole n in [-200, 0], of which the result may be subnormal. v is in [1/2, 2] or NaN.
inline Floats ScaleDown(Floats v, Floats n) { return _mm512_scalef_ps(v, n); }

// x / y to 2 units in the last place, for y in [1, 2]: half the time of a division.
inline Floats QuickQuotient(Floats x, Floats y) {
  const Floats near = _mm512_rcp14_ps(y);
  return x * MulAdd(near, MinusMulAdd(y, near, Broadcast(1)), near);
}

// 32 numbers to choose from.
class FloatTable {
 public:
  static constexpr int kSize = 32;
  FloatTable() = default;
  explicit FloatTable(const float* from)
      : low_(_mm512_loadu_ps(from)), high_(_mm512_loadu_ps(from + 16)) {}
  // In each lane the number that the lowest bits of `index` name.
  Floats operator[](Floats index) const {
    return _mm512_permutex2var_ps(low_, _mm512_castps_si512(index), high_);
  }

 private:
  Floats low_, high_;
};

// Calls body(i, lanes) for 16 elements from i on at a time, or for the `lanes` that are left.
template <typename Body>
void ForVectors(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) body(i, static_cast<__mmask16>(0xffff));
  if (i < n) body(i, static_cast<__mmask16>((1U << (n - i)) - 1));
}

#else

using Floats = __m256;
using FloatMask = __m256;  // the sign of each lane

// Which lanes are loaded and stored. Masked stores of AVX2 take tens of cycles on AMD's processors.
struct AllLanes {};
struct FirstLanes {
  int64_t count;
};

inline Floats Broadcast(float x) { return _mm256_set1_ps(x); }
inline Floats Load(AllLanes /*lanes*/, const float* from) { return _mm256_loadu_ps(from); }
inline Floats Load(FirstLanes lanes, const float* from) {
  alignas(32) float all[8] = {};
  std::memcpy(all, from, static_cast<size_t>(lanes.count) * sizeof(float));
  return _mm256_load_ps(all);
}
inline void Store(AllLanes /*lanes*/, float* to, Floats v) { _mm256_storeu_ps(to, v); }
inline void Store(FirstLanes lanes, float* to, Floats v) {
  alignas(32) float all[8];
  _mm256_store_ps(all, v);
  std::memcpy(to, all, static_cast<size_t>(lanes.count) * sizeof(float));
}

inline Floats MulAdd(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
inline Floats MinusMulAdd(Floats a, Floats b, Floats c) { return _mm256_fnmadd_ps(a, b, c); }
inline Floats Abs(Floats v) { return _mm256_andnot_ps(Broadcast(-0.0F), v); }
// Of a NaN and a number the second.
inline Floats Min(Floats a, Floats b) { return _mm256_min_ps(a, b); }
inline Floats Max(Floats a, Floats b) { return _mm256_max_ps(a, b); }

inline FloatMask IsGreater(Floats a, Floats b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
inline FloatMask HasSign(Floats v) { return v; }
inline Floats Select(FloatMask mask, Floats yes, Floats no) {
  return _mm256_blendv_ps(no, yes, mask);
}
// The magnitude of `v`, which has no sign, with the sign of `sign`.
inline Floats WithSignOf(Floats sign, Floats v) {
  return _mm256_or_ps(v, _mm256_and_ps(sign, Broadcast(-0.0F)));
}

// v 2^n for a whole n in [-200, 0], of which the result may be subnormal. v is in [1/2, 2] or NaN.
inline Floats ScaleDown(Floats v, Floats n) {
  const auto power = [](__m256i exponent) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23));
  };
  const __m256i whole = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  return v * power(half) * power(_mm256_sub_epi32(whole, half));
}

// x / y. An estimate with a step of Newton's method saves nothing here.
inline Floats QuickQuotient(Floats x, Floats y) { return x / y; }

// 8 numbers to choose from.
class FloatTable {
 public:
  static constexpr int kSize = 8;
  FloatTable() = default;
  explicit FloatTable(const float* from) : all_(_mm256_loadu_ps(from)) {}
  // In each lane the number that the lowest bits of `index` name.
  Floats operator[](Floats index) const {
    return _mm256_permutevar8x32_ps(all_, _mm256_castps_si256(index));
  }

 private:
  Floats all_;
};

// Calls body(i, lanes) for 8 elements from i on at a time, or for the `lanes` that are left.
template <typename Body>
void ForVectors(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) body(i, AllLanes{});
  if (i < n) body(i, FirstLanes{n - i});
}

#endif

}  // namespace interp

#endif
