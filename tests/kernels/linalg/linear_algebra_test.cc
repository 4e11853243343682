// Decompositions whose vectors are determined up to a sign or a factor, held to what they are by
// definition, and inputs that have none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <utility>
#include <vector>

#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using absl::StatusCode;
using Complex = std::complex<double>;

// One matrix of complex numbers, whatever the dtype of the tensor is.
struct Dense {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<Complex> values;

  Complex At(int64_t i, int64_t j) const { return values[i * cols + j]; }
};

Dense DenseOf(const Tensor& tensor) {
  Dense dense = {tensor.shape[0], tensor.shape[1], {}};
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    dense.values.push_back(tensor.dtype == DType::kFloat64 ? Complex(tensor.data<double>()[i])
                                                           : tensor.data<Complex>()[i]);
  }
  return dense;
}

Dense Product(const Dense& a, const Dense& b) {
  Dense product = {a.rows, b.cols, std::vector<Complex>(a.rows * b.cols)};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.cols; ++j) {
      for (int64_t k = 0; k < a.cols; ++k)
        product.values[i * b.cols + j] += a.At(i, k) * b.At(k, j);
    }
  }
  return product;
}

Dense Adjoint(const Dense& a) {
  Dense adjoint = {a.cols, a.rows, {}};
  for (int64_t j = 0; j < a.cols; ++j) {
    for (int64_t i = 0; i < a.rows; ++i) adjoint.values.push_back(std::conj(a.At(i, j)));
  }
  return adjoint;
}

Dense Diagonal(const Tensor& values) {
  const int64_t n = values.numel();
  Dense diagonal = {n, n, std::vector<Complex>(n * n)};
  for (int64_t i = 0; i < n; ++i) {
    diagonal.values[i * n + i] = values.dtype == DType::kFloat64 ? Complex(values.data<double>()[i])
                                                                 : values.data<Complex>()[i];
  }
  return diagonal;
}

void ExpectNear(const Dense& got, const Dense& want) {
  ASSERT_EQ(got.values.size(), want.values.size());
  for (size_t i = 0; i < got.values.size(); ++i) {
    EXPECT_NEAR(std::abs(got.values[i] - want.values[i]), 0, 1e-10) << "element " << i;
  }
}

void ExpectOrthonormalColumns(const Dense& a) {
  const Dense product = Product(Adjoint(a), a);
  for (int64_t i = 0; i < product.rows; ++i) {
    for (int64_t j = 0; j < product.cols; ++j) {
      EXPECT_NEAR(std::abs(product.At(i, j) - Complex(i == j ? 1 : 0)), 0, 1e-10);
    }
  }
}

TEST(LinearAlgebraTest, EigenvectorsOfSymmetricMatrices) {
  const Tensor half = Numbers<double>({4, 4}, 3);
  Tensor x = Numbers<double>({4, 4}, 3);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      x.mutable_data<double>()[i * 4 + j] =
          half.data<double>()[i * 4 + j] + half.data<double>()[j * 4 + i];
    }
  }
  for (const char* triangle : {"UPLO=\"L\"", "UPLO=\"U\""}) {
    const auto out = OutputsOf({"eigh", {{"X", x}}, {"Eigenvalues", "Eigenvectors"}, triangle});
    const Dense vectors = DenseOf(out[1]);
    ExpectOrthonormalColumns(vectors);
    ExpectNear(Product(DenseOf(x), vectors), Product(vectors, Diagonal(out[0])));
  }
}

// The sum of `values` times `weights`.
double Weighted(const Tensor& values, const Tensor& weights) {
  double sum = 0;
  for (int64_t i = 0; i < values.numel(); ++i) {
    sum += values.data<double>()[i] * weights.data<double>()[i];
  }
  return sum;
}

// `x` and its transpose, and `step` times the same of `y`.
Tensor SymmetricSum(const Tensor& x, const Tensor& y, double step) {
  const int64_t n = x.shape[0];
  std::vector<double> sum;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      sum.push_back(x.data<double>()[i * n + j] + x.data<double>()[j * n + i] +
                    step * (y.data<double>()[i * n + j] + y.data<double>()[j * n + i]));
    }
  }
  return Tensor::Of<double>(x.shape, sum);
}

