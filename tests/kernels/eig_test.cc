// eig and eigvals: eigenvectors and eigenvalues of made-up matrices, by the equation that they
// solve.
#include <complex>

#include "tests/kernels/op_runs.h"

namespace interp::testing::eig_test {
namespace {

template <typename R>
using Complex = std::complex<R>;

// Two matrices of 4 x 4.
template <typename T>
Tensor Matrices() {
  const Tensor real = Numbers<double>({2, 4, 4}, 1);
  const Tensor imaginary = Numbers<double>({2, 4, 4}, 2);
  std::vector<T> values;
  for (int64_t i = 0; i < real.numel(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      values.push_back(static_cast<T>(real.data<double>()[i]));
    } else {
      values.push_back(T(Complex<double>(real.data<double>()[i], imaginary.data<double>()[i])));
    }
  }
  return Tensor::Of<T>({2, 4, 4}, values);
}

// X v = w v for each column v, of length 1 and with a positive largest component.
template <typename T, typename R>
void ExpectSolved(double tolerance) {
  const Tensor x = Matrices<T>();
  const std::vector<Tensor> out = OutputsOf({"eig", {{"X", x}}, {"Eigenvalues", "Eigenvectors"}});
  ASSERT_EQ(out[0].shape, (Shape{2, 4}));
  ASSERT_EQ(out[1].shape, x.shape);
  for (int64_t m = 0; m < 2; ++m) {
    const T* const matrix = x.data<T>() + 16 * m;
    const Complex<R>* const vectors = out[1].data<Complex<R>>() + 16 * m;
    for (int64_t k = 0; k < 4; ++k) {
      const Complex<R> value = out[0].data<Complex<R>>()[4 * m + k];
      double length = 0;
      Complex<R> largest = 0;
      for (int64_t i = 0; i < 4; ++i) {
        Complex<R> product = 0;
        for (int64_t j = 0; j < 4; ++j) product += matrix[4 * i + j] * vectors[4 * j + k];
        const Complex<R> component = vectors[4 * i + k];
        EXPECT_NEAR(std::abs(product - value * component), 0, tolerance);
        length += std::norm(component);
        if (std::abs(component) > std::abs(largest) + tolerance) largest = component;
      }
      EXPECT_NEAR(length, 1, tolerance);
      EXPECT_NEAR(std::abs(largest - std::abs(largest)), 0, tolerance);
    }
  }
}

TEST(EigTest, SolvesTheEquation) {
  ExpectSolved<float, float>(2e-6);
  ExpectSolved<double, double>(1e-13);
  ExpectSolved<Complex<float>, float>(2e-6);
  ExpectSolved<Complex<double>, double>(1e-13);
}

// What Paddle 2.6.2 gives, in some order: 2 + i sqrt(3), 2 - i sqrt(3) and 2.
TEST(EigvalsTest, AgreesWithPaddle) {
  const Tensor x = Tensor::Of<double>({3, 3}, {1, 2, 0, -3, 4, 1, 2, 0, 1});
  const Tensor values = OutputsOf({"eigvals", {{"X", x}}, {"Out"}})[0];
  ASSERT_EQ(values.shape, (Shape{3}));
  for (const Complex<double> expected :
       {Complex<double>(2, 1.732050808), {2, -1.732050808}, {2, 0}}) {
    double nearest = 1;
    for (int i = 0; i < 3; ++i) {
      nearest = std::min(nearest, std::abs(values.data<Complex<double>>()[i] - expected));
    }
    EXPECT_LT(nearest, 1e-8) << expected;
  }
}

template <typename T, typename R>
void ExpectSameValues() {
  const Tensor x = Matrices<T>();
  const Tensor together = OutputsOf({"eig", {{"X", x}}, {"Eigenvalues", "Eigenvectors"}})[0];
  const Tensor alone = OutputsOf({"eigvals", {{"X", x}}, {"Out"}})[0];
  for (int64_t i = 0; i < together.numel(); ++i) {
    EXPECT_NEAR(std::abs(together.data<Complex<R>>()[i] - alone.data<Complex<R>>()[i]), 0, 1e-6);
  }
}

TEST(EigvalsTest, AreThoseOfEig) {
  ExpectSameValues<float, float>();
  ExpectSameValues<double, double>();
  ExpectSameValues<Complex<float>, float>();
  ExpectSameValues<Complex<double>, double>();
}

TEST(EigTest, RefusesWhatHasNoEigenvalues) {
  const auto run = [](const Tensor& x) { return OpRun{"eigvals", {{"X", x}}, {"Out"}}; };
  ExpectRefusals({{run(Numbers({2, 3}, 1)), "'X'"},
                  {run(Tensor::Of<float>({1, 1}, {std::nanf("")})), "is not finite"}});
}

}  // namespace
}  // namespace interp::testing::eig_test
