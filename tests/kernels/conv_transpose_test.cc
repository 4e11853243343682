// Transposed convolutions whose windows lie side by side, which have a way of their own.
#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/op_runs.h"

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

}  // namespace
}  // namespace interp::testing
