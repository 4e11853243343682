// exp, expm1, sigmoid, silu, the trigonometric and hyperbolic functions and their inverses of
// complex numbers, and their gradients: X@GRAD = Out@GRAD conj(f'), as Paddle has it
// (activation_functor.h). Branch cuts are those of <complex>.
#include <complex>

#include "kernels/math/unary_grad.h"

namespace interp {
namespace {

// Out = function(X).
template <auto function, typename C>
absl::Status Map(KernelContext& ctx) {
  const C* const x = ctx.input(0).data<C>();
  C* const out = ctx.output(0).mutable_data<C>();
  ParallelFor(ctx.num_threads(), ctx.output(0).numel(), GrainFor(16),
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) out[i] = function(x[i]);
              });
  return absl::OkStatus();
}

// X@GRAD = Out@GRAD conj(slope(value)), where the value is X or Out.
template <UnaryGradient kind, auto slope, typename C>
absl::Status MapGrad(KernelContext& ctx) {
  const C* const value = ctx.input(unary_grad::SlotOf(kind)).data<C>();
  const C* const grad = ctx.input(unary_grad::kOutGrad).data<C>();
  Tensor& x_grad = ctx.output(unary_grad::kXGrad);
  C* const out = x_grad.mutable_data<C>();
  ParallelFor(ctx.num_threads(), x_grad.numel(), GrainFor(16), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = grad[i] * std::conj(slope(value[i]));
  });
  return absl::OkStatus();
}

template <auto function>
std::vector<KernelDef> Rows() {
  return {{DType::kComplex64, Map<function, std::complex<float>>},
          {DType::kComplex128, Map<function, std::complex<double>>}};
}

template <UnaryGradient kind, auto slope>
std::vector<KernelDef> GradRows() {
  return {{DType::kComplex64, MapGrad<kind, slope, std::complex<float>>},
          {DType::kComplex128, MapGrad<kind, slope, std::complex<double>>}};
}

constexpr UnaryGradient kOfX = UnaryGradient::kOfX;
constexpr UnaryGradient kOfOut = UnaryGradient::kOfOut;

template <typename C>
C Reciprocal(C x) {
  return C(1) / x;
}
template <typename C>
C Sigmoid(C x) {
  return Reciprocal(C(1) + std::exp(-x));
}
// The slopes of the inverse functions.
template <typename C>
C Root(C x) {
  return Reciprocal(std::sqrt(x));
}

INTERP_REGISTER_KERNELS("exp", Rows<[](auto x) { return std::exp(x); }>());
INTERP_REGISTER_KERNELS("exp_grad", GradRows<kOfOut, [](auto out) { return out; }>());
INTERP_REGISTER_KERNELS("expm1", Rows<[](auto x) { return std::exp(x) - decltype(x)(1); }>());
INTERP_REGISTER_KERNELS("expm1_grad",
                        GradRows<kOfOut, [](auto out) { return out + decltype(out)(1); }>());
INTERP_REGISTER_KERNELS("sigmoid", Rows<[](auto x) { return Sigmoid(x); }>());
INTERP_REGISTER_KERNELS(
    "sigmoid_grad", GradRows<kOfOut, [](auto out) { return out * (decltype(out)(1) - out); }>());

INTERP_REGISTER_KERNELS("silu", Rows<[](auto x) { return x * Sigmoid(x); }>());
INTERP_REGISTER_KERNELS("silu_grad", GradRows<kOfX, [](auto x) {
                          const auto s = Sigmoid(x);
                          return s * (decltype(x)(1) + x * (decltype(x)(1) - s));
                        }>());

INTERP_REGISTER_KERNELS("sin", Rows<[](auto x) { return std::sin(x); }>());
INTERP_REGISTER_KERNELS("sin_grad", GradRows<kOfX, [](auto x) { return std::cos(x); }>());
INTERP_REGISTER_KERNELS("cos", Rows<[](auto x) { return std::cos(x); }>());
INTERP_REGISTER_KERNELS("cos_grad", GradRows<kOfX, [](auto x) { return -std::sin(x); }>());
INTERP_REGISTER_KERNELS("tan", Rows<[](auto x) { return std::tan(x); }>());
INTERP_REGISTER_KERNELS(
    "tan_grad", GradRows<kOfX, [](auto x) { return Reciprocal(std::cos(x) * std::cos(x)); }>());
INTERP_REGISTER_KERNELS("sinh", Rows<[](auto x) { return std::sinh(x); }>());
INTERP_REGISTER_KERNELS("sinh_grad", GradRows<kOfX, [](auto x) { return std::cosh(x); }>());
INTERP_REGISTER_KERNELS("cosh", Rows<[](auto x) { return std::cosh(x); }>());
INTERP_REGISTER_KERNELS("cosh_grad", GradRows<kOfX, [](auto x) { return std::sinh(x); }>());

INTERP_REGISTER_KERNELS("tanh", Rows<[](auto x) { return std::tanh(x); }>());
INTERP_REGISTER_KERNELS("tanh_grad",
                        GradRows<kOfOut, [](auto out) { return decltype(out)(1) - out * out; }>());

INTERP_REGISTER_KERNELS("asin", Rows<[](auto x) { return std::asin(x); }>());
INTERP_REGISTER_KERNELS("asin_grad",
                        GradRows<kOfX, [](auto x) { return Root(decltype(x)(1) - x * x); }>());
INTERP_REGISTER_KERNELS("acos", Rows<[](auto x) { return std::acos(x); }>());
INTERP_REGISTER_KERNELS("acos_grad",
                        GradRows<kOfX, [](auto x) { return -Root(decltype(x)(1) - x * x); }>());
INTERP_REGISTER_KERNELS("atan", Rows<[](auto x) { return std::atan(x); }>());
INTERP_REGISTER_KERNELS(
    "atan_grad", GradRows<kOfX, [](auto x) { return Reciprocal(decltype(x)(1) + x * x); }>());
INTERP_REGISTER_KERNELS("asinh", Rows<[](auto x) { return std::asinh(x); }>());
INTERP_REGISTER_KERNELS("asinh_grad",
                        GradRows<kOfX, [](auto x) { return Root(decltype(x)(1) + x * x); }>());
INTERP_REGISTER_KERNELS("acosh", Rows<[](auto x) { return std::acosh(x); }>());
INTERP_REGISTER_KERNELS("acosh_grad",
                        GradRows<kOfX, [](auto x) { return Root(x * x - decltype(x)(1)); }>());
INTERP_REGISTER_KERNELS("atanh", Rows<[](auto x) { return std::atanh(x); }>());
INTERP_REGISTER_KERNELS(
    "atanh_grad", GradRows<kOfX, [](auto x) { return Reciprocal(decltype(x)(1) - x * x); }>());

}  // namespace
}  // namespace interp
