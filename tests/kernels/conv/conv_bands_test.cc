// Convolutions whose activation is done in bands of rows give what the same sums give as a whole,
// for any number of threads. What is too large for the cache has the activation as a post-op then.
#include "kernels/conv/conv_bands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/product/gemm_tile.h"
#include "kernels/util/convert_elements.h"
#include "kernels/util/logistic_rows.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A fused_conv2d with a constant filter and bias; `x` has 3 sides: height, width and channels.
struct BandCase {
  std::string name;
  std::string activation;
  int64_t batch = 1;
  int64_t height = 42;
  int64_t width = 40;
  int64_t in_channels = 32;
  int64_t out_channels = 160;
  int64_t groups = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  std::vector<int64_t> paddings = {0, 0, 0, 0};
  bool residual = false;
  bool bfloat16_images = false;

  int64_t Out(int64_t in, int64_t padding) const {
    return (in + padding - dilation * (kernel - 1) - 1) / stride + 1;
  }
  Shape in_shape() const { return {batch, in_channels, height, width}; }
  Shape filter_shape() const { return {out_channels, in_channels / groups, kernel, kernel}; }
  Shape out_shape() const {
    return {batch, out_channels, Out(height, paddings[0] + paddings[1]),
            Out(width, paddings[2] + paddings[3])};
  }
};

Tensor BandInBfloat16(const Tensor& from) {
  Tensor to = from;
  to.DropMemory();
  to.dtype = DType::kBFloat16;
  EXPECT_THAT(to.Allocate(SystemAllocator()), IsOk());
  ConvertElements(1, from.data<float>(), from.numel(), to.mutable_data<bfloat16>());
  return to;
}

