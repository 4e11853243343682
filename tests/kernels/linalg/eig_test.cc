// eig and eigvals, by what defines them: their order is free.
#include <cmath>
#include <complex>
#include <random>

#include "tests/kernels/op_runs.h"
#include "tests/testing/golden_run.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;

// Numbers in [-1, 1), other ones for each seed.
template <typename T>
Tensor Entries(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> values(shape.numel());
  for (T& value : values) value = static_cast<T>(random()) / T{1U << 31} - T{1};
  return Tensor::Of<T>(shape, values);
}

// X v = value v, and v has length 1.
template <typename T, typename C>
void ExpectEigenpairs(const Tensor& x, double tolerance) {
  const std::vector<Tensor> out =
      OutputsOf({.type = "eig", .inputs = {{"X", x}}, .outputs = {"Eigenvalues", "Eigenvectors"}});
  const int64_t n = x.shape.back(1);
  ASSERT_EQ(out[0].shape.numel() * n, x.numel());
  ASSERT_EQ(out[1].shape, x.shape);
  for (int64_t at = 0; at < out[0].numel(); ++at) {
    const C value = out[0].data<C>()[at];
    const T* const matrix = x.data<T>() + at / n * n * n;
    const C* const vectors = out[1].data<C>() + at / n * n * n;
    double length = 0;
    for (int64_t row = 0; row < n; ++row) {
      C product = 0;
      for (int64_t k = 0; k < n; ++k) product += C(matrix[row * n + k]) * vectors[k * n + at % n];
      const C element = vectors[row * n + at % n];
      EXPECT_NEAR(std::abs(product - value * element), 0, tolerance);
      length += std::norm(element);
    }
    EXPECT_NEAR(length, 1, tolerance);
  }
}

TEST(Eig, GivesEigenpairs) {
  ExpectEigenpairs<double, std::complex<double>>(Entries<double>({3, 5, 5}, 1), 1e-12);
  ExpectEigenpairs<float, std::complex<float>>(Entries<float>({2, 2, 4, 4}, 2), 1e-5);
  ExpectEigenpairs<float, std::complex<float>>(Entries<float>({0, 3, 3}, 3), 1e-5);
  const Tensor parts = Entries<double>({2, 3, 3, 2}, 4);
  const auto* const numbers = reinterpret_cast<const std::complex<double>*>(parts.raw_data());
  ExpectEigenpairs<std::complex<double>, std::complex<double>>(
      Tensor::Of<std::complex<double>>({2, 3, 3}, {numbers, 18}), 1e-12);
}

TEST(Eig, OfARotationComesThePositiveImaginaryPartFirst) {
  const Tensor turn = Tensor::Of<double>({2, 2}, {0, -1, 1, 0});
  const std::vector<Tensor> out =
      OutputsOf({.type = "eigvals", .inputs = {{"X", turn}}, .outputs = {"Out"}});
  EXPECT_NEAR(std::abs(out[0].data<std::complex<double>>()[0] - std::complex<double>(0, 1)), 0,
              1e-15);
  EXPECT_NEAR(std::abs(out[0].data<std::complex<double>>()[1] - std::complex<double>(0, -1)), 0,
              1e-15);
}

// Each eigenvalue that Paddle gives is one of ours, and none of ours is two of them.
template <typename C>
void ExpectSameValues(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.shape, want.shape);
  const int64_t n = want.shape.back(1);
  std::vector<bool> taken(static_cast<size_t>(want.numel()), false);
  for (int64_t at = 0; at < want.numel(); ++at) {
    int64_t match = at / n * n;
    const auto fits = [&](int64_t i) {
      return !taken[i] && std::abs(got.data<C>()[i] - want.data<C>()[at]) < tolerance;
    };
    while (match < at / n * n + n && !fits(match)) ++match;
    ASSERT_LT(match, at / n * n + n) << "no eigenvalue " << want.data<C>()[at];
    taken[match] = true;
  }
}

TEST(Eig, GivesTheEigenvaluesThatPaddleGives) {
  if (GoldenSetIsForeign()) return;
  for (const std::string op : {"eig", "eigvals"}) {
    for (const std::string& folder : GoldenCasesByOp().at(op)) {
      SCOPED_TRACE(folder);
      const absl::StatusOr<GoldenCase> golden = ReadGoldenCase(folder);
      ASSERT_THAT(golden, IsOk());
      if (golden->ops != std::vector<std::string>{op}) continue;  // another op reads them
      const std::vector<Tensor> got = OutputsOf(
          {.type = op,
           .inputs = {{"X", golden->feeds[0].second}},
           .outputs = op == "eig" ? std::vector<std::string>{"Eigenvalues", "Eigenvectors"}
                                  : std::vector<std::string>{"Out"}});
      const Tensor& want = golden->fetches[0].second;
      ASSERT_EQ(got[0].dtype, want.dtype);
      if (want.dtype == DType::kComplex64) {
        ExpectSameValues<std::complex<float>>(got[0], want, 1e-4);
      } else {
        ExpectSameValues<std::complex<double>>(got[0], want, 1e-9);
      }
    }
  }
}

TEST(Eig, WhatHasNoneIsRefused) {
  const auto refused = [](const Tensor& x) {
    return std::string(
        RunOp({.type = "eigvals", .inputs = {{"X", x}}, .outputs = {"Out"}}).status().message());
  };
  EXPECT_THAT(refused(Entries<double>({2, 3}, 5)), HasSubstr("expected square matrices"));
  EXPECT_THAT(refused(Tensor::Of<double>({1, 1}, {std::nan("")})), HasSubstr("is not finite"));
}

}  // namespace
}  // namespace interp::testing
