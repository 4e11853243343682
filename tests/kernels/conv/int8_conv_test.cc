// int8_conv2d beside plain loops over whole numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/int8_numbers.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

struct Case {
  int64_t batch = 1, in = 4, height = 7, width = 6;
  int64_t out = 5, groups = 1, kernel_height = 3, kernel_width = 3;
  int64_t stride = 1, dilation = 1, pad = 1;
  std::string activation = "";
  bool residual = false;
  bool channels_last = false;
  bool to_int8 = false;   // results of int8, also with a scale of 0
  float out_scale = 0;    // above 0: the same
  bool half_even = true;  // how those are rounded
  float off_grid = 0;     // how far weights are from whole numbers

  int64_t out_height() const { return Size(height, kernel_height); }
  int64_t out_width() const { return Size(width, kernel_width); }
  int64_t Size(int64_t size, int64_t kernel) const {
    return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  }
  Shape Image(int64_t channels, int64_t h, int64_t w) const {
    return channels_last ? Shape{batch, h, w, channels} : Shape{batch, channels, h, w};
  }
  int64_t At(int64_t channels, int64_t h, int64_t w, int64_t n, int64_t c, int64_t y,
             int64_t x) const {
    return channels_last ? ((n * h + y) * w + x) * channels + c
                         : ((n * channels + c) * h + y) * w + x;
  }
};

struct Feeds {
  Tensor input, filter, bias, residual, input_scale, filter_scale, out_scale;
};

Feeds FeedsOf(const Case& c, uint32_t seed) {
  Feeds feeds;
  feeds.input = Whole<int8_t>(c.Image(c.in, c.height, c.width), seed);
  feeds.filter = Whole<float>({c.out, c.in / c.groups, c.kernel_height, c.kernel_width}, seed + 1);
  for (int64_t i = 0; i < feeds.filter.numel(); ++i) {
    feeds.filter.mutable_data<float>()[i] += c.off_grid;
  }
  feeds.bias = Numbers({c.out}, seed + 2);
  feeds.residual = Numbers(c.Image(c.out, c.out_height(), c.out_width()), seed + 3);
  feeds.input_scale = Tensor::Of<float>({1}, {1.5F});
  feeds.filter_scale = Numbers({c.out}, seed + 4);
  for (int64_t i = 0; i < c.out; ++i) feeds.filter_scale.mutable_data<float>()[i] += 1.25F;
  feeds.out_scale = Tensor::Of<float>({1}, {c.out_scale});
  return feeds;
}

constexpr double kRange = 127.0 * 127.0;

double SumAt(const Case& c, const Feeds& feeds, int64_t n, int64_t o, int64_t y, int64_t x) {
  const int64_t group_in = c.in / c.groups;
  const float* weight =
      feeds.filter.data<float>() + o * group_in * c.kernel_height * c.kernel_width;
  double sum = 0;
  for (int64_t i = 0; i < group_in; ++i) {
    const int64_t channel = o / (c.out / c.groups) * group_in + i;
    for (int64_t ky = 0; ky < c.kernel_height; ++ky) {
      for (int64_t kx = 0; kx < c.kernel_width; ++kx, ++weight) {
        const int64_t iy = y * c.stride - c.pad + ky * c.dilation;
        const int64_t ix = x * c.stride - c.pad + kx * c.dilation;
        if (iy < 0 || iy >= c.height || ix < 0 || ix >= c.width) continue;
        const int64_t at = c.At(c.in, c.height, c.width, n, channel, iy, ix);
        sum += feeds.input.data<int8_t>()[at] * static_cast<double>(*weight);
      }
    }
  }
  return sum;
}

double Activate(const std::string& activation, double value) {
  if (activation == "relu") return std::max(value, 0.0);
  if (activation == "hard_sigmoid") return std::clamp(0.2 * value + 0.5, 0.0, 1.0);
  if (activation == "relu6") return std::clamp(value, 0.0, 6.0);
  if (activation == "hard_swish") return value * std::clamp(value / 6 + 0.5, 0.0, 1.0);
  if (activation == "swish") return value / (1 + std::exp(-value));
  return activation == "tanh" ? std::tanh(value) : value;
}

// In double, from sums of whole numbers.
std::vector<double> Expected(const Case& c, const Feeds& feeds) {
  const int64_t pixels = c.out_height() * c.out_width();
  std::vector<double> out(static_cast<size_t>(c.batch * c.out * pixels));
  for (int64_t i = 0; i < std::ssize(out); ++i) {
    const int64_t n = i / (c.out * pixels);
    const int64_t o = i / pixels % c.out;
    const int64_t y = i % pixels / c.out_width();
    const int64_t x = i % c.out_width();
    const double scale = feeds.input_scale.data<float>()[0] * feeds.filter_scale.data<float>()[o];
    double value = SumAt(c, feeds, n, o, y, x) * scale / kRange + feeds.bias.data<float>()[o];
    const int64_t at = c.At(c.out, c.out_height(), c.out_width(), n, o, y, x);
    if (c.residual) value += feeds.residual.data<float>()[at];
    out[static_cast<size_t>(at)] = Activate(c.activation, value);
  }
  return out;
}

