#include "kernels/util/logistic_rows.h"

#include "kernels/util/float_vectors.h"
#include "kernels/util/vector_math.h"

namespace interp {

#if INTERP_FLOAT_LANES > 0

namespace {

// e^-t for t >= 0. NaN gives NaN.
Floats ExpOfMinus(Floats t) {
  using namespace vector_math;               // NOLINT(google-build-using-namespace)
  const Floats at = Min(Broadcast(105), t);  // beyond: 0; the order lets NaN through
  const Floats to_integer = Broadcast(kToInteger);
  const Floats n = MinusMulAdd(at, Broadcast(kLog2E), to_integer) - to_integer;
  const Floats high = -MulAdd(n, Broadcast(kLn2Hi), at);
  const Floats r = MinusMulAdd(n, Broadcast(kLn2Lo), high);
  Floats p = Broadcast(kExpTerms[0]);
#pragma GCC unroll 4
  for (int i = 1; i < 5; ++i) p = MulAdd(p, r, Broadcast(kExpTerms[i]));
  const Floats one = Broadcast(1);
  return ScaleDown(MulAdd(MulAdd(p, r, one), r, one), n);
}

// `x` times the logistic function of `t`: of e = e^-|t| <= 1 it is x (t < 0 ? e : 1) / (1 + e).
Floats TimesLogistic(Floats x, Floats t) {
  const Floats e = ExpOfMinus(Abs(t));
  return QuickQuotient(Select(HasSign(t), x * e, x), e + Broadcast(1));
}

}  // namespace

void SigmoidRow(const float* x, float* out, int64_t n) {
  ForVectors(n, [&](int64_t i, auto lanes) {
    Store(lanes, out + i, TimesLogistic(Broadcast(1), Load(lanes, x + i)));
  });
}

void SwishRow(float beta, const float* x, float* out, int64_t n) {
  const Floats betas = Broadcast(beta);
  ForVectors(n, [&](int64_t i, auto lanes) {
    const Floats v = Load(lanes, x + i);
    Store(lanes, out + i, TimesLogistic(v, betas * v));
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
