#include "kernels/util/logistic_rows.h"

#include "kernels/util/avx512_vectors.h"
#include "kernels/util/vector_math.h"

namespace interp {

#if defined(__AVX512DQ__)

namespace {

// e^-t for t >= 0. NaN gives NaN.
__m512 ExpOfMinus(__m512 t) {
  using namespace vector_math;                              // NOLINT(google-build-using-namespace)
  const __m512 at = _mm512_min_ps(_mm512_set1_ps(105), t);  // beyond: 0; the order lets NaN through
  const __m512 to_integer = _mm512_set1_ps(kToInteger);
  const __m512 n =
      _mm512_sub_ps(_mm512_fnmadd_ps(at, _mm512_set1_ps(kLog2E), to_integer), to_integer);
  const __m512 high = _mm512_fnmsub_ps(n, _mm512_set1_ps(kLn2Hi), at);
  const __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2Lo), high);
  __m512 p = _mm512_set1_ps(kExpTerms[0]);
#pragma GCC unroll 4
  for (int i = 1; i < 5; ++i) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpTerms[i]));
  const __m512 one = _mm512_set1_ps(1);
  p = _mm512_fmadd_ps(_mm512_fmadd_ps(p, r, one), r, one);
  return _mm512_scalef_ps(p, n);
}

// `x` times the logistic function of `t`: of e = e^-|t| <= 1 it is x (t < 0 ? e : 1) / (1 + e).
__m512 TimesLogistic(__m512 x, __m512 t) {
  const __m512 one = _mm512_set1_ps(1);
  const __m512 e = ExpOfMinus(_mm512_abs_ps(t));
  const __m512 sum = _mm512_add_ps(e, one);
  const __m512 near = _mm512_rcp14_ps(sum);
  const __m512 quotient = _mm512_fmadd_ps(near, _mm512_fnmadd_ps(sum, near, one), near);
  const __mmask16 negative = _mm512_movepi32_mask(_mm512_castps_si512(t));
  return _mm512_mul_ps(_mm512_mask_mul_ps(x, negative, x, e), quotient);
}

}  // namespace

void SigmoidRow(const float* x, float* out, int64_t n) {
  ForVectors(n, [&](int64_t i, __mmask16 lanes) {
    const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
    _mm512_mask_storeu_ps(out + i, lanes, TimesLogistic(_mm512_set1_ps(1), v));
  });
}

void SwishRow(float beta, const float* x, float* out, int64_t n) {
  const __m512 betas = _mm512_set1_ps(beta);
  ForVectors(n, [&](int64_t i, __mmask16 lanes) {
    const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
    _mm512_mask_storeu_ps(out + i, lanes, TimesLogistic(v, _mm512_mul_ps(betas, v)));
  });
}

bool LogisticRowsAreFast() { return true; }

#else

void SigmoidRow(const float* x, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = Sigmoid(x[i]);
}

void SwishRow(float beta, const float* x, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * Sigmoid(beta * x[i]);
}

bool LogisticRowsAreFast() { return false; }

#endif

}  // namespace interp
