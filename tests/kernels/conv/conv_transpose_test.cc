// Transposed convolutions: windows that lie side by side, which have a way of their own, and what
// is fused into them.
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

// The output by its definition: every pixel, channel and kernel position adds to one element.
std::vector<float> Reference(const Tensor& x, const Tensor& filter, const Tensor* bias) {
  const int64_t images = x.shape[0];
  const int64_t in = x.shape[1];
  const int64_t height = x.shape[2];
  const int64_t width = x.shape[3];
  const int64_t out = filter.shape[1];
  const int64_t kh = filter.shape[2];
  const int64_t kw = filter.shape[3];
  std::vector<float> y(static_cast<size_t>(images * out * height * kh * width * kw));
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t row = 0; row < height * kh; ++row) {
        for (int64_t column = 0; column < width * kw; ++column) {
          float sum = bias == nullptr ? 0.0F : bias->data<float>()[o];
          for (int64_t i = 0; i < in; ++i) {
            const int64_t pixel = ((n * in + i) * height + row / kh) * width + column / kw;
            const int64_t tap = ((i * out + o) * kh + row % kh) * kw + column % kw;
            sum += x.data<float>()[pixel] * filter.data<float>()[tap];
          }
          y[static_cast<size_t>(((n * out + o) * height * kh + row) * width * kw + column)] = sum;
        }
      }
    }
  }
  return y;
}

struct Sizes {
  int64_t images;
  int64_t in;
  int64_t out;
  int64_t height;
  int64_t width;
  int64_t kernel_height;
  int64_t kernel_width;
};

TEST(ConvTransposeTest, WindowsSideBySide) {
  const Sizes cases[] = {{2, 24, 1, 5, 7, 2, 2}, {1, 3, 5, 1, 9, 3, 2},   {3, 17, 24, 4, 4, 2, 2},
                         {1, 1, 1, 1, 1, 1, 1},  {2, 8, 40, 13, 2, 1, 4}, {1, 64, 7, 30, 31, 2, 3},
                         {0, 4, 2, 3, 3, 2, 2}};
  for (const Sizes& s : cases) {
    const Tensor x = Numbers({s.images, s.in, s.height, s.width}, 1);
    const Tensor filter = Numbers({s.in, s.out, s.kernel_height, s.kernel_width}, 2);
    const Tensor bias = Numbers({s.out}, 3);
    const std::string attrs =
        absl::StrCat("strides=[", s.kernel_height, ", ", s.kernel_width, "], paddings=[0, 0]");
    for (const bool with_bias : {false, true}) {
      OpRun run = {"conv2d_transpose", {{"Input", x}, {"Filter", filter}}, {"Output"}, attrs};
      if (with_bias) run.inputs.emplace_back("Bias", bias);
      const Tensor out = OutputsOf(run)[0];
      const std::vector<float> expected = Reference(x, filter, with_bias ? &bias : nullptr);
      ASSERT_EQ(out.shape,
                Shape({s.images, s.out, s.height * s.kernel_height, s.width * s.kernel_width}));
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(out.data<float>()[i], expected[i], 1e-4) << i << " of in=" << s.in;
      }
    }
  }
}

// A window over each pixel, and how windows lie.
struct Overlap {
  int64_t in, out, height, width;
  int64_t kernel, stride, padding, dilation, groups;
};

// By its definition, for one image.
std::vector<double> OverlapReference(const Overlap& o, const Shape& shape, const Tensor& x,
                                     const Tensor& filter) {
  std::vector<double> y(static_cast<size_t>(shape.numel()));
  const int64_t group_in = o.in / o.groups;
  const int64_t group_out = o.out / o.groups;
  for (int64_t i = 0; i < x.numel() * group_out * o.kernel * o.kernel; ++i) {
    const int64_t kx = i % o.kernel;
    const int64_t ky = i / o.kernel % o.kernel;
    const int64_t c = i / o.kernel / o.kernel % group_out;
    const int64_t pixel = i / o.kernel / o.kernel / group_out;
    const int64_t channel = pixel / o.width / o.height % o.in;
    const int64_t n = pixel / o.width / o.height / o.in;
    const int64_t oy = pixel / o.width % o.height * o.stride + ky * o.dilation - o.padding;
    const int64_t ox = pixel % o.width * o.stride + kx * o.dilation - o.padding;
    if (oy < 0 || oy >= shape[2] || ox < 0 || ox >= shape[3]) continue;
    const int64_t oc = channel / group_in * group_out + c;
    const float tap =
        filter.data<float>()[((channel * group_out + c) * o.kernel + ky) * o.kernel + kx];
    y[((n * o.out + oc) * shape[2] + oy) * shape[3] + ox] += double{x.data<float>()[pixel]} * tap;
  }
  return y;
}

