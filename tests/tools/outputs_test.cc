#include "tools/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "core/io/npy.h"
#include "tests/testing/command.h"

namespace interp {
namespace {

using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr Tolerance kTolerance{.rtol = 0.1, .atol = 0.01};

Tensor Floats(std::initializer_list<float> values) {
  return Tensor::Of<float>({static_cast<int64_t>(values.size())}, values);
}

TEST(CompareTest, ToleranceIsAbsolutePlusRelative) {
  const Comparison c = Compare({"y", Floats({1.1f, 0.009f})}, Floats({1.0f, 0.0f}), kTolerance);
  EXPECT_TRUE(c.ok());
  const Comparison d = Compare({"y", Floats({1.0f, 0.02f})}, Floats({1.0f, 0.0f}), kTolerance);
  EXPECT_EQ(d.num_different, 1);
  EXPECT_EQ(d.worst_index, "[1]");
  EXPECT_THAT(FormatComparison(d), HasSubstr("y: differs, 1 of 2 elements"));
}

TEST(CompareTest, NanEqualsNanAndInfinityOnlyItself) {
  EXPECT_TRUE(Compare({"y", Floats({kNan, kInf})}, Floats({kNan, kInf}), kTolerance).ok());
  EXPECT_FALSE(Compare({"y", Floats({kNan})}, Floats({1}), kTolerance).ok());
  EXPECT_FALSE(Compare({"y", Floats({1})}, Floats({kNan}), kTolerance).ok());
  EXPECT_FALSE(Compare({"y", Floats({kInf})}, Floats({-kInf}), kTolerance).ok());
  EXPECT_FALSE(Compare({"y", Floats({3e38f})}, Floats({kInf}), kTolerance).ok());
}

TEST(CompareTest, NansAreCountedAndNoErrorIsGivenWithoutNumbers) {
  const Comparison some =
      Compare({"y", Floats({kNan, 1, kNan, 2})}, Floats({0, 1, kNan, 1}), kTolerance);
  EXPECT_EQ(some.num_nan, 2);
  EXPECT_EQ(some.num_expected_nan, 1);
  EXPECT_EQ(some.relative_error, 1);
  EXPECT_EQ(FormatComparison(some),
            "y: differs, 2 of 4 elements, 2 NaN, expected 1, relative error 1 of the others, "
            "worst nan for 0 at [0]");
  const Comparison all = Compare({"y", Floats({kNan})}, Floats({1}), kTolerance);
  EXPECT_EQ(all.relative_error, std::nullopt);
  EXPECT_EQ(FormatComparison(all),
            "y: differs, 1 of 1 elements, 1 NaN, expected 0, worst nan for 1 at [0]");
  EXPECT_EQ(FormatComparison(Compare({"y", Floats({kInf})}, Floats({kInf}), kTolerance)), "y: ok");
  EXPECT_EQ(FormatComparison(Compare({"y", Floats({})}, Floats({}), kTolerance)),
            "y: ok, relative error 0");
}

TEST(CompareTest, ZeroToleranceMeansEqual) {
  EXPECT_TRUE(Compare({"y", Floats({1})}, Floats({1}), {.rtol = 0, .atol = 0}).ok());
  EXPECT_FALSE(
      Compare({"y", Floats({1})}, Floats({std::nextafterf(1, 2)}), {.rtol = 0, .atol = 0}).ok());
}

TEST(CompareTest, ComplexNumbersDifferByMoreThanTheirSize) {
  using C = std::complex<float>;
  const Tensor a = Tensor::Of<C>({1}, {C(1, 0)});
  const Tensor b = Tensor::Of<C>({1}, {C(0, 1)});
  EXPECT_TRUE(Compare({"y", a}, a, kTolerance).ok());
  EXPECT_FALSE(Compare({"y", a}, b, kTolerance).ok());
}

TEST(CompareTest, IntegersAreComparedExactly) {
  const int64_t large = (int64_t{1} << 53) + 1;
  const Tensor a = Tensor::Of<int64_t>({1}, {large});
  const Tensor b = Tensor::Of<int64_t>({1}, {large - 1});
  const Comparison c = Compare({"n", a}, b, {.rtol = 0, .atol = 0.5});
  EXPECT_EQ(c.num_different, 1);
  EXPECT_THAT(FormatComparison(c), HasSubstr("worst 9007199254740993 for 9007199254740992 at [0]"));
  EXPECT_TRUE(Compare({"n", a}, b, {.rtol = 0, .atol = 1}).ok());
  const Tensor least = Tensor::Of<int64_t>({1}, {std::numeric_limits<int64_t>::min()});
  const Tensor most = Tensor::Of<int64_t>({1}, {std::numeric_limits<int64_t>::max()});
  EXPECT_FALSE(Compare({"n", least}, most, {.rtol = 0.5, .atol = 0}).ok());
}

TEST(CompareTest, TheWorstComplexNumberIsShownWithBothParts) {
  using C = std::complex<float>;
  const Tensor a = Tensor::Of<C>({2}, {C(1, 0), C(3, -4)});
  const Tensor b = Tensor::Of<C>({2}, {C(1, 0), C(-3, 4)});
  EXPECT_THAT(FormatComparison(Compare({"y", a}, b, kTolerance)),
              HasSubstr("worst 3-4j for -3+4j at [1]"));
}

TEST(CompareTest, ShapeAndDTypeMustBeEqual) {
  const Comparison c = Compare({"y", Floats({1})}, Floats({1, 2}), kTolerance);
  EXPECT_EQ(c.problem, "got float32[1], expected float32[2]");
  EXPECT_EQ(Compare({"y", Tensor()}, Floats({1}), kTolerance).problem, "no value");
}

TEST(WriteOutputsTest, FilesOfAFolderAreNamedAfterTheVariables) {
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(WriteOutputs(folder / "out", {{"a/b", Floats({1, 2})}, {"c", Floats({3})}}).ok());
  const absl::StatusOr<Tensor> read = ReadNpy(folder / "out/a_b.npy");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(Compare({"a/b", *read}, Floats({1, 2}), {.rtol = 0, .atol = 0}).ok());
  EXPECT_TRUE(ReadNpy(folder / "out/c.npy").ok());
}

TEST(WriteOutputsTest, NamesThatWouldGiveOneFileAreRefused) {
  const testing::TemporaryFolder folder;
  EXPECT_FALSE(WriteOutputs(folder / "out", {{"a/b", Floats({1})}, {"a_b", Floats({2})}}).ok());
  EXPECT_TRUE(WriteOutputs(folder / "out.npz", {{"a/b", Floats({1})}, {"a_b", Floats({2})}}).ok());
}

}  // namespace
}  // namespace interp