// The inputs but `x` are parameters, or with `fed` come anew in each run.
absl::StatusOr<Tensor> RunConv(const Case& c, const Feeds& feeds, bool fed) {
  std::string slots = "Input=[x], Filter=[w], Bias=[b], InputScale=[s], FilterScale=[ws]";
  std::vector<std::pair<std::string, Tensor>> values = {
      {"w", feeds.filter}, {"b", feeds.bias}, {"s", feeds.input_scale}, {"ws", feeds.filter_scale}};
  std::vector<std::string> names = {"x"};
  std::vector<Tensor> tensors = {feeds.input};
  if (c.residual) {
    absl::StrAppend(&slots, ", ResidualData=[r]");
    names.emplace_back("r");
    tensors.push_back(feeds.residual);
  }
  const bool to_int8 = c.to_int8 || c.out_scale > 0;
  if (to_int8) {
    absl::StrAppend(&slots, ", OutputScale=[os]");
    values.emplace_back("os", feeds.out_scale);
  }
  const auto scope = std::make_shared<Scope>();
  std::string text = absl::StrCat("block 0\n  var x int8", ToString(feeds.input.shape),
                                  "\n  var r float32", ToString(feeds.residual.shape), "\n");
  for (const auto& [name, tensor] : values) {
    absl::StrAppend(&text, "  var ", name, " ", Name(tensor.dtype), ToString(tensor.shape),
                    fed ? "\n" : " persistable\n");
    if (fed) {
      names.push_back(name);
      tensors.push_back(tensor);
    } else {
      scope->FindOrCreate(name)->tensor = tensor;
    }
  }
  const std::string twice = absl::StrCat("[", c.stride, ", ", c.stride, "]");
  absl::StrAppend(&text, "  var y ", to_int8 ? "int8" : "float32", "[-1]\n  int8_conv2d(", slots,
                  ") -> (Output=y) {range=16129.0, strides=", twice, ", paddings=[", c.pad, ", ",
                  c.pad, "], dilations=[", c.dilation, ", ", c.dilation, "], groups=", c.groups,
                  ", fuse_activation=\"", c.activation,
                  "\", fuse_residual=", c.residual ? "true" : "false", ", data_format=\"",
                  c.channels_last ? "NHWC" : "NCHW", "\", out_round_type=", c.half_even ? 0 : 1,
                  "}\n");
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(text));
  CoreOptions options;
  options.check_feed_shapes = false;
  INTERP_ASSIGN_OR_RETURN(
      auto core, InterpreterCore::Create(std::move(program), names, {"y"}, scope, options));
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> first, core->Run(tensors));
  // A second run finds everything prepared.
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, core->Run(tensors));
  if (outputs[0].size_bytes() != first[0].size_bytes() ||
      !std::equal(static_cast<const char*>(outputs[0].raw_data()),
                  static_cast<const char*>(outputs[0].raw_data()) + outputs[0].size_bytes(),
                  static_cast<const char*>(first[0].raw_data()))) {
    return absl::InternalError("the second run gives other values");
  }
  return outputs[0];
}

void Check(const Case& c, uint32_t seed) {
  const Feeds feeds = FeedsOf(c, seed);
  const std::vector<double> expected = Expected(c, feeds);
  for (const bool fed : {false, true}) {
    const absl::StatusOr<Tensor> out = RunConv(c, feeds, fed);
    ASSERT_THAT(out, IsOk()) << "case " << seed;
    ASSERT_EQ(out->numel(), std::ssize(expected)) << "case " << seed;
    for (int64_t i = 0; i < out->numel(); ++i) {
      const double value = expected[static_cast<size_t>(i)];
      if (c.out_scale > 0) {
        const double grid =
            std::clamp(value / c.out_scale * 127, c.half_even ? -128.0 : -127.0, 127.0);
        // Within half a step, and what float32 rounds.
        ASSERT_NEAR(out->data<int8_t>()[i], grid, 0.501) << "case " << seed << ", fed " << fed;
      } else {
        ASSERT_NEAR(out->data<float>()[i], value, 1e-5 * (1 + std::abs(value)))
            << "case " << seed << ", fed " << fed << ", element " << i;
      }
    }
  }
}

