// Special functions of one number, in double: accurate to some units of 1e-15. float kernels round
// their results.
#pragma once

#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>

namespace interp::special {

// The Hurwitz zeta function: the sum of (k + q)^-s over k = 0, 1, ..., for s > 1. Where a term has
// no value (q is 0 or a negative integer) infinity. NaN where powers of negative numbers are.
inline double Zeta(double s, double q) {
  if (q <= 0) {
    if (q == std::floor(q)) return std::numeric_limits<double>::infinity();
    if (s != std::floor(s)) return std::numeric_limits<double>::quiet_NaN();
    // The terms below 0 and those above, each a difference of sums of positive terms.
    const double rest = -q - std::floor(-q);
    const double sign = std::fmod(s, 2) == 0 ? 1 : -1;
    return sign * (Zeta(s, rest) - Zeta(s, 1 - q)) + Zeta(s, 1 - rest);
  }
  double sum = 0;
  for (; q < 12; q += 1) sum += std::pow(q, -s);
  // Euler-Maclaurin: the integral, half the first term, and terms of Bernoulli numbers.
  constexpr double kCoefficients[] = {1.0 / 12,
                                      -1.0 / 720,
                                      1.0 / 30240,
                                      -1.0 / 1209600,
                                      1.0 / 47900160,
                                      -691.0 / 1307674368000.0,
                                      1.0 / 74724249600.0,
                                      -3617.0 / 10670622842880000.0};
  const double power = std::pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  double factor = s * power / q;
  double order = s;
  for (const double coefficient : kCoefficients) {
    sum += coefficient * factor;
    factor *= (order + 1) * (order + 2) / (q * q);
    order += 2;
  }
  return sum;
}

// The logarithmic derivative of the gamma function; NaN at its poles.
inline double Digamma(double x) {
  double result = 0;
  if (x <= 0) {
    if (x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
    // The tangent of what is left behind the nearest integer: there is no rounding of pi * x.
    result = -std::numbers::pi / std::tan(std::numbers::pi * (x - std::round(x)));
    x = 1 - x;
  }
  for (; x < 12; x += 1) result -= 1 / x;
  const double inverse = 1 / (x * x);
  constexpr double kCoefficients[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                      1.0 / 132, -691.0 / 32760, 1.0 / 12};
  double power = inverse;
  for (const double coefficient : kCoefficients) {
    result -= coefficient * power;
    power *= inverse;
  }
  return result + std::log(x) - 0.5 / x;
}

// The n-th derivative of Digamma.
inline double Polygamma(int n, double x) {
  if (n == 0) return Digamma(x);
  int sign = 0;  // std::lgamma would write a global
  const double factorial = std::exp(lgamma_r(n + 1.0, &sign));
  return (n % 2 == 0 ? -1 : 1) * factorial * Zeta(n + 1.0, x);
}

// The modified Bessel function of the first kind of order 0 or 1, times exp(-|x|).
inline double ScaledBesselI(int order, double x) {
  const double a = std::abs(x);
  double result = 0;
  if (a <= 30) {
    // Ascending series: all terms are positive.
    double term = order == 0 ? 1 : a / 2;
    for (int k = 1; term > result * 1e-17; ++k) {
      result += term;
      term *= a * a / 4 / (static_cast<double>(k) * (k + order));
    }
    result *= std::exp(-a);
  } else {
    const double mu = 4.0 * order * order;
    double term = 1;
    for (int k = 1; std::abs(term) > 1e-17 && k < 40; ++k) {
      result += term;
      const double odd = 2 * k - 1;
      term *= (odd * odd - mu) / (8 * k * a);
    }
    result /= std::sqrt(2 * std::numbers::pi * a);
  }
  return order == 1 && x < 0 ? -result : result;
}

inline double BesselI(int order, double x) {
  if (std::isinf(x)) return order == 1 ? x : std::abs(x);
  const double half = std::exp(std::abs(x) / 2);  // all of it overflows before the function does
  return ScaledBesselI(order, x) * half * half;
}

// The x of which erf is y: a rational approximation (Giles 2010), then Newton's method with the
// second derivative. Beyond -1 and 1 infinity.
inline double ErfInv(double y) {
  if (std::isnan(y)) return y;
  if (std::abs(y) >= 1) return std::copysign(std::numeric_limits<double>::infinity(), y);
  double w = -std::log((1 - y) * (1 + y));
  double x = 0;
  if (w < 5) {
    w -= 2.5;
    for (const double c :
         {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
          -0.00125372503, -0.00417768164, 0.246640727, 1.50140941}) {
      x = x * w + c;
    }
  } else {
    w = std::sqrt(w) - 3;
    for (const double c : {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                           0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682}) {
      x = x * w + c;
    }
  }
  x *= y;
  for (int i = 0; i < 2; ++i) {
    // erf(x) - y, by the tail that is small.
    const double error = y < 0 ? std::erfc(-x) - (1 + y) : (1 - y) - std::erfc(x);
    const double step = error * std::sqrt(std::numbers::pi) / 2 * std::exp(x * x);
    x -= step / (1 + x * step);
  }
  return x;
}

}  // namespace interp::special