std::string BandDims(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

std::string BandProgram(const BandCase& c) {
  const char* const dtype = c.bfloat16_images ? "bfloat16" : "float32";
  return absl::StrCat("block 0\n  var x ", dtype, BandDims(c.in_shape()), "\n  var r ", dtype,
                      BandDims(c.out_shape()), "\n  var w float32", BandDims(c.filter_shape()),
                      " param\n  var b float32[", c.out_channels, "] param\n  var y ", dtype,
                      BandDims(c.out_shape()), "\n  fused_conv2d(Input=x, Filter=w, Bias=b",
                      c.residual ? ", ResidualData=r" : "", ") -> (Output=y) {strides=[", c.stride,
                      ", ", c.stride, "], paddings=[", absl::StrJoin(c.paddings, ", "),
                      "], dilations=[", c.dilation, ", ", c.dilation, "], groups=", c.groups,
                      ", fuse_activation=\"", c.activation, "\"",
                      c.residual ? ", fuse_residual_connection=true" : "", "}\n");
}

struct BandRun {
  std::vector<float> values;
  std::vector<std::string> algorithms;
};

BandRun RunBandCase(const BandCase& c, Algorithms algorithms, int threads) {
  absl::StatusOr<Program> program = ParseProgram(BandProgram(c));
  EXPECT_THAT(program, IsOk());
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Numbers(c.filter_shape(), 1);
  scope->FindOrCreate("b")->tensor = Numbers({c.out_channels}, 2);
  CoreOptions options{.num_threads = threads, .algorithms = algorithms};
  auto core = InterpreterCore::Create(*std::move(program), {"x", "r"}, {"y"}, scope, options);
  EXPECT_THAT(core, IsOk());
  Tensor x = Numbers(c.in_shape(), 3);
  Tensor r = Numbers(c.out_shape(), 4);
  if (c.bfloat16_images) x = BandInBfloat16(x);
  if (c.bfloat16_images) r = BandInBfloat16(r);
  BandRun ran;
  for (int run = 0; run < 2; ++run) {
    auto outputs = (*core)->Run({x, r});
    EXPECT_THAT(outputs, IsOk());
    const Tensor& y = (*outputs)[0];
    std::vector<float> values;
    for (int64_t i = 0; i < y.numel(); ++i) {
      values.push_back(c.bfloat16_images ? float{y.data<bfloat16>()[i]} : y.data<float>()[i]);
    }
    EXPECT_TRUE(run == 0 || values == ran.values);
    ran.values = std::move(values);
  }
  ran.algorithms = (*core)->algorithms();
  return ran;
}

class ConvBands : public ::testing::TestWithParam<BandCase> {};

TEST_P(ConvBands, GiveWhatTheWholeImageGives) {
  const BandCase& c = GetParam();
  const BandRun whole = RunBandCase(c, Algorithms::kDirect, /*threads=*/1);
  EXPECT_THAT(whole.algorithms, Not(Contains(HasSubstr("bands"))));
  for (const int threads : {1, 2, 3}) {
    const BandRun bands = RunBandCase(c, Algorithms::kFast, threads);
    EXPECT_EQ(::testing::Value(bands.algorithms, Contains(HasSubstr("bands of"))),
              LogisticRowsAreFast() && (!c.bfloat16_images || kVectorBytes == 64));
    ASSERT_EQ(bands.values.size(), whole.values.size());
    const float relative = c.bfloat16_images ? 1.0F / 128 : 2e-6F;
    for (size_t i = 0; i < whole.values.size(); ++i) {
      const float want = whole.values[i];
      ASSERT_NEAR(bands.values[i], want, relative * std::max(std::abs(want), 1.0F))
          << "element " << i << ", " << threads << " threads";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Cases, ConvBands,
    ::testing::Values(
        BandCase{.name = "Pointwise", .activation = "swish", .height = 41, .width = 45},
        BandCase{.name = "Gelu", .activation = "gelu"},
        BandCase{.name = "Sigmoid", .activation = "sigmoid", .residual = true},
        BandCase{.name = "Strided",
                 .activation = "swish",
                 .height = 83,
                 .width = 91,
                 .kernel = 3,
                 .stride = 2,
                 .paddings = {1, 1, 1, 1}},
        BandCase{.name = "Dilated",
                 .activation = "swish",
                 .batch = 2,
                 .in_channels = 8,
                 .kernel = 5,
                 .dilation = 2,
                 .paddings = {3, 2, 0, 4}},
        BandCase{.name = "Tall",
                 .activation = "swish",
                 .height = 300,
                 .width = 6,
                 .in_channels = 8,
                 .kernel = 5,
                 .stride = 1,
                 .paddings = {4, 4, 2, 2}},
        BandCase{.name = "Depthwise",
                 .activation = "swish",
                 .height = 50,
                 .width = 50,
                 .in_channels = 128,
                 .out_channels = 128,
                 .groups = 128,
                 .kernel = 5,
                 .paddings = {2, 2, 2, 2}},
        BandCase{.name = "ManyImages", .activation = "swish", .batch = 7, .height = 9, .width = 40},
        BandCase{.name = "Bfloat16", .activation = "swish", .bfloat16_images = true},
        BandCase{.name = "Bfloat16OfFewRows",
                 .activation = "gelu",
                 .height = 6,
                 .width = 7,
                 .kernel = 3,
                 .paddings = {1, 1, 1, 1},
                 .bfloat16_images = true},
        BandCase{.name = "UnevenRows",
                 .activation = "swish",
                 .height = 170,
                 .width = 160,
                 .kernel = 3,
                 .stride = 4,
                 .paddings = {0, 1, 2, 0}},
        BandCase{.name = "Bfloat16Window",
                 .activation = "sigmoid",
                 .batch = 2,
                 .height = 23,
                 .width = 31,
                 .kernel = 5,  // too large for Winograd's method
                 .paddings = {2, 2, 2, 2},
                 .bfloat16_images = true}),
    [](const auto& info) { return info.param.name; });

nn::ConvProblem BandProblem(int64_t height, int64_t padding) {
  const nn::WindowAxis rows = {
      .in = height, .out = height + 2 * padding, .pad_begin = padding, .pad_end = padding};
  const nn::WindowAxis columns = {.in = 64, .out = 64};
  return {.batch = 1,
          .in_channels = 8,
          .out_channels = 64,
          .window = {.rank = 2, .axes = {rows, columns}}};
}

TEST(ConvBandsOfOne, AreForLargeImagesAndPoorPostOps) {
  const nn::ConvEpilogue swish = {.activation = {nn::ActivationKind::kSwish, 1}};
  const nn::ConvEpilogue relu = {.activation = {nn::ActivationKind::kRelu}};
  nn::ConvEpilogue added = swish;
  added.residual = true;
  const auto pays = [](int64_t height, const nn::ConvEpilogue& epilogue, DType dtype) {
    return nn::ConvInBands::Pays(BandProblem(height, 0), epilogue, dtype, /*num_threads=*/1);
  };
  EXPECT_EQ(pays(64, swish, DType::kFloat32), LogisticRowsAreFast());
  EXPECT_FALSE(pays(63, swish, DType::kFloat32));
  EXPECT_FALSE(pays(64, relu, DType::kFloat32));
  // The post-op loses NaN only where inputs are not bounded.
  const nn::ConvEpilogue relu6 = {.activation = {nn::ActivationKind::kRelu6, 6}};
  EXPECT_FALSE(pays(64, relu6, DType::kFloat32));
  nn::ConvEpilogue added6 = relu6;
  added6.residual = true;
  EXPECT_TRUE(pays(64, added6, DType::kFloat32));
  EXPECT_EQ(pays(1, swish, DType::kBFloat16), LogisticRowsAreFast());
  EXPECT_FALSE(pays(64, added, DType::kBFloat16));
  // Rows for all threads.
  const auto pays_with = [&](int threads) {
    return nn::ConvInBands::Pays(BandProblem(64, 0), swish, DType::kFloat32, threads);
  };
  EXPECT_EQ(pays_with(32), LogisticRowsAreFast());
  EXPECT_FALSE(pays_with(33));
}

TEST(ConvBandsOfOne, RefuseRowsOfPaddingAlone) {
  const nn::ConvEpilogue swish = {.activation = {nn::ActivationKind::kSwish, 1}};
  EXPECT_THAT(nn::ConvInBands::Make(BandProblem(64, 40), swish, DType::kFloat32, 1).status(),
              FailsWith(absl::StatusCode::kUnimplemented, "padding alone"));
}

}  // namespace
}  // namespace interp::testing