// A frozen program of adaround has such weights.
TEST(Int8ConvTest, TakesWeightsThatAreNoWholeNumbers) {
  Check({.off_grid = 0.25}, 1);
  Check({.in = 16, .out = 32, .activation = "relu", .out_scale = 3, .off_grid = 0.5}, 2);
  Check({.in = 12, .out = 12, .groups = 12, .residual = true, .off_grid = 100}, 3);
}

TEST(Int8ConvTest, EqualsPlainLoops) {
  const std::vector<Case> cases = {
      {},
      {.height = 12, .width = 11, .dilation = 2, .pad = 2},
      {.kernel_height = 1, .kernel_width = 1, .pad = 0},
      {.kernel_height = 2, .kernel_width = 5, .pad = 2},
      {.in = 17, .out = 33, .stride = 2},
      {.batch = 3, .in = 64, .out = 48, .kernel_height = 1, .kernel_width = 1, .pad = 0},
      {.in = 12, .out = 12, .groups = 12},
      {.in = 37, .out = 37, .groups = 37, .stride = 2},
      {.in = 6, .out = 12, .groups = 6},
      {.in = 12, .out = 20, .groups = 2},
      {.in = 64, .out = 32, .groups = 4},
      {.in = 3, .height = 20, .width = 20, .out = 16, .stride = 2},
      {.in = 16, .out = 16, .activation = "relu"},
      {.in = 16, .out = 16, .activation = "relu", .residual = true},
      {.activation = "tanh", .residual = true},
      {.activation = "hard_sigmoid"},
      {.in = 16, .out = 24, .channels_last = true},
      {.in = 16, .out = 24, .activation = "relu", .channels_last = true, .out_scale = 2.5F},
      {.in = 16, .out = 24, .out_scale = 0.7F},
      {.in = 16, .out = 24, .out_scale = 0.7F, .half_even = false},
      {.in = 16, .out = 24, .activation = "hard_swish", .out_scale = 2.0F, .half_even = false},
      {.in = 16, .out = 24, .activation = "relu6", .out_scale = 5.0F, .half_even = false},
      {.in = 16, .out = 24, .activation = "tanh", .out_scale = 1.0F, .half_even = false},
      {.in = 40, .out = 40, .groups = 40, .activation = "hard_sigmoid", .out_scale = 1.0F},
  };
  for (size_t i = 0; i < cases.size(); ++i) Check(cases[i], static_cast<uint32_t>(i));
}

// In oneDNN 2.6.3 products of matrices are wrong for some of these.
TEST(Int8ConvTest, GroupedFiltersOfOnePixelEqualPlainLoops) {
  uint32_t seed = 300;
  for (const int64_t groups : {2, 3, 4, 8}) {
    for (const int64_t group_in : {1, 4, 5, 8, 16, 24}) {
      for (const int64_t group_out : {1, 2, 3, 4, 8}) {
        const Case c = {.batch = 2,
                        .in = groups * group_in,
                        .out = groups * group_out,
                        .groups = groups,
                        .kernel_height = 1,
                        .kernel_width = 1,
                        .pad = 0,
                        .activation = seed % 2 == 0 ? "relu" : ""};
        Check(c, seed++);
      }
    }
  }
}

// oneDNN offers to run them, and then fails to generate the code.
TEST(Int8ConvTest, GroupedConvolutionsTakeAllActivations) {
  uint32_t seed = 200;
  for (const std::string activation : {"swish", "hard_swish", "tanh", "hard_sigmoid", "relu6"}) {
    for (const int64_t kernel : {1, 3}) {
      for (const int64_t group_in : {4, 8}) {
        for (const float out_scale : {0.0F, 2.5F}) {
          Check({.in = 4 * group_in,
                 .out = 32,
                 .groups = 4,
                 .kernel_height = kernel,
                 .kernel_width = kernel,
                 .pad = kernel / 2,
                 .activation = activation,
                 .out_scale = out_scale},
                seed++);
        }
      }
    }
  }
}

TEST(Int8ConvTest, RandomShapesEqualPlainLoops) {
  std::mt19937 random(3);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (uint32_t seed = 100; seed < 160; ++seed) {
    Case c;
    c.groups = below(3) == 0 ? 1 + below(4) : 1;
    c.batch = 1 + below(3);
    c.in = c.groups * (1 + below(20));
    c.out = c.groups * (1 + below(20));
    if (below(4) == 0) c.groups = c.out = c.in;
    c.kernel_height = 1 + below(4);
    c.kernel_width = 1 + below(4);
    c.stride = 1 + below(3);
    c.dilation = 1 + below(2);
    c.pad = below(3);
    c.height = c.dilation * c.kernel_height + below(9);
    c.width = c.dilation * c.kernel_width + below(9);
    c.residual = below(4) == 0;
    c.activation = below(2) == 0 ? "relu" : "";
    if (!c.residual && below(3) == 0) c.out_scale = 3;
    c.half_even = below(2) == 0;
    Check(c, seed);
  }
}

