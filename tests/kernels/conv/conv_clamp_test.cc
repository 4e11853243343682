// Convolutions that clamp their results keep NaN and overflow as clamps of their own do, wherever
// the values come from that are no bounded numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/conv/conv_onednn.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace conv_clamp_test {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// A convolution of 3 x 3 or, as a pair, one of 1 x 1 and a depthwise one; `filter_is_fed`: from run
// to run.
struct ClampCase {
  std::string activation;
  bool pair = false;
  int64_t size = 8;
  int64_t channels = 32;
  bool filter_is_fed = false;
};

std::string ClampProgram(const ClampCase& c, bool fused) {
  const int64_t kernel = c.pair ? 1 : 3;
  const std::string image = absl::StrCat("[1,", c.channels, ",", c.size, ",", c.size, "]");
  std::string text = absl::StrCat("block 0\n  var x float32[1,16,", c.size, ",", c.size,
                                  "]\n  var w float32[", c.channels, ",16,", kernel, ",", kernel,
                                  "]", c.filter_is_fed ? "" : " param", "\n");
  for (const char* name : {"s", "a", "y"})
    absl::StrAppend(&text, "  var ", name, " float32", image, "\n");
  absl::StrAppend(&text, "  var b float32[", c.channels, "] param\n  var d float32[", c.channels,
                  ",1,3,3] param\n");
  const std::string pads = c.pair ? "paddings=[0, 0]" : "paddings=[1, 1]";
  const std::string deep = absl::StrCat("paddings=[1, 1], groups=", c.channels);
  if (!fused) {
    absl::StrAppend(&text, "  fused_conv2d(Input=x, Filter=w, Bias=b) -> (Output=s) {", pads,
                    "}\n  ", c.activation, "(X=s) -> (Out=", c.pair ? "a" : "y", ")\n");
    if (c.pair)
      absl::StrAppend(&text, "  fused_conv2d(Input=a, Filter=d) -> (Output=y) {", deep, "}\n");
    return text;
  }
  if (!c.pair) {
    return absl::StrCat(text, "  fused_conv2d(Input=x, Filter=w, Bias=b) -> (Output=y) {", pads,
                        ", fuse_activation=\"", c.activation, "\"}\n");
  }
  return absl::StrCat(
      text,
      "  fused_pointwise_depthwise(Input=x, Filter=w, Bias=b, DepthwiseFilter=d) -> "
      "(Output=y) {paddings=[0, 0], fuse_activation=\"",
      c.activation, "\", depthwise_paddings=[1, 1], depthwise_groups=", c.channels, "}\n");
}

struct ClampValues {
  Tensor x;
  Tensor w;
  Tensor b;
};

std::vector<float> RunClamp(const ClampCase& c, bool fused, const ClampValues& values,
                            int threads) {
  absl::StatusOr<Program> program = ParseProgram(ClampProgram(c, fused));
  EXPECT_THAT(program, IsOk());
  auto scope = std::make_shared<Scope>();
  if (!c.filter_is_fed) scope->FindOrCreate("w")->tensor = values.w;
  scope->FindOrCreate("b")->tensor = values.b;
  scope->FindOrCreate("d")->tensor = Numbers({c.channels, 1, 3, 3}, 9);
  std::vector<std::string> feeds = {"x"};
  std::vector<Tensor> fed = {values.x};
  if (c.filter_is_fed) {
    feeds.push_back("w");
    fed.push_back(values.w);
  }
  CoreOptions options{.num_threads = threads};
  options.passes.disable = {"fuse_conv", "fuse_depthwise"};
  auto core = InterpreterCore::Create(*std::move(program), feeds, {"y"}, scope, options);
  EXPECT_THAT(core, IsOk());
  auto outputs = (*core)->Run(fed);
  EXPECT_THAT(outputs, IsOk());
  const Tensor& y = (*outputs)[0];
  return {y.data<float>(), y.data<float>() + y.numel()};
}

// Where the value that is none of the bounded ones is put.
struct Planted {
  const char* where;
  float value;
};

class ConvClampTest : public ::testing::TestWithParam<ClampCase> {};

TEST_P(ConvClampTest, IsThatOfAnActivationOfItsOwn) {
  const ClampCase& c = GetParam();
  const int64_t kernel = c.pair ? 1 : 3;
  for (const Planted& planted : {Planted{"nowhere", 0}, Planted{"x", kNan}, Planted{"x", kInf},
                                 Planted{"x", -kInf}, Planted{"x", 3e38F}, Planted{"w", kNan},
                                 Planted{"w", -3e38F}, Planted{"b", kNan}, Planted{"b", kInf}}) {
    ClampValues values = {Numbers({1, 16, c.size, c.size}, 1),
                          Numbers({c.channels, 16, kernel, kernel}, 2), Numbers({c.channels}, 3)};
    for (const auto& [name, tensor] :
         {std::pair{"x", &values.x}, {"w", &values.w}, {"b", &values.b}}) {
      if (name == std::string(planted.where)) tensor->mutable_data<float>()[7] = planted.value;
    }
    SCOPED_TRACE(absl::StrCat(planted.value, " in ", planted.where));
    const std::vector<float> wanted = RunClamp(c, /*fused=*/false, values, /*threads=*/1);
    const bool any_nan = std::any_of(wanted.begin(), wanted.end(), [](float y) { return y != y; });
    EXPECT_TRUE(any_nan || !std::isnan(planted.value));
    for (const int threads : {1, 2}) {
      const std::vector<float> got = RunClamp(c, /*fused=*/true, values, threads);
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); ++i) {
        if (std::isnan(wanted[i])) {
          ASSERT_TRUE(std::isnan(got[i])) << i << " is " << got[i];
        } else {
          ASSERT_NEAR(got[i], wanted[i], 2e-4) << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ConvClampTest,
    ::testing::Values(ClampCase{.activation = "relu6"}, ClampCase{.activation = "hard_sigmoid"},
                      ClampCase{.activation = "relu6", .size = 96},
                      ClampCase{.activation = "relu6", .filter_is_fed = true},
                      ClampCase{.activation = "relu6", .pair = true},
                      // In bands.
                      ClampCase{.activation = "relu6", .pair = true, .size = 96, .channels = 96},
                      ClampCase{
                          .activation = "hard_sigmoid", .pair = true, .size = 96, .channels = 96}));

TEST(ConvClampTest, IsAPostOpWhereThatIsLessThanAPass) {
  nn::ConvProblem problem = {
      .batch = 1, .in_channels = 16, .out_channels = 32, .window = {.rank = 2}};
  for (int i = 0; i < 2; ++i) problem.window[i] = {.in = 8, .out = 8};
  nn::ConvEpilogue relu6 = {.activation = {nn::ActivationKind::kRelu6, 6}};
  EXPECT_TRUE(nn::ClampsBoundedInputs(problem, relu6, DType::kFloat32));
  EXPECT_FALSE(nn::ClampsBoundedInputs(problem, relu6, DType::kBFloat16));
  const nn::ConvEpilogue relu = {.activation = {nn::ActivationKind::kRelu}};
  EXPECT_FALSE(nn::ClampsBoundedInputs(problem, relu, DType::kFloat32));
  relu6.residual = true;
  EXPECT_FALSE(nn::ClampsBoundedInputs(problem, relu6, DType::kFloat32));
  relu6.residual = false;
  problem.in_channels = 65;
  EXPECT_FALSE(nn::ClampsBoundedInputs(problem, relu6, DType::kFloat32));
}

}  // namespace conv_clamp_test
}  // namespace interp::testing