TEST(LinearAlgebraTest, GradientsOfEighAreThoseOfSymmetricChanges) {
  const Tensor half = Numbers<double>({3, 3}, 5);
  const Tensor change = Numbers<double>({3, 3}, 6);
  const Tensor value_weights = Numbers<double>({3}, 7);
  const Tensor vector_weights = Numbers<double>({3, 3}, 8);
  const auto loss = [&](double step) {
    const auto out = OutputsOf(
        {"eigh", {{"X", SymmetricSum(half, change, step)}}, {"Eigenvalues", "Eigenvectors"}, ""});
    return std::pair(Weighted(out[0], value_weights), Weighted(out[1], vector_weights));
  };
  const auto out = OutputsOf(
      {"eigh", {{"X", SymmetricSum(half, change, 0)}}, {"Eigenvalues", "Eigenvectors"}, ""});
  const Tensor of_both = OutputsOf({"eigh_grad",
                                    {{"Eigenvectors", out[1]},
                                     {"Eigenvalues@GRAD", value_weights},
                                     {"Eigenvalues", out[0]},
                                     {"Eigenvectors@GRAD", vector_weights}},
                                    {"X@GRAD"},
                                    ""})[0];
  const Tensor of_values =
      OutputsOf({"eigvalsh_grad",
                 {{"Eigenvectors", out[1]}, {"Eigenvalues@GRAD", value_weights}},
                 {"X@GRAD"},
                 ""})[0];
  const Tensor zero = Tensor::Of<double>({3, 3}, std::vector<double>(9));
  const Tensor direction = SymmetricSum(zero, change, 1);
  constexpr double kStep = 1e-6;
  const auto [values_up, vectors_up] = loss(kStep);
  const auto [values_down, vectors_down] = loss(-kStep);
  const double values_slope = (values_up - values_down) / (2 * kStep);
  const double vectors_slope = (vectors_up - vectors_down) / (2 * kStep);
  EXPECT_NEAR(Weighted(of_values, direction), values_slope, 1e-6);
  EXPECT_NEAR(Weighted(of_both, direction), values_slope + vectors_slope, 1e-6);
}

TEST(LinearAlgebraTest, MatricesWithoutElements) {
  const auto out = OutputsOf({"determinant", {{"Input", Numbers({2, 0, 0}, 1)}}, {"Out"}, ""});
  EXPECT_THAT(Values<float>(out[0]), ::testing::ElementsAre(1, 1));
  for (const char* type : {"cholesky", "matrix_power"}) {
    EXPECT_THAT(RunOp({type, {{"X", Numbers({0, 2, 2}, 1)}}, {"Out"}, ""}), IsOk()) << type;
    EXPECT_THAT(RunOp({type, {{"X", Numbers({2, 0, 0}, 1)}}, {"Out"}, ""}), IsOk()) << type;
  }
}

TEST(LinearAlgebraTest, CompleteQrOfMatricesWithoutColumnsIsTheIdentity) {
  const auto out = OutputsOf({"qr", {{"X", Numbers({2, 0}, 1)}}, {"Q", "R"}, "mode=\"complete\""});
  EXPECT_THAT(Values<float>(out[0]), ::testing::ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(out[1].shape, Shape({2, 0}));
}

TEST(LinearAlgebraTest, WhatHasNoDecompositionIsRefused) {
  const Tensor nan = Tensor::Of<float>({1, 1}, {NAN});
  const Tensor minus = Tensor::Of<float>({1, 1}, {-1});
  const Tensor zero = Tensor::Of<float>({1, 1}, {0});
  ExpectRefusals({
      {{"eigh", {{"X", nan}}, {"Eigenvalues", "Eigenvectors"}, ""}, "not finite"},
      {{"cholesky", {{"X", minus}}, {"Out"}, ""}, "not positive definite"},
      {{"solve", {{"X", zero}, {"Y", minus}}, {"Out"}, ""}, "no inverse"},
      {{"matrix_power", {{"X", zero}}, {"Out"}, "n=-1"}, "no inverse"},
      {{"lu_unpack",
        {{"X", zero}, {"Pivots", Tensor::Of<int32_t>({1}, {2})}},
        {"Pmat", "L", "U"},
        ""},
       "'Pivots' has the value 2"},
      {{"qr", {{"X", zero}}, {"Q", "R"}, "mode=\"raw\""}, "'mode' is 'raw'"},
      {{"qr", {{"X", Numbers({3}, 1)}}, {"Q", "R"}, ""}, "expected matrices"},
      {{"qr_grad", {{"X", zero}, {"Q", zero}, {"R", zero}}, {"X@GRAD"}, "mode=\"r\""},
       "use 'reduced'"},
  });
}

}  // namespace
}  // namespace interp::testing