TEST(Int8ConvTest, ABatchOfNothingGivesNothing) {
  Case c;
  c.batch = 0;
  for (const bool fed : {false, true}) {
    const absl::StatusOr<Tensor> out = RunConv(c, FeedsOf(c, 1), fed);
    ASSERT_THAT(out, IsOk());
    EXPECT_EQ(out->shape, (Shape{0, 5, 7, 6}));
  }
}

TEST(Int8ConvTest, AScaleOfNothingLeavesTheBias) {
  const Case c;
  Feeds feeds = FeedsOf(c, 1);
  for (const bool input : {true, false}) {
    Tensor& scale = input ? feeds.input_scale : feeds.filter_scale;
    std::fill_n(scale.mutable_data<float>(), scale.numel(), 0.0F);
    const absl::StatusOr<Tensor> out = RunConv(c, feeds, /*fed=*/false);
    ASSERT_THAT(out, IsOk());
    EXPECT_EQ(out->data<float>()[0], feeds.bias.data<float>()[0]);
  }
}

// Also a scale of nothing is one: a layer of a program whose values were always 0.
TEST(Int8ConvTest, ResultsOfInt8MayHaveAScaleOfNothing) {
  Case c;
  c.to_int8 = true;
  const absl::StatusOr<Tensor> out = RunConv(c, FeedsOf(c, 1), /*fed=*/false);
  ASSERT_THAT(out, IsOk());
  EXPECT_EQ(out->dtype, DType::kInt8);
}

TEST(Int8ConvTest, ABiasFarAboveItsScaleStaysFinite) {
  const Case c;
  Feeds feeds = FeedsOf(c, 1);
  feeds.filter_scale.mutable_data<float>()[0] = 3e-34F;
  feeds.bias.mutable_data<float>()[0] = 100;
  const absl::StatusOr<Tensor> out = RunConv(c, feeds, /*fed=*/false);
  ASSERT_THAT(out, IsOk());
  EXPECT_EQ(out->data<float>()[0], 100);
}

// What was prepared for one filter is not used for another.
TEST(Int8ConvTest, FiltersMayChangeTheirShape) {
  const absl::StatusOr<Program> program = ParseProgram(
      "block 0\n  var x int8[2,4,8,8]\n  var w float32[-1,4,3,3]\n  var s float32[1]\n"
      "  var y float32[-1]\n"
      "  int8_conv2d(Input=x, Filter=w, InputScale=s) -> (Output=y) {range=16129.0}\n");
  ASSERT_THAT(program, IsOk());
  const std::vector<std::string> names = {"x", "w", "s"};
  const auto made = [&] { return InterpreterCore::Create(*program, names, {"y"}, nullptr); };
  const auto one = made();
  ASSERT_THAT(one, IsOk());
  for (const int64_t channels : {64, 1, 17}) {
    const std::vector<Tensor> feeds = {Whole<int8_t>({2, 4, 8, 8}, 1),
                                       Whole<float>({channels, 4, 3, 3}, 2),
                                       Tensor::Of<float>({1}, {1.5F})};
    const auto fresh = made();
    ASSERT_THAT(fresh, IsOk());
    const auto expected = (*fresh)->Run(feeds);
    const auto out = (*one)->Run(feeds);
    ASSERT_THAT(expected, IsOk());
    ASSERT_THAT(out, IsOk());
    EXPECT_EQ(Values<float>((*out)[0]), Values<float>((*expected)[0])) << channels;
  }
}

TEST(Int8ConvTest, RefusesWhatItCannotCompute) {
  const Tensor x = Whole<int8_t>({1, 2, 3, 3}, 1);
  const Tensor w = Whole<float>({4, 2, 3, 3}, 2);
  const Tensor one = Tensor::Of<float>({1}, {1});
  const OpRun run = {"int8_conv2d", {{"Input", x}, {"Filter", w}, {"InputScale", one}}, {"Output"}};
  const auto with_attrs = [&](const std::string& attrs) {
    OpRun other = run;
    other.attrs = attrs;
    return other;
  };
  ExpectRefusals({
      {With(run, 1, Tensor::Of<int64_t>({1}, {1})), "expected float32 or int8"},
      {With(run, 2, Tensor::Of<float>({2}, {1, 1})), "'InputScale'"},
      {With(run, 1, Whole<float>({4, 3, 3, 3}, 2)), "channels"},
      {with_attrs("range=0.0"), "'range' is 0"},
      {with_attrs("weight_bits=9"), "expected 2 to 8"},
  });
}

}  // namespace
}  // namespace interp::testing
