// Inputs and attributes that once made an op read or write beyond a tensor, divide by zero, loop
// for hours or take all memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/run_op.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using absl::StatusCode;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

template <typename T = float>
Tensor Filled(const Shape& shape, T value = T{1}) {
  return Tensor::Of<T>(shape, std::vector<T>(static_cast<size_t>(shape.numel()), value));
}

Tensor Doubles(const std::vector<double>& values) {
  return Tensor::Of<double>({static_cast<int64_t>(values.size())}, values);
}

TEST(HostileInputsTest, HistogramOfNumbersWhoseRangeOverflows) {
  for (const std::vector<double>& x :
       {std::vector<double>{0, 1e308}, std::vector<double>{-1.7e308, 1.7e308}}) {
    EXPECT_THAT(RunOp({"histogram", {{"X", Doubles(x)}}, {"Out"}, "bins=100, min=0, max=0"}),
                IsOk());
  }
}

TEST(HostileInputsTest, PositionsOfChannelsLastMaximaAreRefused) {
  EXPECT_THAT(RunOp({"max_pool2d_with_index",
                     {{"X", Filled({1, 4, 4, 3})}},
                     {"Out", "Mask"},
                     "ksize=[2, 2], strides=[2, 2], paddings=[0, 0], data_format=\"NHWC\""}),
              FailsWith(StatusCode::kUnimplemented, "channels-last"));
}

TEST(HostileInputsTest, AGradientOfABiasThatIsNotThere) {
  const std::vector<std::pair<std::string, Tensor>> inputs = {{"X", Filled({1, 2})},
                                                              {"W", Filled({3, 2})},
                                                              {"Label", Filled<int64_t>({1, 1})},
                                                              {"PreOut", Filled({1, 2})},
                                                              {"Out@GRAD", Filled({1, 1})}};
  EXPECT_THAT(RunOp({"hierarchical_sigmoid_grad", inputs, {"Bias@GRAD"}, "num_classes=4"}),
              FailsWith(StatusCode::kInvalidArgument, "no input 'Bias'"));
}

TEST(HostileInputsTest, GroupsWhoseProductOverflows) {
  EXPECT_THAT(RunOp({"deformable_psroi_pooling",
                     {{"Input", Filled({1, 1, 1, 1})},
                      {"ROIs", Filled({1, 4})},
                      {"Trans", Filled({1, 2, 1, 1})}},
                     {"TopCount", "Output"},
                     "no_trans=true, output_dim=16, group_size=[1073741824, 1073741824]"}),
              FailsWith(StatusCode::kInvalidArgument, "'group_size' is not two values of 1 to"));
}

TEST(HostileInputsTest, AGradientOfARepeatedLabelOfLengthOne) {
  const auto grads = RunOp({"einsum_grad",
                            {{"InnerCache", Filled({1, 5})}, {"Out@GRAD", Filled({5})}},
                            {"Operands@GRAD"},
                            "equation=\"ii->i\""});
  ASSERT_THAT(grads, IsOk());
  EXPECT_THAT(Values<float>((*grads)[0]), ElementsAre(1, 1, 1, 1, 1));
}

TEST(HostileInputsTest, ArgumentsThatAreNone) {
  const absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var ids int64[2,1]
  var x float32[2,2]
  multiplex(Ids=ids, X=[@EMPTY@, x]) -> (Out=y)
)");
  ASSERT_THAT(program, IsOk());
  const auto core = InterpreterCore::Create(*program, {"ids", "x"}, {"y"}, nullptr);
  ASSERT_THAT(core, IsOk());
  EXPECT_THAT((*core)->Run({Filled<int64_t>({2, 1}), Filled({2, 2})}),
              FailsWith(StatusCode::kInvalidArgument, "'X' argument 0 is @EMPTY@"));
}

// The recurrence would take 4.5e15 steps.
TEST(HostileInputsTest, PolygammaFarBelowZero) {
  const auto out =
      RunOp({"polygamma", {{"x", Doubles({-4503599627370495.5, -1000.5, -1.5})}}, {"out"}, "n=1"});
  ASSERT_THAT(out, IsOk());
  const double square = M_PI * M_PI;  // by reflection: pi^2 / sin^2(pi x) - trigamma(1 - x)
  EXPECT_THAT(Values<double>((*out)[0]),
              ElementsAre(DoubleNear(square, 1e-9), DoubleNear(square - 9.9900049966e-4, 1e-9),
                          DoubleNear(square - 0.4903577561, 1e-9)));
}

