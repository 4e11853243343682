// Element types that Paddle takes besides the usual ones. Values are Paddle's.
#include <complex>

#include "tests/kernels/op_runs.h"

namespace interp::testing::types_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

template <typename T>
class LabelTypeTest : public ::testing::Test {};
using LabelTypes = ::testing::Types<uint8_t, int8_t, int16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(LabelTypeTest, LabelTypes);

TYPED_TEST(LabelTypeTest, SoftmaxWithCrossEntropyTakesIt) {
  const Tensor labels = Tensor::Of<TypeParam>({2, 1}, {1, 0});
  const std::vector<Tensor> out =
      OutputsOf({"softmax_with_cross_entropy",
                 {{"Logits", Tensor::Of<float>({2, 3}, {1, 2, 3, 0, 1, 0})}, {"Label", labels}},
                 {"Softmax", "Loss"}});
  EXPECT_THAT(Values<float>(out[1]), Pointwise(FloatNear(1e-6f), {1.4076059f, 1.5514446f}));
  const Tensor ones = Tensor::Of<float>({2, 1}, {1, 1});
  const std::vector<Tensor> gradient =
      OutputsOf({"softmax_with_cross_entropy_grad",
                 {{"Softmax", out[0]}, {"Label", labels}, {"Loss@GRAD", ones}},
                 {"Logits@GRAD"}});
  EXPECT_THAT(Values<float>(gradient[0]),
              Pointwise(FloatNear(1e-6f), {0.0900306f, -0.7552716f, 0.6652409f, -0.7880584f,
                                           0.5761169f, 0.2119416f}));
}

TYPED_TEST(LabelTypeTest, LabelsOutsideAreRefused) {
  ExpectRefusals({{{"softmax_with_cross_entropy",
                    {{"Logits", Tensor::Of<float>({1, 3}, {1, 2, 3})},
                     {"Label", Tensor::Of<TypeParam>({1, 1}, {3})}},
                    {"Softmax", "Loss"}},
                   "input 'Label' has the value 3 at position 0, expected 0 to 2"}});
}

template <typename T>
class IndexPutTypeTest : public ::testing::Test {};
using PutTypes = ::testing::Types<float, double, float16, bfloat16, int8_t, uint8_t, int16_t,
                                  int32_t, int64_t, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(IndexPutTypeTest, PutTypes);

// The places 0, 2 and 0 of three take 5, 6 and 7.
TYPED_TEST(IndexPutTypeTest, PutsAndAdds) {
  using T = TypeParam;
  const auto of = [](float a, float b, float c) {
    return Tensor::Of<T>({3}, {static_cast<T>(a), static_cast<T>(b), static_cast<T>(c)});
  };
  OpRun run = {"index_put",
               {{"x", of(1, 2, 3)},
                {"indices", Tensor::Of<int64_t>({3}, {0, 2, 0})},
                {"value", of(5, 6, 7)}},
               {"out"},
               "accumulate=false"};
  EXPECT_TRUE(SameBits(OutputsOf(run)[0], of(7, 2, 6)));
  run.attrs = "accumulate=true";
  EXPECT_TRUE(SameBits(OutputsOf(run)[0], of(13, 2, 9)));
}

// Numbers that are not 0 are true. What Paddle 2.6.2 gives.
TEST(ScaleTypeTest, OfBool) {
  const auto run = [](const std::string& attrs) {
    return Values<bool>(OutputsOf({"scale", {{"X", Mask({true, false})}}, {"Out"}, attrs})[0]);
  };
  EXPECT_THAT(run("scale=3.0"), ElementsAre(true, false));
  EXPECT_THAT(run("scale=0.0"), ElementsAre(false, false));
  EXPECT_THAT(run("scale=3.0, bias=1.0"), ElementsAre(true, true));
  EXPECT_THAT(run("scale=0.0, bias=1.0, bias_after_scale=false"), ElementsAre(false, false));
  EXPECT_THAT(run("scale=0.5"), ElementsAre(true, false));
  EXPECT_THAT(run("scale=0.0, bias=0.5"), ElementsAre(true, true));
}

}  // namespace
}  // namespace interp::testing::types_test
