// pow2_decay_with_linear_warmup against what Paddle 2.6.2 computes.
#include "tests/kernels/op_runs.h"

namespace interp::testing::pow2_decay_test {
namespace {

template <typename T>
OpRun DecayRun(int64_t step, const std::string& attrs) {
  return {"pow2_decay_with_linear_warmup",
          {{"LearningRate", Tensor::Of<T>({1}, {9})}, {"Step", Tensor::Of<int64_t>({1}, {step})}},
          {"LearningRateOut", "StepOut"},
          attrs};
}
const char kAttrs[] = "warmup_steps=4, total_steps=10, base_lr=0.5, end_lr=0.1";

template <typename T>
void ExpectRate(int64_t step, double rate) {
  const std::vector<Tensor> out = OutputsOf(DecayRun<T>(step, kAttrs));
  EXPECT_NEAR(*out[0].data<T>(), rate, 1e-7) << step;
  EXPECT_EQ(*out[1].data<int64_t>(), step + 1);
}

TEST(Pow2DecayTest, WarmsUpAndDecays) {
  for (const auto& [step, rate] : {std::pair<int64_t, double>{0, 0.125},
                                   {1, 0.25},
                                   {3, 0.5},
                                   {4, 0.37777779},
                                   {7, 0.14444445},
                                   {9, 0.1},
                                   {12, 0.1}}) {
    ExpectRate<float>(step, rate);
    ExpectRate<double>(step, rate);
  }
}

TEST(Pow2DecayTest, RefusesWarmupBeyondTheEnd) {
  ExpectRefusals({{DecayRun<float>(0, "warmup_steps=4, total_steps=3"), "'warmup_steps' is 4"},
                  {With(DecayRun<float>(0, kAttrs), 1, Numbers({1}, 1)), "'Step' is float32[1]"}});
}

}  // namespace
}  // namespace interp::testing::pow2_decay_test
