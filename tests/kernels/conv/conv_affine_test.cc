// Factors and summands of one number each that fuse_conv takes into a convolution: the fused
// program gives what the ops one by one give, whatever the algorithm.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

struct AffineCase {
  std::string name;
  std::string conv;  // attributes
  Shape filter;
  std::string activation;  // an op
};

std::string TextOfAffine(const AffineCase& test) {
  const std::string conv = test.filter[1] == 1 ? "depthwise_conv2d" : "conv2d";
  return absl::StrCat(
      "block 0\n  var x float32[1,32,-1,-1]\n  var w float32[32,", test.filter[1], ",",
      test.filter[2], ",", test.filter[3],
      "] param\n  var p float32[1] param\n  var q float32[1] param\n  var r float32[1] param\n"
      "  var t float32[1] param\n  var c float32[1,32,-1,-1]\n  ",
      conv, "(Input=x, Filter=w) -> (Output=c) {", test.conv,
      "}\n  elementwise_mul(X=p, Y=c) -> (Out=f)\n  elementwise_add(X=f, Y=q) -> (Out=g)\n  ",
      test.activation,
      "\n  elementwise_mul(X=h, Y=r) -> (Out=i)\n  elementwise_add(X=i, Y=t) -> (Out=y)\n");
}

std::vector<float> RunAffine(const AffineCase& test, const Tensor& x, bool fused) {
  const absl::StatusOr<Program> program = ParseProgram(TextOfAffine(test));
  EXPECT_THAT(program, IsOk());
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Numbers(test.filter, 2);
  const std::vector<std::pair<std::string, float>> numbers = {
      {"p", -1.25F}, {"q", 0.5F}, {"r", 1.5F}, {"t", -0.75F}};
  for (const auto& [name, value] : numbers) {
    scope->FindOrCreate(name)->tensor = Tensor::Of<float>({1}, {value});
  }
  CoreOptions options;
  if (!fused) options.passes.disable = {"fuse_conv"};
  const auto core = InterpreterCore::Create(*program, {"x"}, {"y"}, scope, options);
  EXPECT_THAT(core, IsOk());
  if (!core.ok()) return {};
  size_t sums = 0;
  const auto results = (*core)->Run({x});
  EXPECT_THAT(results, IsOk());
  if (!results.ok()) return {};
  for (const Instruction& instruction : (*core)->plan().instructions) {
    sums += instruction.op_type == "elementwise_add" ? 1 : 0;
  }
  EXPECT_EQ(sums, fused ? 0u : 2u);
  return ::interp::testing::Values<float>((*results)[0]);
}

class ConvAffineTest : public ::testing::TestWithParam<AffineCase> {};

TEST_P(ConvAffineTest, GivesWhatTheOpsGive) {
  const Tensor x = Numbers({1, 32, 40, 40}, 1);
  const std::vector<float> expected = RunAffine(GetParam(), x, /*fused=*/false);
  const std::vector<float> actual = RunAffine(GetParam(), x, /*fused=*/true);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 2e-4) << i;
}

// An image that stays in the cache and one that does not: they are activated in ways of their own.
TEST_P(ConvAffineTest, HasNanWhereTheOpsHaveIt) {
  for (const int64_t side : {40, 120}) {
    Tensor x = Numbers({1, 32, side, side}, 1);
    x.mutable_data<float>()[x.numel() / 2] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> expected = RunAffine(GetParam(), x, /*fused=*/false);
    const std::vector<float> actual = RunAffine(GetParam(), x, /*fused=*/true);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      // Winograd's tiles spread it.
      const bool spreads = absl::StartsWith(GetParam().name, "Winograd");
      if (spreads && std::isnan(actual[i])) continue;
      ASSERT_EQ(std::isnan(actual[i]), std::isnan(expected[i])) << i << " of side " << side;
    }
  }
}

