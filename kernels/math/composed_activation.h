// A sum or product and an activation in one op: fused_elemwise_activation and its gradient. The
// function that comes first in functor_list is the outer one:
//
//   {"relu", "elementwise_add"}   Out = relu(X + Y)    IntermediateOut = X + Y
//   {"elementwise_add", "relu"}   Out = X + relu(Y)    IntermediateOut = relu(Y)
#pragma once

#include "core/op_def.h"
#include "kernels/util/broadcast.h"
#include "kernels/util/vector_math.h"

namespace interp {

enum class ComposedUnary : uint8_t { kScale, kRelu, kTanh, kSigmoid, kGelu };

struct ComposedAttrs {
  bool multiplies = false;     // X Y, not X + Y
  bool unary_outside = false;  // of X op Y, not of Y
  ComposedUnary unary = ComposedUnary::kRelu;
  float scale = 0;
  int axis = kTrailingAxis;
  bool keeps_intermediate = false;
};

// In gradient ops the names of both functions end in _grad.
ComposedAttrs ReadComposedAttrs(AttrReader& reader);

// The activations and their derivatives times `grad`, from the same argument.
struct ComposedScale {
  float factor;
  template <typename T>
  T operator()(T x) const {
    return x * static_cast<T>(factor);
  }
  template <typename T>
  T Gradient(T, T grad) const {
    return grad * static_cast<T>(factor);
  }
};

struct ComposedRelu {
  template <typename T>
  T operator()(T x) const {
    return x > 0 ? x : T{0};
  }
  template <typename T>
  T Gradient(T x, T grad) const {
    return x > 0 ? grad : T{0};
  }
};

struct ComposedTanh {
  template <typename T>
  T operator()(T x) const {
    return Tanh(x);
  }
  template <typename T>
  T Gradient(T x, T grad) const {
    const T out = Tanh(x);
    return grad * (T{1} - out * out);
  }
};

struct ComposedSigmoid {
  template <typename T>
  T operator()(T x) const {
    return Sigmoid(x);
  }
  template <typename T>
  T Gradient(T x, T grad) const {
    const T out = Sigmoid(x);
    return grad * out * (T{1} - out);
  }
};

// By tanh, whatever the op gelu does by default, and with Paddle's short constant.
struct ComposedGelu {
  template <typename T>
  static constexpr T kSqrt2OverPi = T(0.79788456);
  template <typename T>
  static T Curve(T x) {
    return Tanh(kSqrt2OverPi<T> * x * (T{1} + T(0.044715) * x * x));
  }
  template <typename T>
  T operator()(T x) const {
    return T(0.5) * x * (T{1} + Curve(x));
  }
  template <typename T>
  T Gradient(T x, T grad) const {
    const T curve = Curve(x);
    const T slope = kSqrt2OverPi<T> * (T{1} + T(3 * 0.044715) * x * x) * (T{1} - curve * curve);
    return grad * T(0.5) * (T{1} + curve + x * slope);
  }
};

// Calls run(activation).
template <typename Run>
void WithComposedUnary(const ComposedAttrs& attrs, const Run& run) {
  switch (attrs.unary) {
    case ComposedUnary::kScale:
      return run(ComposedScale{attrs.scale});
    case ComposedUnary::kRelu:
      return run(ComposedRelu());
    case ComposedUnary::kTanh:
      return run(ComposedTanh());
    case ComposedUnary::kSigmoid:
      return run(ComposedSigmoid());
    case ComposedUnary::kGelu:
      return run(ComposedGelu());
  }
}

// out = activation(x), which may share their memory.
template <typename T>
void ApplyComposedUnary(const ComposedAttrs& attrs, int num_threads, const Tensor& x, Tensor& out) {
  const T* const from = x.data<T>();
  T* const to = out.mutable_data<T>();
  WithComposedUnary(attrs, [&](const auto& op) {
    ParallelFor(num_threads, x.numel(), kElementwiseGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = op(from[i]);
    });
  });
}

// out = x + y or x y. REQUIRES: out has the broadcast shape.
template <typename T>
void ApplyComposedBinary(const ComposedAttrs& attrs, int num_threads, const Tensor& x,
                         const Tensor& y, Tensor& out) {
  if (out.numel() == 0) return;
  const BroadcastPlan plan = PlanBroadcast(x, y, out, attrs.axis);
  const auto run = [&](const auto& op) {
    RunBroadcast(plan, num_threads, x.data<T>(), y.data<T>(), out.mutable_data<T>(), op);
  };
  if (attrs.multiplies) {
    run([](T a, T b) { return a * b; });
  } else {
    run([](T a, T b) { return a + b; });
  }
}

}  // namespace interp
