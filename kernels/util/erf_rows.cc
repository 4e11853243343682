#include "kernels/util/erf_rows.h"

#include <array>
#include <cmath>
#include <numbers>

#include "kernels/util/float_vectors.h"
#include "kernels/util/vector_math.h"

namespace interp {

#if INTERP_FLOAT_LANES > 0

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

// Intervals, and the degree of polynomials in them: fewer intervals want a higher one.
constexpr int kIntervals = FloatTable::kSize;
constexpr int kDegree = kIntervals == 32 ? 4 : 6;
constexpr int kDegreeOfErf = kIntervals == 32 ? 4 : 7;
constexpr int kDegreeOfSlope = kIntervals == 32 ? 5 : 7;

// A function of t >= 0 in intervals of equal width around 0, 1, ... times it: a polynomial of
// degree kDegree in each, and `beyond` in the last, which begins at `limit`, and above.
template <int kDegree>
struct Piecewise {
  static constexpr int kLast = kIntervals - 1;
  float terms[kDegree + 1][kIntervals] = {};  // of t / width - interval
  float scale;                                // 1 / width

  // `f` is defined for t >= -limit / 13, too.
  template <typename F>
  Piecewise(double limit, float beyond, const F& f)
      : scale(static_cast<float>((kLast - 0.5) / limit)) {
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
  explicit Lookup(const Piecewise<kDegree>& table) : scale_(Broadcast(table.scale)) {
#pragma GCC unroll 8
    for (int p = 0; p <= kDegree; ++p) terms_[p] = FloatTable(table.terms[p]);
  }

  // The function at values of t. NaN gives NaN.
  Floats operator()(Floats t) const {
    const Floats at = Min(Broadcast(Piecewise<kDegree>::kLast), t * scale_);
    const Floats to_integer = Broadcast(vector_math::kToInteger);
    const Floats interval = at + to_integer;  // in its lowest bits
    const Floats rest = at - (interval - to_integer);
    Floats sum = terms_[kDegree][interval];
#pragma GCC unroll 8
    for (int p = kDegree - 1; p >= 0; --p) sum = MulAdd(sum, rest, terms_[p][interval]);
    return sum;
  }

 private:
  Floats scale_;
  FloatTable terms_[kDegree + 1];
};

// erf(t) / t, which is even.
const Piecewise<kDegreeOfErf>& ErfByT() {
  static const Piecewise<kDegreeOfErf> kTable(
      4.1, 0, [](double t) { return t == 0 ? 2 * std::numbers::inv_sqrtpi : std::erf(t) / t; });
  return kTable;
}

// The part of the normal distribution above t.
double NormalAbove(double t) { return 0.5 * std::erfc(t / std::numbers::sqrt2); }

const Piecewise<kDegree>& Above() {
  static const Piecewise<kDegree> kTable(6, 0, NormalAbove);
  return kTable;
}

// The slope of t times that part. It is never quite 0: infinity times it is not NaN.
const Piecewise<kDegreeOfSlope>& SlopeOfRest() {
  static const Piecewise<kDegreeOfSlope> kTable(6, -1e-36F, [](double t) {
    const double density = std::numbers::inv_sqrtpi / std::numbers::sqrt2 * std::exp(-0.5 * t * t);
    return NormalAbove(t) - t * density;
  });
  return kTable;
}

}  // namespace

void ErfRow(const float* x, float* out, int64_t n) {
  const Lookup by_t(ErfByT());
  ForVectors(n, [&](int64_t i, auto lanes) {
    const Floats v = Load(lanes, x + i);
    const Floats t = Abs(v);
    const Floats one = WithSignOf(v, Broadcast(1));
    Store(lanes, out + i, Select(IsGreater(t, Broadcast(4)), one, v * by_t(t)));
  });
}

// gelu(x) is max(x, 0) less |x| times the part of the distribution above |x|. That part is 0 from 6
// on, where x may not be infinity; of -infinity the result is NaN, as by the formula.
void GeluRow(const float* x, float* out, int64_t n) {
  const Lookup above(Above());
  ForVectors(n, [&](int64_t i, auto lanes) {
    const Floats v = Load(lanes, x + i);
    const Floats t = Abs(Min(Broadcast(7), v));
    Store(lanes, out + i, MinusMulAdd(t, above(t), Max(Broadcast(0), v)));
  });
}

void GeluGradRow(const float* x, const float* grad, float* out, int64_t n) {
  const Lookup slope_of_rest(SlopeOfRest());
  ForVectors(n, [&](int64_t i, auto lanes) {
    const Floats v = Load(lanes, x + i);
    const Floats g = Load(lanes, grad + i);
    const Floats rest = slope_of_rest(Abs(v));
    const Floats slope = Select(IsGreater(v, Broadcast(0)), Broadcast(1) - rest, rest);
    Store(lanes, out + i, g * slope);
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
