// grid_sampler on more points than it takes at a time, over several images.
#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

// The pixels of `images` images, row by row, `by` pixels to the right.
Tensor PixelGrid(int64_t images, int64_t height, int64_t width, float by) {
  std::vector<float> points;
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        points.push_back(2 * (static_cast<float>(x) + by) / static_cast<float>(width - 1) - 1);
        points.push_back(2 * static_cast<float>(y) / static_cast<float>(height - 1) - 1);
      }
    }
  }
  return Tensor::Of<float>({images, height, width, 2}, points);
}

TEST(GridSamplerTest, SamplesBetweenPixelsOfSeveralImages) {
  constexpr int64_t kHeight = 9;
  constexpr int64_t kWidth = 17;
  const Tensor x = Numbers({3, 2, kHeight, kWidth}, 1);
  const OpRun run = {"grid_sampler",
                     {{"X", x}, {"Grid", PixelGrid(3, kHeight, kWidth, 0.25F)}},
                     {"Output"},
                     "mode=\"bilinear\", padding_mode=\"zeros\", align_corners=true"};
  const Tensor out = OutputsOf(run)[0];
  ASSERT_EQ(out.shape, x.shape);
  const auto* const in = x.data<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float right = i % kWidth == kWidth - 1 ? 0.0F : in[i + 1];
    EXPECT_NEAR(out.data<float>()[i], 0.75F * in[i] + 0.25F * right, 1e-5) << i;
  }
}

TEST(GridSamplerTest, AnImageWithoutPixelsGivesZeros) {
  const OpRun run = {"grid_sampler",
                     {{"X", Numbers({1, 2, 0, 3}, 1)}, {"Grid", PixelGrid(1, 4, 5, 0)}},
                     {"Output"},
                     "mode=\"bilinear\", padding_mode=\"zeros\", align_corners=true"};
  const Tensor out = OutputsOf(run)[0];
  for (int64_t i = 0; i < out.numel(); ++i) EXPECT_EQ(out.data<float>()[i], 0) << i;
}

}  // namespace
}  // namespace interp::testing
