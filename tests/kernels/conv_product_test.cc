// Convolutions as products of matrices against sums in float64.
#include "kernels/nn/conv_product.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/nn/conv_direct.h"
#include "kernels/nn/gemm.h"

namespace interp::nn {
namespace {

using ::testing::Pointwise;

int64_t Pick(std::mt19937& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}

// Any window that fits its image at least once, of two or three axes.
ConvProblem RandomWindows(std::mt19937& rng) {
  ConvProblem p;
  p.batch = Pick(rng, 1, 3);
  p.in_channels = Pick(rng, 1, 40);
  p.out_channels = Pick(rng, 1, 75);
  p.window.rank = static_cast<int>(Pick(rng, 2, 3));
  for (int i = 0; i < p.window.rank; ++i) {
    WindowAxis& axis = p.window[i];
    axis.kernel = Pick(rng, 1, 3);
    axis.stride = Pick(rng, 1, 2);
    axis.dilation = Pick(rng, 1, 2);
    axis.pad_begin = Pick(rng, 0, 2);
    axis.pad_end = Pick(rng, 0, 2);
    axis.in = axis.extent() + Pick(rng, 0, 4);
  }
  EXPECT_TRUE(FitWindow(p.window, /*ceil_mode=*/false).ok());
  return p;
}

// The pixels of an input as they lie are the rows.
ConvProblem PointwiseProblem(int64_t pixels, int64_t in_channels, int64_t out_channels) {
  ConvProblem p;
  p.batch = 1;
  p.in_channels = in_channels;
  p.out_channels = out_channels;
  p.window.rank = 2;
  p.window[0] = {.in = 1, .out = 1};
  p.window[1] = {.in = pixels, .out = pixels};
  return p;
}

Shape ImageShape(const ConvProblem& p, int64_t channels, int64_t WindowAxis::*size) {
  Shape shape = {p.batch, channels};
  for (int i = 0; i < p.window.rank; ++i) shape.push_back(p.window[i].*size);
  return shape;
}

Shape FilterShape(const ConvProblem& p) {
  Shape shape = {p.out_channels, p.in_channels};
  for (int i = 0; i < p.window.rank; ++i) shape.push_back(p.window[i].kernel);
  return shape;
}

struct ProductCase {
  explicit ProductCase(const ConvProblem& problem, std::mt19937& rng) : p(problem) {
    std::normal_distribution<float> normal;
    const auto fill = [&](int64_t size, std::vector<float>& values) {
      values.resize(static_cast<size_t>(size));
      for (float& value : values) value = normal(rng);
    };
    fill(ImageShape(p, p.in_channels, &WindowAxis::in).numel(), in);
    fill(FilterShape(p).numel(), filter);
    fill(p.out_channels, bias);
    fill(ImageShape(p, p.out_channels, &WindowAxis::out).numel(), residual);
  }

  ConvProblem p;
  std::vector<float> in;
  std::vector<float> filter;
  std::vector<float> bias;
  std::vector<float> residual;
};

std::vector<float> ConvolveByProduct(const ProductCase& c, const ConvEpilogue& epilogue,
                                     int threads) {
  AlignedArray<float> packed(ConvProductFilterSize(c.p));
  PackConvProductFilter(c.p, c.filter.data(), packed.data());
  AlignedArray<float> work(static_cast<int64_t>(ConvProductWorkBytes(c.p) / sizeof(float)) + 1);
  std::vector<float> out = c.residual;
  RunConvProduct(c.p, epilogue, packed.data(), epilogue.bias ? c.bias.data() : nullptr, c.in.data(),
                 out.data(), threads, work.data());
  return out;
}

std::vector<float> DirectSums(const ProductCase& c, const ConvEpilogue& epilogue) {
  const auto view = [&](int64_t channels, int64_t WindowAxis::*size) {
    return DenseChannelsLast(ViewImage(ImageShape(c.p, channels, size), Layout::kPlain, false));
  };
  const std::vector<double> in(c.in.begin(), c.in.end());
  const std::vector<double> filter(c.filter.begin(), c.filter.end());
  std::vector<double> sums(c.residual.size());
  ConvDirect(c.p, view(c.p.in_channels, &WindowAxis::in), in.data(),
             ViewImage(FilterShape(c.p), Layout::kPlain, false), filter.data(),
             view(c.p.out_channels, &WindowAxis::out), sums.data(), /*num_threads=*/1);
  std::vector<float> out(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    out[i] = static_cast<float>(sums[i] + (epilogue.bias ? c.bias[i % c.bias.size()] : 0.0F) +
                                (epilogue.residual ? c.residual[i] : 0.0F));
  }
  ApplyActivation(epilogue.activation, out.data(), std::ssize(out));
  ApplyAffine(epilogue.affine, out.data(), std::ssize(out));
  return out;
}

MATCHER_P(WithinOf, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance;
}

const FusedActivation kSomeActivations[] = {
    {}, {ActivationKind::kRelu}, {ActivationKind::kHardSwish, 1.0F / 6, 0.5F}};

TEST(ConvProduct, GivesTheSumsOfRandomCases) {
  std::mt19937 rng(1);
  for (int i = 0; i < 80; ++i) {
    const ProductCase c(RandomWindows(rng), rng);
    const ConvEpilogue epilogue = {
        i % 2 == 0, i % 4 < 2, kSomeActivations[i % 3], {i % 5 == 0 ? 2.0F : 1.0F, 0.5F}};
    EXPECT_THAT(ConvolveByProduct(c, epilogue, 1 + i % 3),
                Pointwise(WithinOf(1e-4), DirectSums(c, epilogue)))
        << "case " << i;
  }
}

TEST(ConvProduct, ReadsPixelsInPlace) {
  std::mt19937 rng(2);
  for (const int64_t pixels : {1, 7, 49, 200}) {
    const ProductCase c(PointwiseProblem(pixels, 600, 70), rng);
    EXPECT_EQ(ConvProductWorkBytes(c.p), 0u);
    EXPECT_THAT(ConvolveByProduct(c, {}, 1), Pointwise(WithinOf(1e-3), DirectSums(c, {})));
  }
}

TEST(ConvProduct, GivesTheSameBitsWithAnyNumberOfThreads) {
  std::mt19937 rng(3);
  for (int i = 0; i < 20; ++i) {
    const ProductCase c(i == 0 ? PointwiseProblem(49, 512, 300) : RandomWindows(rng), rng);
    const std::vector<float> one = ConvolveByProduct(c, {}, 1);
    for (const int threads : {2, 3, 7})
      EXPECT_EQ(ConvolveByProduct(c, {}, threads), one) << "case " << i;
  }
}

// Where a filter is small, or read by many pixels, there is nothing to fetch ahead.
TEST(ConvProduct, PaysForFewPixelsOfLargeFilters) {
  const bool measured = kVectorBytes == 64;
  EXPECT_EQ(ConvProductPays(PointwiseProblem(49, 512, 2048)), measured);
  EXPECT_FALSE(ConvProductPays(PointwiseProblem(196, 512, 2048)));
  EXPECT_FALSE(ConvProductPays(PointwiseProblem(49, 128, 128)));
  ConvProblem grouped = PointwiseProblem(49, 512, 2048);
  grouped.groups = 2;
  EXPECT_FALSE(ConvProductPays(grouped));
}

}  // namespace
}  // namespace interp::nn
