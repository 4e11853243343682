// NaN, infinity and tiny numbers, as Paddle 2.6.2 has them.
#include <cmath>
#include <limits>

#include "tests/kernels/op_runs.h"

namespace interp::testing::special_values_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(SpecialValues, ReluMakesNanZero) {
  const OpRun relu = {"relu", {{"X", TensorOf<float>({4}, {kNan, -kInf, kInf, 2})}}, {"Out"}};
  EXPECT_EQ(Values<float>(OutputsOf(relu)[0]), (std::vector<float>{0, 0, kInf, 2}));
  const OpRun fc = {"fc",
                    {{"Input", TensorOf<float>({1, 2}, {kNan, 1})},
                     {"W", TensorOf<float>({2, 3}, {1, 2, 3, 4, 5, 6})}},
                    {"Out"},
                    "activation_type=\"relu\""};
  EXPECT_EQ(Values<float>(OutputsOf(fc)[0]), (std::vector<float>{0, 0, 0}));
}

// Paddle's vectors of 8 have no root of infinity, what is behind the last of them has.
TEST(SpecialValues, OnlyWholeVectorsHaveNoRootOfInfinity) {
  for (const int64_t n : {1, 7, 9}) {
    const std::vector<float> x(static_cast<size_t>(n), kInf);
    const std::vector<float> roots =
        Values<float>(OutputsOf({"sqrt", {{"X", TensorOf<float>({n}, x)}}, {"Out"}})[0]);
    EXPECT_EQ(roots.back(), kInf) << n;
    EXPECT_EQ(std::isnan(roots[0]), n > 8) << n;
  }
}

TEST(SpecialValues, AbsHasNoSlopeAtInfinity) {
  const OpRun run = {"abs_grad",
                     {{"X", TensorOf<float>({5}, {kInf, -kInf, kNan, 0, -2})},
                      {"Out@GRAD", TensorOf<float>({5}, {1, 2, 3, 4, 5})}},
                     {"X@GRAD"}};
  const std::vector<float> slopes = Values<float>(OutputsOf(run)[0]);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(slopes[i])) << i;
  EXPECT_EQ(slopes[3], 0);
  EXPECT_EQ(slopes[4], -5);
}

// Which of equal elements the gradient of a median goes to.
TEST(SpecialValues, MediansOfEqualElementsAreThoseOfPaddle) {
  struct Case {
    std::vector<float> x;
    std::vector<int64_t> index;
  };
  const std::vector<Case> cases = {
      {{0, 0, 0, 0, 0}, {3, 3}},       {{0, 0, 0, 0}, {3, 0}},
      {{1, 2, 2, 3, 2}, {4, 4}},       {{kNan, 1, 1, 1, kNan}, {3, 3}},
      {{2, 2, 1, 1, 3, 3, 2}, {0, 0}}, {{5, 5, 5, 5, 5, 5, 5, 5, 5}, {8, 8}}};
  for (const auto& [x, index] : cases) {
    const OpRun run = {"nanmedian",
                       {{"X", TensorOf<float>({static_cast<int64_t>(x.size())}, x)}},
                       {"Out", "MedianIndex"}};
    EXPECT_EQ(Values<int64_t>(OutputsOf(run)[1]), index) << x.size();
  }
}

TEST(SpecialValues, FloorDivisionStaysWithinWhatTheRemainderSays) {
  const OpRun run = {"elementwise_floordiv",
                     {{"X", TensorOf<float>({5}, {1, -2.5F, 3.4e38F, 7, -7})},
                      {"Y", TensorOf<float>({5}, {-kInf, kInf, -1e38F, 2, 2})}},
                     {"Out"}};
  EXPECT_EQ(Values<float>(OutputsOf(run)[0]), (std::vector<float>{-1, -1, -4, 3, -4}));
}

TEST(SpecialValues, FloatsWithin1e8AreEqual) {
  const Tensor x = TensorOf<float>({6}, {1e-9F, 1e-7F, kInf, kInf, kNan, 1});
  const Tensor y = TensorOf<float>({6}, {2e-9F, 2e-7F, kInf, -kInf, kNan, 1});
  const OpRun equal = {"equal", {{"X", x}, {"Y", y}}, {"Out"}};
  const OpRun not_equal = {"not_equal", {{"X", x}, {"Y", y}}, {"Out"}};
  const std::vector<bool> expected = {true, false, true, false, false, true};
  const Tensor same = OutputsOf(equal)[0];
  const Tensor other = OutputsOf(not_equal)[0];
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(same.data<bool>()[i], expected[i]) << i;
    EXPECT_EQ(other.data<bool>()[i], !expected[i]) << i;
  }
}

}  // namespace
}  // namespace interp::testing::special_values_test
