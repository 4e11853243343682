// check_numerics: when it shows what it finds, and when it fails.
#include <cmath>
#include <limits>

#include "tests/kernels/op_runs.h"

namespace interp::testing::check_numerics_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

OpRun Check(int level, float value) {
  return {.type = "check_numerics",
          .inputs = {{"tensor", Tensor::Of<float>({2}, {1, value})}},
          .outputs = {"stats", "values"},
          .attrs = absl::StrCat("op_type=\"pow\", var_name=\"y\", check_nan_inf_level=", level)};
}

std::string ShownBy(const OpRun& run) {
  ::testing::internal::CaptureStderr();
  OutputsOf(run);
  return ::testing::internal::GetCapturedStderr();
}

const float kInfinity = std::numeric_limits<float>::infinity();

TEST(CheckNumericsTest, AtLevel0ANanOrAnInfinityFailsTheRun) {
  ExpectRefusals({{Check(0, kInfinity),
                   "[op=pow, tensor=y, dtype=float32], numel=2, num_nan=0, "
                   "num_inf=1, num_zero=0"},
                  {Check(0, std::nanf("")), "num_nan=1"}});
  EXPECT_THAT(ShownBy(Check(0, 2)), IsEmpty());
}

TEST(CheckNumericsTest, AboveItIsShown) {
  EXPECT_THAT(ShownBy(Check(1, kInfinity)),
              HasSubstr("[PRECISION] [ERROR] in [op=pow, tensor=y, dtype=float32]"));
  EXPECT_THAT(ShownBy(Check(1, 2)), IsEmpty());
  EXPECT_THAT(ShownBy(Check(3, 2)), HasSubstr("[PRECISION] in [op=pow"));
}

TEST(CheckNumericsTest, NoNumbersHaveNoExtremes) {
  OpRun run = Check(1, 0);
  run.inputs[0].second = Tensor::Of<float>({0}, {});
  const std::vector<Tensor> out = OutputsOf(run);
  EXPECT_EQ(out[0].data<int64_t>()[2], 0);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(out[1].data<float>()[0], -kInfinity);
  EXPECT_EQ(out[1].data<float>()[1], kInfinity);
  EXPECT_EQ(out[1].data<float>()[2], 0);
}

}  // namespace
}  // namespace interp::testing::check_numerics_test