TEST(HostileInputsTest, LongAxesWithoutElements) {
  constexpr int64_t kLong = int64_t{1} << 50;
  EXPECT_THAT(RunOp({"cumprod", {{"X", Filled({kLong, 0})}}, {"Out"}, "dim=1"}), IsOk());
  EXPECT_THAT(RunOp({"maxout", {{"X", Filled({kLong, 2, 0, 1})}}, {"Out"}, "groups=2"}), IsOk());
  EXPECT_THAT(
      RunOp({"repeat_interleave", {{"X", Filled({0, kLong})}}, {"Out"}, "Repeats=2, dim=1"}),
      FailsWith(StatusCode::kResourceExhausted, "slices without elements"));
  EXPECT_THAT(
      RunOp({"repeat_interleave", {{"X", Filled({2, 0})}}, {"Out"}, "Repeats=2147483647, dim=0"}),
      IsOk());
}

TEST(HostileInputsTest, MasksWithoutDims) {
  EXPECT_THAT(
      RunOp(
          {"index_put",
           {{"x", Filled({2})}, {"indices", Tensor::Of<bool>({}, {false})}, {"value", Filled({1})}},
           {"out"},
           ""}),
      FailsWith(StatusCode::kInvalidArgument, "a mask of 'indices' has no dims"));
}

TEST(HostileInputsTest, BesselFunctionsAtTheEndOfTheirRange) {
  const auto out = RunOp({"i0", {{"x", Doubles({INFINITY, -INFINITY, 712})}}, {"out"}, ""});
  ASSERT_THAT(out, IsOk());
  const std::vector<double> values = Values<double>((*out)[0]);
  EXPECT_EQ(values[0], INFINITY);
  EXPECT_EQ(values[1], INFINITY);
  EXPECT_TRUE(std::isfinite(values[2]));
}

TEST(HostileInputsTest, GradientsOfStatesThatAreMissing) {
  Tensor input = Filled({3, 3});
  input.lod = {{0, 2, 3}};
  EXPECT_THAT(RunOp({"gru_grad",
                     {{"Input", input},
                      {"Weight", Filled({1, 3})},
                      {"BatchGate", Filled({3, 3})},
                      {"BatchResetHiddenPrev", Filled({3, 1})},
                      {"Hidden", Filled({3, 1})},
                      {"Hidden@GRAD", Filled({3, 1})}},
                     {"H0@GRAD"},
                     ""}),
              FailsWith(StatusCode::kInvalidArgument,
                        "output 'H0@GRAD' is the gradient of input 'H0', which is missing"));
}

TEST(HostileInputsTest, CountsOfAveragesAtTheEndOfTheirRange) {
  const Tensor count = Tensor::Of<int64_t>({1}, {INT64_MAX});
  EXPECT_THAT(RunOp({"average_accumulates",
                     {{"param", Filled({2})},
                      {"in_sum_1", Filled({2})},
                      {"in_sum_2", Filled({2})},
                      {"in_sum_3", Filled({2})},
                      {"in_num_accumulates", count},
                      {"in_old_num_accumulates", count},
                      {"in_num_updates", count}},
                     {"out_sum_1", "out_sum_2", "out_sum_3", "out_num_accumulates",
                      "out_old_num_accumulates", "out_num_updates"},
                     "average_window=0.5, max_average_window=4, min_average_window=2"}),
              IsOk());
}

TEST(HostileInputsTest, PositionsOfQueriesWithoutElements) {
  EXPECT_THAT(
      RunOp({"fused_rotary_position_embedding",
             {{"q", Filled({1, 2, 1, 0})}, {"sin", Filled({3, 0})}, {"cos", Filled({3, 0})}},
             {"out_q"},
             "use_neox_rotary_style=true"}),
      FailsWith(StatusCode::kInvalidArgument, "with an even width"));
}

TEST(HostileInputsTest, WindowsFarLargerThanTheirImages) {
  EXPECT_THAT(RunOp({"correlation",
                     {{"Input1", Filled({1, 1, 1, 1})}, {"Input2", Filled({1, 1, 1, 1})}},
                     {"Output"},
                     "pad_size=8192, kernel_size=16383, max_displacement=0, stride1=1, stride2=1"}),
              IsOk());
}

TEST(HostileInputsTest, ManyQueriesOfNoBatch) {
  const Tensor none = Filled({0, 100000, 1, 1});
  EXPECT_THAT(RunOp({"flash_attn",
                     {{"q", none}, {"k", none}, {"v", none}},
                     {"out"},
                     "dropout=0.0, causal=false, return_softmax=false"}),
              IsOk());
}

}  // namespace
}  // namespace interp::testing
