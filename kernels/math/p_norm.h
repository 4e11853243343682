// The p-norm of any order and its gradient, for RunReduce and by element: (sum |x|^p)^(1/p), the
// number of elements that are not 0 for p = 0, the largest and the smallest |x| for infinities.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace interp {

template <typename T>
struct SumOfSquares {
  using Acc = double;
  Acc Init() const { return 0; }
  Acc Map(T x, int64_t) const { return Acc{x} * x; }
  Acc Fold(Acc a, Acc b) const { return a + b; }
};

template <typename T>
struct SumOfMagnitudes {
  using Acc = double;
  Acc Init() const { return 0; }
  Acc Map(T x, int64_t) const { return std::abs(x); }
  Acc Fold(Acc a, Acc b) const { return a + b; }
};

template <typename T>
struct SumOfPowers {
  using Acc = double;
  T power;
  Acc Init() const { return 0; }
  Acc Map(T x, int64_t) const { return std::pow(std::abs(x), power); }
  Acc Fold(Acc a, Acc b) const { return a + b; }
};

template <typename T>
struct CountOfNonZeros {
  using Acc = double;
  Acc Init() const { return 0; }
  Acc Map(T x, int64_t) const { return x != 0 ? 1 : 0; }
  Acc Fold(Acc a, Acc b) const { return a + b; }
};

template <typename T>
struct MaxMagnitude {
  using Acc = T;
  Acc Init() const { return 0; }
  Acc Map(T x, int64_t) const { return std::abs(x); }
  Acc Fold(Acc a, Acc b) const { return b > a || b != b ? b : a; }
};

template <typename T>
struct MinMagnitude {
  using Acc = T;
  Acc Init() const { return std::numeric_limits<T>::infinity(); }
  Acc Map(T x, int64_t) const { return std::abs(x); }
  Acc Fold(Acc a, Acc b) const { return b < a || b != b ? b : a; }
};

// The folded value as it is, and its square root.
struct AsIs {
  template <typename Acc>
  Acc operator()(Acc total, int64_t) const {
    return total;
  }
};
struct SquareRoot {
  double operator()(double total, int64_t) const { return std::sqrt(total); }
};

// What `run` gives for the reducer and the finish of the norm.
template <typename T, typename Run>
auto WithNorm(float order, const Run& run) {
  if (order == 0) return run(CountOfNonZeros<T>(), AsIs());
  if (order == 1) return run(SumOfMagnitudes<T>(), AsIs());
  if (order == 2) return run(SumOfSquares<T>(), SquareRoot());
  if (order == std::numeric_limits<float>::infinity()) return run(MaxMagnitude<T>(), AsIs());
  if (order == -std::numeric_limits<float>::infinity()) return run(MinMagnitude<T>(), AsIs());
  const double root = 1.0 / order;
  return run(SumOfPowers<T>{static_cast<T>(order)},
             [root](double total, int64_t) { return std::pow(total, root); });
}

template <typename T>
T SignOf(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

struct MagnitudesGrad {
  template <typename T>
  T operator()(T x, T, T grad) const {
    return grad * SignOf(x);
  }
};

struct EuclideanGrad {
  template <typename T>
  T operator()(T x, T out, T grad) const {
    return out == 0 ? T{0} : grad * (x / out);
  }
};

struct ExtremeMagnitudeGrad {
  template <typename T>
  T operator()(T x, T out, T grad) const {
    return std::abs(x) == out ? grad * SignOf(x) : T{0};
  }
};

struct NoGrad {
  template <typename T>
  T operator()(T, T, T) const {
    return T{0};
  }
};

// sign(x) (|x| / Out)^(order - 1)
template <typename T>
struct PowersGrad {
  T power;  // order - 1
  T operator()(T x, T out, T grad) const {
    return x == 0 || out == 0 ? T{0} : grad * SignOf(x) * std::pow(std::abs(x) / out, power);
  }
};

// The gradient of a norm with an epsilon: that of `base`, divided by 1 + epsilon / Out^(order - 1).
// (Paddle's p_norm_grad, PNormGradFunctor.)
template <typename T, typename Base>
struct DampedGrad {
  Base base;
  T power;  // order - 1
  T epsilon;
  T operator()(T x, T out, T grad) const {
    if (out == 0) return T{0};
    const T scale = power == 0 ? T{1} : power == 1 ? out : std::pow(out, power);
    return base(x, out, grad) / (T{1} + epsilon / scale);
  }
};

// What `run` gives for the function of (x, Out, Out@GRAD) that is the gradient of the norm. Where a
// norm is 0 and has no derivative, it is 0. Finite orders but 0 take an epsilon.
template <typename T, typename Run>
auto WithNormGrad(float order, float epsilon, const Run& run) {
  const T power = static_cast<T>(order) - T{1};
  const auto damped = [&](const auto& base) {
    using Base = std::decay_t<decltype(base)>;
    if (epsilon == 0) return run(base);
    return run(DampedGrad<T, Base>{base, power, static_cast<T>(epsilon)});
  };
  if (order == 0) return run(NoGrad());
  if (order == 1) return damped(MagnitudesGrad());
  if (order == 2) return damped(EuclideanGrad());
  if (std::isinf(order)) return run(ExtremeMagnitudeGrad());
  return damped(PowersGrad<T>{power});
}

}  // namespace interp
