// Attributes that earlier versions of Paddle have under other names or with other types.
#include "tests/kernels/op_runs.h"

namespace interp::testing::versions_test {
namespace {

using ::testing::ElementsAre;

std::vector<float> Result(const OpRun& run) {
  const Tensor out = OutputsOf(run)[0];
  return {out.data<float>(), out.data<float>() + out.numel()};
}

const Tensor kX = Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});

// Before 2.0.
TEST(VersionsTest, FlipAndRollHaveTheirAxesAsDims) {
  EXPECT_THAT(Result({"flip", {{"X", kX}}, {"Out"}, "dims=[1]"}), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(Result({"roll", {{"X", kX}}, {"Out"}, "shifts=[1], dims=[1]"}),
              ElementsAre(3, 1, 2, 6, 4, 5));
  EXPECT_THAT(
      Result({"roll_grad", {{"X", kX}, {"Out@GRAD", kX}}, {"X@GRAD"}, "shifts=[1], dims=[1]"}),
      ElementsAre(2, 3, 1, 5, 6, 4));
}

TEST(VersionsTest, TraceHasItsAxesAsDims) {
  const Tensor x = Tensor::Of<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(Result({"trace", {{"Input", x}}, {"Out"}, "offset=0, dim1=1, dim2=2"}),
              ElementsAre(1 + 4, 5 + 8));
  EXPECT_THAT(Result({"trace", {{"Input", x}}, {"Out"}, "offset=0, axis1=0, axis2=1"}),
              ElementsAre(1 + 7, 2 + 8));
}

// Before 1.5.
TEST(VersionsTest, DropoutHasAFlagForItsImplementation) {
  const auto test = [](const std::string& flag) {
    return Result({"dropout",
                   {{"X", kX}},
                   {"Out"},
                   "is_test=true, dropout_prob=0.5, dropout_implementation=" + flag});
  };
  EXPECT_THAT(test("true"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(test("false"), ElementsAre(0.5f, 1, 1.5f, 2, 2.5f, 3));
}

}  // namespace
}  // namespace interp::testing::versions_test
