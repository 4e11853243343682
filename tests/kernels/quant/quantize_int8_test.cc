// quantize_int8 beside the ops of training, and the ops of Paddle-Mobile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/kernels/int8_numbers.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing::quantize_int8_test {
namespace {

TEST(QuantizeInt8Test, EqualsTheOpOfTraining) {
  const Tensor x = Numbers({3, 5, 7}, 4);
  const Tensor scale = Tensor::Of<float>({1}, {0.8F});
  for (const char* attrs : {"round_type=0", "round_type=1", "round_type=0, bit_length=5"}) {
    for (const bool given : {true, false}) {
      OpRun ours = {"quantize_int8", {{"X", x}}, {"Out", "OutScale"}, attrs};
      OpRun theirs = {"fake_quantize_abs_max", {{"X", x}}, {"Out", "OutScale"}, attrs};
      if (given) {
        ours.inputs.emplace_back("Scale", scale);
        theirs.type = "fake_quantize_moving_average_abs_max";
        theirs.inputs.emplace_back("InScale", scale);
        theirs.attrs += ", is_test=true";
      }
      const std::vector<Tensor> got = OutputsOf(ours);
      const std::vector<Tensor> expected = OutputsOf(theirs);
      ASSERT_EQ(got[0].dtype, DType::kInt8);
      EXPECT_EQ(got[1].data<float>()[0], expected[1].data<float>()[0]);
      for (int64_t i = 0; i < x.numel(); ++i) {
        ASSERT_EQ(got[0].data<int8_t>()[i], expected[0].data<float>()[i]) << attrs;
      }
    }
  }
}

TEST(QuantizeInt8Test, NothingAndNoNumberAreNoTrouble) {
  const OpRun empty = {
      "quantize_int8", {{"X", Tensor::Of<float>({0, 3}, {})}}, {"Out", "OutScale"}};
  EXPECT_EQ(OutputsOf(empty)[0].numel(), 0);
  const OpRun nan = {
      "quantize_int8",
      {{"X", Tensor::Of<float>({2}, {NAN, 1})}, {"Scale", Tensor::Of<float>({1}, {1})}},
      {"Out"}};
  EXPECT_EQ(OutputsOf(nan)[0].data<int8_t>()[1], 127);
}

// Windows of one step, of two passes, beside paddings, and of images that are channels-last.
TEST(QuantizeInt8Test, MaximaOfWholeNumbersAreThoseOfRealOnes) {
  for (const int64_t channels : {1, 17, 64, 130}) {
    for (const char* attrs : {"ksize=[2, 2], strides=[2, 2]", "ksize=[9, 9], paddings=[4, 4]",
                              "ksize=[3, 3], strides=[2, 2], paddings=[1, 1], ceil_mode=true",
                              "ksize=[1, 1], global_pooling=true"}) {
      for (const bool last : {false, true}) {
        const Shape shape = last ? Shape{2, 13, 12, channels} : Shape{2, channels, 13, 12};
        const Tensor whole = Whole<int8_t>(shape, 7);
        const std::vector<float> real(whole.data<int8_t>(), whole.data<int8_t>() + whole.numel());
        OpRun run = {"pool2d", {{"X", whole}}, {"Out"}, attrs};
        absl::StrAppend(&run.attrs, ", data_format=\"", last ? "NHWC" : "NCHW", "\"");
        const Tensor got = OutputsOf(run)[0];
        const Tensor want = OutputsOf(With(run, 0, Tensor::Of<float>(shape, real)))[0];
        ASSERT_EQ(got.shape, want.shape);
        for (int64_t i = 0; i < want.numel(); ++i) {
          ASSERT_EQ(got.data<int8_t>()[i], want.data<float>()[i]) << channels << attrs;
        }
      }
    }
  }
}

TEST(MobileQuantizeTest, ComputesWhatPaddleMobileDoes) {
  const std::vector<Tensor> quantized = OutputsOf(
      {"quantize", {{"X", Tensor::Of<float>({4}, {-2, 0.5F, 1, 0.0079F})}}, {"Out", "OutScale"}});
  EXPECT_EQ(quantized[1].data<float>()[0], 2);
  EXPECT_THAT(std::vector<float>(quantized[0].data<float>(), quantized[0].data<float>() + 4),
              ::testing::ElementsAre(-127, 32, 64, 1));
  const std::vector<Tensor> back =
      OutputsOf({"dequantize",
                 {{"X", Tensor::Of<float>({2}, {8, -4})}, {"Scale", Tensor::Of<float>({1}, {3})}},
                 {"Out"},
                 "max_range=12.0"});
  EXPECT_THAT(std::vector<float>(back[0].data<float>(), back[0].data<float>() + 2),
              ::testing::ElementsAre(2, -1));
  const Tensor x = Numbers({2}, 1);
  ExpectRefusals({
      {{"quantize", {{"X", x}}, {"Output"}}, "has no output 'Out'"},
      {{"quantize", {{"X", x}, {"Input", x}}, {"Out", "OutScale"}}, "one of the inputs"},
      {{"dequantize", {{"X", x}}, {"Out"}, "max_range=1.0"}, "'Scale' is absent"},
      {{"dequantize", {{"X", x}, {"Scale", x}}, {"Out"}, "max_range=1.0"}, "one element"},
      {{"dequantize", {{"X", x}, {"Scale", x}}, {"Out"}}, "'max_range'"},
      {{"dequantize", {{"Input", x}}, {"Output"}}, "expected int8"},
  });
}

}  // namespace
}  // namespace interp::testing::quantize_int8_test
