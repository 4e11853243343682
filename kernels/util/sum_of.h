// SumOf: a sum for RunReduce (kernels/util/reduce.h).
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "kernels/complex/complex_dtype.h"
#include "kernels/util/arithmetic.h"

namespace interp {

// Sums fold in double or, wrapping around, in int64.
template <typename T>
using SumType = std::conditional_t<std::is_integral_v<T>, int64_t,
                                   std::conditional_t<kIsComplex<T>, std::complex<double>, double>>;

template <typename T>
struct SumOf {
  using Acc = SumType<T>;
  Acc Init() const { return 0; }
  Acc Map(T x, int64_t) const { return static_cast<Acc>(static_cast<ComputeType<T>>(x)); }
  Acc Fold(Acc a, Acc b) const { return WrapAdd(a, b); }
};

}  // namespace interp
