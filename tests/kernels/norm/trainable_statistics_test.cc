// batch_norm and sync_batch_norm with is_test and trainable_statistics, as BatchNorm2D of Paddle
// with use_global_stats=False writes them in evaluation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/run_op.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

class TrainableStatisticsTest : public ::testing::TestWithParam<std::string> {};

// A run of the op on x[n,c,h,w] = (12 n + 4 c + 2 h + w) mod 7, with mean 0 and variance 1 before.
std::shared_ptr<Scope> StatisticsAfterRun(const std::string& op, const std::string& attrs) {
  absl::StatusOr<Program> program = ParseProgram(absl::StrCat(
      R"(block 0
  var x float32[2,3,2,2]
  var scale float32[3] param
  var bias float32[3] param
  var mean float32[3] persistable
  var variance float32[3] persistable
  var y float32[2,3,2,2]
)",
      "  ", op, "(X=x, Scale=scale, Bias=bias, Mean=mean, Variance=variance)",
      " -> (Y=y, MeanOut=mean, VarianceOut=variance, SavedMean=sm, SavedVariance=sv)",
      " {momentum=0.5, is_test=true, ", attrs, "}\n"));
  EXPECT_THAT(program, IsOk());
  auto scope = std::make_shared<Scope>();
  for (const char* name : {"scale", "variance"}) {
    scope->FindOrCreate(name)->tensor = VectorOf<float>({1, 1, 1});
  }
  for (const char* name : {"bias", "mean"}) {
    scope->FindOrCreate(name)->tensor = VectorOf<float>({0, 0, 0});
  }
  const auto core = InterpreterCore::Create(*std::move(program), {"x"}, {"y"}, scope, {});
  EXPECT_THAT(core, IsOk());
  std::vector<float> x;
  for (int i = 0; i < 24; ++i) x.push_back(static_cast<float>(i % 7));
  EXPECT_THAT((*core)->Run({Tensor::Of<float>({2, 3, 2, 2}, x)}), IsOk());
  return scope;
}

// What Paddle 2.6.2 gives.
TEST_P(TrainableStatisticsTest, MoveInTests) {
  const auto scope = StatisticsAfterRun(GetParam(), "trainable_statistics=true");
  EXPECT_THAT(Values<float>(scope->Find("mean")->tensor), ElementsAre(1.125F, 1.8125F, 1.1875F));
  EXPECT_THAT(Values<float>(scope->Find("variance")->tensor),
              ElementsAre(2.71875F, 2.1171875F, 2.1171875F));
}

TEST_P(TrainableStatisticsTest, StayWhereGlobalOnesAreUsed) {
  for (const char* attrs : {"trainable_statistics=true, use_global_stats=true",
                            "trainable_statistics=false, use_global_stats=false"}) {
    const auto scope = StatisticsAfterRun(GetParam(), attrs);
    EXPECT_THAT(Values<float>(scope->Find("mean")->tensor), ElementsAre(0, 0, 0));
    EXPECT_THAT(Values<float>(scope->Find("variance")->tensor), ElementsAre(1, 1, 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, TrainableStatisticsTest,
                         ::testing::Values("batch_norm", "sync_batch_norm"),
                         [](const auto& info) { return info.param; });

// One such variable serves layers of all dtypes.
TEST(MomentumTensorTest, MayBeAFloatBesideDoubles) {
  const Tensor one = Tensor::Of<double>({1}, {1});
  const absl::StatusOr<std::vector<Tensor>> results =
      RunOp({"batch_norm",
             {{"X", Tensor::Of<double>({2, 1}, {2, 4})},
              {"Scale", one},
              {"Bias", one},
              {"Mean", one},
              {"Variance", one},
              {"MomentumTensor", Tensor::Of<float>({1}, {0.75F})}},
             {"Y", "MeanOut"}});
  ASSERT_THAT(results, IsOk());
  EXPECT_THAT(Values<double>((*results)[1]), ElementsAre(0.75 * 1 + 0.25 * 3));
}

}  // namespace
}  // namespace interp::testing
