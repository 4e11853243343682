// prroi_pool, which Paddle 2.6 no longer has: by its definition, and gradients against differences.
#include <cmath>
#include <functional>

#include "tests/kernels/finite_differences.h"

namespace interp::testing::prroi_pool_test {
namespace {

using ::testing::ElementsAre;

// The mean of the interpolated plane over a box, by many samples.
double SampledMean(const std::function<double(int64_t, int64_t)>& pixel, double x0, double y0,
                   double x1, double y1) {
  constexpr int kSteps = 100;
  double sum = 0;
  for (int j = 0; j < kSteps; ++j) {
    for (int i = 0; i < kSteps; ++i) {
      const double x = x0 + (x1 - x0) * (i + 0.5) / kSteps;
      const double y = y0 + (y1 - y0) * (j + 0.5) / kSteps;
      const auto left = static_cast<int64_t>(std::floor(x));
      const auto top = static_cast<int64_t>(std::floor(y));
      const double a = x - static_cast<double>(left), b = y - static_cast<double>(top);
      sum += (1 - b) * ((1 - a) * pixel(top, left) + a * pixel(top, left + 1)) +
             b * ((1 - a) * pixel(top + 1, left) + a * pixel(top + 1, left + 1));
    }
  }
  return sum / (kSteps * kSteps);
}

// Two images of two channels, 4 x 5; the second region sticks out of its image.
OpRun PrRoiRun() {
  Tensor rois =
      Tensor::Of<double>({3, 4}, {0.7, 1.3, 5.9, 6.1, -1.5, 2.2, 3.3, 9.7, 2.2, 2.2, 7.3, 5.1});
  rois.lod = {{0, 2, 3}};
  return {"prroi_pool",
          {{"X", Numbers<double>({2, 2, 4, 5}, 1)}, {"ROIs", rois}},
          {"Out"},
          "pooled_height=2, pooled_width=3, spatial_scale=0.5"};
}

TEST(PrRoiPoolTest, IsTheMeanOfTheInterpolatedImage) {
  const OpRun run = PrRoiRun();
  const Tensor out = OutputsOf(run)[0];
  ASSERT_EQ(out.shape, (Shape{3, 2, 2, 3}));
  const double* const x = run.inputs[0].second.data<double>();
  const double* const rois = run.inputs[1].second.data<double>();
  const int64_t images[] = {0, 0, 1};
  for (int64_t i = 0; i < out.numel(); ++i) {
    const int64_t r = i / 12, c = i / 6 % 2, h = i / 3 % 2, w = i % 3;
    const auto pixel = [&](int64_t row, int64_t column) {
      if (row < 0 || column < 0 || row >= 4 || column >= 5) return 0.0;
      return x[((images[r] * 2 + c) * 4 + row) * 5 + column];
    };
    const double left = rois[4 * r] / 2, top = rois[4 * r + 1] / 2;
    const double width = (rois[4 * r + 2] / 2 - left) / 3, height = (rois[4 * r + 3] / 2 - top) / 2;
    const double x0 = left + width * static_cast<double>(w);
    const double y0 = top + height * static_cast<double>(h);
    EXPECT_NEAR(out.data<double>()[i], SampledMean(pixel, x0, y0, x0 + width, y0 + height), 5e-4)
        << i;
  }
}

TEST(PrRoiPoolTest, CountsOfRegionsStandForALod) {
  OpRun run = PrRoiRun();
  const std::vector<double> by_lod = Values<double>(OutputsOf(run)[0]);
  run.inputs[1].second.lod.clear();
  run.inputs.push_back({"BatchRoINums", Tensor::Of<int64_t>({2}, {2, 1})});
  EXPECT_EQ(Values<double>(OutputsOf(run)[0]), by_lod);
}

TEST(PrRoiPoolTest, RegionsWithoutAreaAreZero) {
  Tensor rois = Tensor::Of<float>({2, 4}, {3, 3, 3, 5, 4, 4, 2, 2});
  rois.lod = {{0, 2}};
  const std::vector<Tensor> out =
      OutputsOf({"prroi_pool", {{"X", Numbers({1, 1, 4, 4}, 1)}, {"ROIs", rois}}, {"Out"}});
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(0, 0));
}

TEST(PrRoiPoolTest, GradientsAgreeWithDifferences) {
  ExpectGradients({PrRoiRun(), {"Out"}, {"X", "ROIs"}});
}

}  // namespace
}  // namespace interp::testing::prroi_pool_test
