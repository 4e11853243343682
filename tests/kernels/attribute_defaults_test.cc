// What an op does where a program leaves an attribute out, as Paddle 2.6 does.
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;

TEST(AttributeDefaultsTest, TrilTriuKeepsTheUpperTriangle) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(Values<float>(OutputsOf({"tril_triu", {{"X", x}}, {"Out"}})[0]),
              ElementsAre(1, 2, 0, 4));
  const OpRun grad = {"tril_triu_grad", {{"Out@GRAD", x}}, {"X@GRAD"}};
  EXPECT_THAT(Values<float>(OutputsOf(grad)[0]), ElementsAre(1, 2, 0, 4));
}

TEST(AttributeDefaultsTest, AverageAccumulatesHasNoLongestWindow) {
  const auto count = [](int64_t value) { return Tensor::Of<int64_t>({1}, {value}); };
  const std::vector<Tensor> out =
      OutputsOf({"average_accumulates",
                 {{"param", Tensor::Of<float>({1}, {2.0F})},
                  {"in_sum_1", Tensor::Of<float>({1}, {3.0F})},
                  {"in_sum_2", Tensor::Of<float>({1}, {0.0F})},
                  {"in_sum_3", Tensor::Of<float>({1}, {0.0F})},
                  {"in_num_accumulates", count(1)},
                  {"in_old_num_accumulates", count(0)},
                  {"in_num_updates", count(1)}},
                 {"out_sum_1", "out_sum_2", "out_sum_3", "out_num_accumulates",
                  "out_old_num_accumulates", "out_num_updates"},
                 "average_window=1.0"});
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(5));
  EXPECT_THAT(Values<int64_t>(out[3]), ElementsAre(2));
}

TEST(AttributeDefaultsTest, AdamWDoesNotDecay) {
  const Tensor one = Tensor::Of<float>({1}, {1.0F});
  const Tensor zero = Tensor::Of<float>({1}, {0.0F});
  const std::vector<Tensor> out = OutputsOf({"adamw",
                                             {{"Param", one},
                                              {"Grad", zero},
                                              {"LearningRate", one},
                                              {"Moment1", zero},
                                              {"Moment2", zero},
                                              {"Beta1Pow", Tensor::Of<float>({1}, {0.9F})},
                                              {"Beta2Pow", Tensor::Of<float>({1}, {0.999F})}},
                                             {"ParamOut", "Moment1Out", "Moment2Out"},
                                             "coeff=0.5"});
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(1));
}

}  // namespace
}  // namespace interp::testing