std::vector<AffineCase> AffineCases() {
  return {
      {"Pointwise", "", {32, 32, 1, 1}, "relu(X=g) -> (Out=h)"},
      {"Winograd", "paddings=[1,1]", {32, 32, 3, 3}, "relu(X=g) -> (Out=h)"},
      {"WinogradWithAPassOfItsOwn", "paddings=[1,1]", {32, 32, 3, 3}, "swish(X=g) -> (Out=h)"},
      {"Depthwise", "groups=32", {32, 1, 3, 3}, "hard_swish(X=g) -> (Out=h)"},
      {"Dilated", "dilations=[2,2]", {32, 32, 3, 3}, "leaky_relu(X=g) -> (Out=h) {alpha=0.1}"},
      {"HardSigmoid", "", {32, 32, 1, 1}, "hard_sigmoid(X=g) -> (Out=h) {slope=0.3, offset=0.4}"},
      {"HardSigmoidDilated",
       "dilations=[2,2]",
       {32, 32, 3, 3},
       "hard_sigmoid(X=g) -> (Out=h) {slope=0.3, offset=0.4}"},
      {"HardSigmoidDepthwise",
       "groups=32",
       {32, 1, 3, 3},
       "hard_sigmoid(X=g) -> (Out=h) {slope=0.3, offset=0.4}"},
      {"Relu6", "", {32, 32, 1, 1}, "relu6(X=g) -> (Out=h)"},
      {"Tanh", "", {32, 32, 1, 1}, "tanh(X=g) -> (Out=h)"},
      {"Gelu", "", {32, 32, 1, 1}, "gelu(X=g) -> (Out=h)"},
      {"Sigmoid", "", {32, 32, 1, 1}, "sigmoid(X=g) -> (Out=h)"},
  };
}

INSTANTIATE_TEST_SUITE_P(Convolutions, ConvAffineTest, ::testing::ValuesIn(AffineCases()),
                         [](const auto& info) { return info.param.name; });

// A hard_swish with constants of its own.
TEST(ConvAffineTest, ComesBehindAnActivationThatOnednnLacks) {
  OpRun conv = {"fused_conv2d",
                {{"Input", Numbers({1, 3, 5, 5}, 1)}, {"Filter", Numbers({4, 3, 1, 1}, 2)}},
                {"Output"},
                ""};
  const std::vector<float> plain = ::interp::testing::Values<float>(OutputsOf(conv)[0]);
  conv.attrs = "fuse_activation=\"hard_swish\", fuse_alpha=0.25, fuse_beta=0.5";
  conv.inputs.push_back({"PostScale", Tensor::Of<float>({1}, {3})});
  const std::vector<float> values = ::interp::testing::Values<float>(OutputsOf(conv)[0]);
  for (size_t i = 0; i < values.size(); ++i) {
    const float x = plain[i];
    EXPECT_NEAR(values[i], 3 * x * std::clamp(0.25F * x + 0.5F, 0.0F, 1.0F), 1e-5);
  }
}

// Numbers that are fed are those of the run.
TEST(ConvAffineTest, TakesTheNumbersOfTheRun) {
  const OpRun conv = {"fused_conv2d",
                      {{"Input", Numbers({1, 3, 5, 5}, 1)}, {"Filter", Numbers({4, 3, 1, 1}, 2)}},
                      {"Output"},
                      ""};
  const std::vector<float> plain = ::interp::testing::Values<float>(OutputsOf(conv)[0]);
  for (const float factor : {2.0F, -3.0F}) {
    OpRun scaled = conv;
    scaled.inputs.push_back({"PreScale", Tensor::Of<float>({1}, {factor})});
    scaled.inputs.push_back({"PostShift", Tensor::Of<float>({1}, {factor})});
    const std::vector<float> values = ::interp::testing::Values<float>(OutputsOf(scaled)[0]);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], plain[i] * factor + factor, 1e-5);
    }
  }
  OpRun wrong = conv;
  wrong.inputs.push_back({"PreScale", Numbers({2}, 1)});
  ExpectRefusals({{wrong, "input 'PreScale' has shape [2]"}});
}

}  // namespace
}  // namespace interp::testing
