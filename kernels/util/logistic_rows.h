// The logistic function and swish (x times the logistic function of beta x) over rows of floats.
//
// With AVX-512 the quotient is an estimate of 14 bits with a step of Newton's method, which takes
// half the time of a division. An element's result does not depend on where in a row it stands.
#pragma once

#include <cstdint>

namespace interp {

// out[i] = 1 / (1 + e^-x[i]) for i in [0, n), to kVectorMathMaxUlp. `out` may be `x`.
void SigmoidRow(const float* x, float* out, int64_t n);

// out[i] = x[i] / (1 + e^(-beta x[i])), to kVectorMathMaxUlp of the result for the rounded product
// beta x[i], and below -87 of it to |x[i]| 2^-149 besides; NaN of -infinity, as the formula with a
// product gives. `out` may be `x`.
void SwishRow(float beta, const float* x, float* out, int64_t n);

// Whether these rows take less time than oneDNN's eltwise_logistic and eltwise_swish.
bool LogisticRowsAreFast();

}  // namespace interp
