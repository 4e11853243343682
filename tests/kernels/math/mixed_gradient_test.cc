// Gradients of a real operand beside a complex one.
#include <gtest/gtest.h>

#include <complex>
#include <string>
#include <vector>

#include "tests/kernels/op_runs.h"

namespace interp::testing::mixed_gradient_test {
namespace {

using C64 = std::complex<float>;
using C128 = std::complex<double>;

template <typename To>
Tensor As(const std::vector<C128>& values) {
  std::vector<To> elements;
  for (const C128 value : values) {
    if constexpr (std::is_floating_point_v<To>) {
      elements.push_back(static_cast<To>(value.real()));
    } else {
      elements.emplace_back(value);
    }
  }
  return Tensor::Of<To>({2, 2}, elements);
}

const std::vector<C128>& Real() {
  static const auto* values = new std::vector<C128>{1, -2, 0.5, 3};
  return *values;
}
const std::vector<C128>& Complex() {
  static const auto* values = new std::vector<C128>{{1, 2}, {-1, 0.5}, {2, -3}, {0.5, 1}};
  return *values;
}
const std::vector<C128>& Incoming() {
  static const auto* values = new std::vector<C128>{{2, 1}, {1, -1}, {-3, 2}, {0.5, 4}};
  return *values;
}

std::vector<Tensor> Gradients(const std::string& type, Tensor x, Tensor y, Tensor grad) {
  return OutputsOf({type,
                    {{"X", std::move(x)}, {"Y", std::move(y)}, {"Out@GRAD", std::move(grad)}},
                    {"X@GRAD", "Y@GRAD"}});
}

// Each type of a program, with what it is as one complex type.
template <typename R, typename C>
void ExpectRealParts(const std::string& type) {
  SCOPED_TRACE(type);
  const std::vector<Tensor> all =
      Gradients(type, As<C128>(Real()), As<C128>(Complex()), As<C128>(Incoming()));
  const std::vector<Tensor> mixed =
      Gradients(type, As<R>(Real()), As<C>(Complex()), As<C>(Incoming()));
  const std::vector<Tensor> turned =
      Gradients(type, As<C>(Complex()), As<R>(Real()), As<C>(Incoming()));
  const std::vector<Tensor> all_turned =
      Gradients(type, As<C128>(Complex()), As<C128>(Real()), As<C128>(Incoming()));
  ASSERT_EQ(mixed[0].dtype, DTypeOf<R>);
  ASSERT_EQ(mixed[1].dtype, DTypeOf<C>);
  ASSERT_EQ(turned[0].dtype, DTypeOf<C>);
  ASSERT_EQ(turned[1].dtype, DTypeOf<R>);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(mixed[0].data<R>()[i], all[0].data<C128>()[i].real(), 1e-5);
    EXPECT_NEAR(std::abs(C128(mixed[1].data<C>()[i]) - all[1].data<C128>()[i]), 0, 1e-5);
    EXPECT_NEAR(std::abs(C128(turned[0].data<C>()[i]) - all_turned[0].data<C128>()[i]), 0, 1e-5);
    EXPECT_NEAR(turned[1].data<R>()[i], all_turned[1].data<C128>()[i].real(), 1e-5);
  }
}

TEST(MixedGradient, OfARealOperandIsTheRealPart) {
  for (const char* type : {"elementwise_add_grad", "elementwise_sub_grad", "elementwise_mul_grad",
                           "elementwise_div_grad", "matmul_v2_grad"}) {
    ExpectRealParts<float, C64>(type);
    ExpectRealParts<double, C128>(type);
  }
}

}  // namespace
}  // namespace interp::testing::mixed_gradient_test
