// erf, gelu (x times the normal distribution function of x) and gelu's slope over rows of floats.
//
// Where registers hold numbers to choose from, they are polynomials in intervals of |x|: in 31 of
// them with AVX-512, which takes half the time of the formulas in vector_math.h, in 7 with AVX2.
// Other machines compute the formulas. An element's result does not depend on where in a row it
// stands.
#pragma once

#include <cstdint>

namespace interp {

// out[i] = erf(x[i]) for i in [0, n), to kVectorMathMaxUlp. `out` may be `x`.
void ErfRow(const float* x, float* out, int64_t n);

// out[i] = x[i] (1 + erf(x[i] / sqrt 2)) / 2, with an error of at most 1.5e-7 max(|x[i]|, 1e-30);
// NaN of -infinity, as that formula gives. `out` may be `x`.
void GeluRow(const float* x, float* out, int64_t n);

// out[i] = grad[i] times the slope of gelu at x[i], whose error is at most 2e-7. `out` may be `x`
// or `grad`.
void GeluGradRow(const float* x, const float* grad, float* out, int64_t n);

// Whether these rows take less time than oneDNN's eltwise_gelu_erf.
bool ErfRowsAreFast();

}  // namespace interp
