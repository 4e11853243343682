#include "kernels/util/erf_rows.h"

#include <array>
#include <cmath>
#include <numbers>

#include "kernels/util/avx512_vectors.h"
#include "kernels/util/vector_math.h"

namespace interp {

#if defined(__AVX512DQ__)

namespace {

// The polynomial by powers, from the constant on, that interpolates f on [-1/2, 1/2] at Chebyshev's
// points, by Newton's divided differences.
template <int kTerms, typename F>
std::array<double, kTerms> Interpolate(const F& f) {
  std::array<double, kTerms> x;
  std::array<double, kTerms> divided;
  for (int j = 0; j < kTerms; ++j) {
    x[j] = 0.5 * std::cos((j + 0.5) * std::numbers::pi / kTerms);
    divided[j] = f(x[j]);
  }
  for (int level = 1; level < kTerms; ++level) {
    for (int j = kTerms - 1; j >= level; --j) {
      divided[j] = (divided[j] - divided[j - 1]) / (x[j] - x[j - level]);
    }
  }
  std::array<double, kTerms> powers = {};
  for (int j = kTerms - 1; j >= 0; --j) {
    for (int p = kTerms - 1; p > 0; --p) powers[p] = powers[p - 1] - x[j] * powers[p];
    powers[0] = divided[j] - x[j] * powers[0];
  }
  return powers;
}

// A function of t >= 0 in intervals of equal width around 0, 1, ... 31 times it: a polynomial of
// degree kDegree in each, and `beyond` in the last, which begins at `limit`, and above.
template <int kDegree>
struct Piecewise {
  static constexpr int kLast = 31;
  alignas(64) float terms[kDegree + 1][kLast + 1] = {};  // of t / width - interval
  float scale;                                           // 1 / width

  // `f` is defined for t >= -limit / 61, too.
  template <typename F>
  Piecewise(double limit, float beyond, const F& f) : scale(static_cast<float>(30.5 / limit)) {
    for (int i = 0; i < kLast; ++i) {
      const auto powers =
          Interpolate<kDegree + 1>([&](double rest) { return f((i + rest) / double{scale}); });
      for (int p = 0; p <= kDegree; ++p) terms[p][i] = static_cast<float>(powers[p]);
    }
    terms[0][kLast] = beyond;
  }
};

// The terms of a Piecewise in registers.
template <int kDegree>
class Lookup {
 public:
  explicit Lookup(const Piecewise<kDegree>& table) : scale_(_mm512_set1_ps(table.scale)) {
#pragma GCC unroll 6
    for (int p = 0; p <= kDegree; ++p) {
      low_[p] = _mm512_load_ps(table.terms[p]);
      high_[p] = _mm512_load_ps(table.terms[p] + 16);
    }
  }

  // The function at 16 values of t. NaN gives NaN.
  __m512 operator()(__m512 t) const {
    const __m512 last = _mm512_set1_ps(Piecewise<kDegree>::kLast);
    const __m512 at = _mm512_min_ps(last, _mm512_mul_ps(t, scale_));
    const __m512 to_integer = _mm512_set1_ps(vector_math::kToInteger);
    const __m512 shifted = _mm512_add_ps(at, to_integer);
    const __m512i interval = _mm512_castps_si512(shifted);  // in its lowest bits
    const __m512 rest = _mm512_sub_ps(at, _mm512_sub_ps(shifted, to_integer));
    __m512 sum = _mm512_permutex2var_ps(low_[kDegree], interval, high_[kDegree]);
#pragma GCC unroll 6
    for (int p = kDegree - 1; p >= 0; --p) {
      sum = _mm512_fmadd_ps(sum, rest, _mm512_permutex2var_ps(low_[p], interval, high_[p]));
    }
    return sum;
  }

 private:
  __m512 scale_;
  __m512 low_[kDegree + 1];
  __m512 high_[kDegree + 1];
};

// erf(t) / t, which is even.
const Piecewise<4>& ErfByT() {
  static const Piecewise<4> kTable(
      4.1, 0, [](double t) { return t == 0 ? 2 * std::numbers::inv_sqrtpi : std::erf(t) / t; });
  return kTable;
}

// The part of the normal distribution above t.
double NormalAbove(double t) { return 0.5 * std::erfc(t / std::numbers::sqrt2); }

const Piecewise<4>& Above() {
  static const Piecewise<4> kTable(6, 0, NormalAbove);
  return kTable;
}

// The slope of t times that part. It is never quite 0: infinity times it is not NaN.
const Piecewise<5>& SlopeOfRest() {
  static const Piecewise<5> kTable(6, -1e-36F, [](double t) {
    const double density = std::numbers::inv_sqrtpi / std::numbers::sqrt2 * std::exp(-0.5 * t * t);
    return NormalAbove(t) - t * density;
  });
  return kTable;
}

}  // namespace

void ErfRow(const float* x, float* out, int64_t n) {
  const Lookup<4> by_t(ErfByT());
  ForVectors(n, [&](int64_t i, __mmask16 lanes) {
    const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
    const __m512 t = _mm512_abs_ps(v);
    const __m512 one = _mm512_set1_ps(1);
    const __mmask16 is_one = _mm512_cmp_ps_mask(t, _mm512_set1_ps(4), _CMP_GT_OQ);
    const __m512 y = _mm512_mul_ps(v, by_t(t));
    const __m512 sign = _mm512_and_ps(v, _mm512_set1_ps(-0.0F));
    _mm512_mask_storeu_ps(out + i, lanes, _mm512_mask_or_ps(y, is_one, one, sign));
  });
}

// gelu(x) is max(x, 0) less |x| times the part of the distribution above |x|. That part is 0 from 6
// on, where x may not be infinity; of -infinity the result is NaN, as by the formula.
void GeluRow(const float* x, float* out, int64_t n) {
  const Lookup<4> above(Above());
  ForVectors(n, [&](int64_t i, __mmask16 lanes) {
    const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
    const __m512 t = _mm512_abs_ps(_mm512_min_ps(_mm512_set1_ps(7), v));
    const __m512 positive = _mm512_max_ps(_mm512_setzero_ps(), v);
    _mm512_mask_storeu_ps(out + i, lanes, _mm512_fnmadd_ps(t, above(t), positive));
  });
}

void GeluGradRow(const float* x, const float* grad, float* out, int64_t n) {
  const Lookup<5> slope_of_rest(SlopeOfRest());
  ForVectors(n, [&](int64_t i, __mmask16 lanes) {
    const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
    const __m512 g = _mm512_maskz_loadu_ps(lanes, grad + i);
    const __m512 rest = slope_of_rest(_mm512_abs_ps(v));
    const __mmask16 positive = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GT_OQ);
    const __m512 slope = _mm512_mask_sub_ps(rest, positive, _mm512_set1_ps(1), rest);
    _mm512_mask_storeu_ps(out + i, lanes, _mm512_mul_ps(g, slope));
  });
}

bool ErfRowsAreFast() { return true; }

#else

void ErfRow(const float* x, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = Erf(x[i]);
}

void GeluRow(const float* x, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = Gelu(x[i]);
}

void GeluGradRow(const float* x, const float* grad, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = grad[i] * GeluSlope(x[i]);
}

bool ErfRowsAreFast() { return false; }

#endif

}  // namespace interp