// Products are of several rows at once, which do not always divide the height.
TEST(ConvTransposeTest, WindowsThatOverlap) {
  const Overlap cases[] = {{6, 300, 9, 8, 4, 2, 1, 1, 1},  {5, 3, 7, 6, 4, 2, 1, 1, 1},
                           {4, 6, 5, 9, 3, 1, 1, 1, 1},    {8, 600, 6, 20, 3, 3, 0, 2, 1},
                           {6, 9, 8, 5, 5, 3, 2, 1, 3},    {10, 10, 6, 7, 3, 2, 1, 1, 10},
                           {4, 1500, 5, 16, 3, 2, 0, 1, 2}};
  for (const Overlap& o : cases) {
    const Tensor x = Numbers({2, o.in, o.height, o.width}, 1);
    const Tensor filter = Numbers({o.in, o.out / o.groups, o.kernel, o.kernel}, 2);
    const OpRun run = {"conv2d_transpose",
                       {{"Input", x}, {"Filter", filter}},
                       {"Output"},
                       absl::StrCat("strides=[", o.stride, ",", o.stride, "], paddings=[",
                                    o.padding, ",", o.padding, "], dilations=[", o.dilation, ",",
                                    o.dilation, "], groups=", o.groups)};
    SCOPED_TRACE(run.attrs);
    const Tensor out = OutputsOf(run)[0];
    const std::vector<float> values = ::interp::testing::Values<float>(out);
    const std::vector<double> wide(values.begin(), values.end());
    EXPECT_THAT(wide, ::testing::Pointwise(::testing::DoubleNear(1e-4),
                                           OverlapReference(o, out.shape, x, filter)));
    CoreOptions options;
    options.num_threads = 3;
    EXPECT_EQ(::interp::testing::Values<float>(OutputsOf(run, options)[0]), values);
  }
}

// What fuse_conv takes into a transposed convolution: the result is that of the ops one by one.
std::vector<float> RunTransposed(const std::string& attrs, const Shape& filter, int64_t channels,
                                 bool fused) {
  const std::string vector = absl::StrCat(" float32[", channels, "] param\n");
  const std::string image = absl::StrCat(" float32[-1,", channels, ",-1,-1]\n");
  const auto program = ParseProgram(absl::StrCat(
      "block 0\n  var x float32[-1,8,-1,-1]\n  var w float32[8,", filter[1], ",", filter[2], ",",
      filter[3], "] param\n  var b", vector, "  var s", vector, "  var o", vector, "  var m",
      vector, "  var n", vector, "  var a", image, "  var d", image, "  var e", image, "  var y",
      image, "  conv2d_transpose(Input=x, Filter=w) -> (Output=a) {", attrs,
      "}\n  elementwise_add(X=a, Y=b) -> (Out=d) {axis=1}\n"
      "  batch_norm(X=d, Scale=s, Bias=o, Mean=m, Variance=n) -> (Y=e, MeanOut=m, VarianceOut=n, "
      "SavedMean=sm, SavedVariance=sv) {is_test=true}\n  leaky_relu(X=e) -> (Out=y) "
      "{alpha=0.1}\n"));
  EXPECT_THAT(program, IsOk());
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Numbers(filter, 2);
  for (const char* name : {"b", "s", "o", "m"}) {
    scope->FindOrCreate(name)->tensor = Numbers({channels}, static_cast<uint64_t>(name[0]));
  }
  scope->FindOrCreate("n")->tensor =
      Tensor::Of<float>({channels}, std::vector<float>(static_cast<size_t>(channels), 0.75F));
  CoreOptions options;
  if (!fused) options.passes.disable = {"fuse_conv"};
  const auto core = InterpreterCore::Create(*program, {"x"}, {"y"}, scope, options);
  EXPECT_THAT(core, IsOk());
  const auto results = (*core)->Run({Numbers({2, 8, 5, 6}, 1)});
  EXPECT_THAT(results, IsOk());
  size_t norms = 0;
  for (const Instruction& instruction : (*core)->plan().instructions) {
    norms += instruction.op_type == "batch_norm" ? 1 : 0;
  }
  EXPECT_EQ(norms, fused ? 0u : 1u);
  return ::interp::testing::Values<float>((*results)[0]);
}

TEST(ConvTransposeTest, TakesBiasNormAndActivation) {
  struct Case {
    std::string attrs;
    Shape filter;
    int64_t channels;
  };
  const std::vector<Case> cases = {
      {"strides=[2,2]", {8, 12, 2, 2}, 12},
      {"strides=[2,2], paddings=[1,1]", {8, 5, 3, 3}, 5},
      {"strides=[2,2], groups=2", {8, 3, 3, 3}, 6},
      {"strides=[1,1], paddings=[1,1], groups=8", {8, 1, 3, 3}, 8},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.attrs);
    const auto expected = RunTransposed(test.attrs, test.filter, test.channels, /*fused=*/false);
    const auto actual = RunTransposed(test.attrs, test.filter, test.channels, /*fused=*/true);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-4) << i;
  }
}

}  // namespace
}  // namespace interp::testing
