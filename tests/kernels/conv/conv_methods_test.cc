// Convolutions by methods of our own, products of matrices and groups in vectors, against sums in
// float64.
// Long because all methods are held to the same random cases.
#include "kernels/conv/conv_methods.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/conv/conv_by_tap.h"
#include "kernels/conv/conv_direct.h"
#include "kernels/conv/conv_few_outputs.h"
#include "kernels/conv/conv_grouped.h"
#include "kernels/conv/conv_product.h"
#include "kernels/conv/conv_spread_depthwise.h"
#include "kernels/conv/conv_weights.h"
#include "kernels/product/gemm.h"

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
  Shape shape = {p.out_channels, p.group_in()};
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

// By a method that need not pay.
std::vector<float> ConvolveBy(const ConvMethod& way, const ProductCase& c,
                              const ConvEpilogue& epilogue, int threads) {
  AlignedArray<float> packed(way.filter_size(c.p));
  way.pack(c.p, {c.filter.data()}, packed.data());
  // As large as it says: sanitizers see what is read beyond.
  AlignedArray<float> work(static_cast<int64_t>(way.work_bytes(c.p, threads) / sizeof(float)));
  std::vector<float> out = c.residual;
  way.run(c.p, epilogue, packed.data(), epilogue.bias ? c.bias.data() : nullptr, c.in.data(),
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
    EXPECT_THAT(ConvolveBy(kConvProduct, c, epilogue, 1 + i % 3),
                Pointwise(WithinOf(1e-4), DirectSums(c, epilogue)))
        << "case " << i;
  }
}

TEST(ConvProduct, ReadsPixelsInPlace) {
  std::mt19937 rng(2);
  for (const int64_t pixels : {1, 7, 49, 200}) {
    const ProductCase c(PointwiseProblem(pixels, 600, 70), rng);
    EXPECT_EQ(kConvProduct.work_bytes(c.p, 1), 0u);
    EXPECT_THAT(ConvolveBy(kConvProduct, c, {}, 1), Pointwise(WithinOf(1e-3), DirectSums(c, {})));
  }
}

// An axis whose windows of three taps with a pixel of padding slide over `in` pixels.
WindowAxis ThreeTaps(int64_t in) {
  return {.in = in, .out = in, .kernel = 3, .pad_begin = 1, .pad_end = 1};
}

TEST(ConvProduct, LeavesOutTapsThatSeePaddingAlone) {
  std::mt19937 rng(8);
  ConvProblem p = {.batch = 2, .in_channels = 5, .out_channels = 40, .window = {.rank = 2}};
  const WindowAxis far = {
      .in = 2, .out = 9, .kernel = 3, .dilation = 3, .pad_begin = 7, .pad_end = 6};
  const WindowAxis one = {
      .in = 1, .out = 3, .kernel = 2, .stride = 2, .pad_begin = 2, .pad_end = 3};
  const std::vector<std::pair<std::array<WindowAxis, 3>, int64_t>> cases = {
      {{ThreeTaps(1), ThreeTaps(20)}, 3}, {{ThreeTaps(20), ThreeTaps(1)}, 3},
      {{ThreeTaps(1), ThreeTaps(1)}, 1},  {{ThreeTaps(2), ThreeTaps(20)}, 9},
      {{far, ThreeTaps(1)}, 3},           {{one, ThreeTaps(4)}, 3},
  };
  for (const auto& [axes, taps] : cases) {
    p.window.axes = axes;
    const ProductCase c(p, rng);
    const int64_t pixels = p.batch * p.window[0].out * p.window[1].out;
    if (taps > 1) {
      EXPECT_EQ(kConvProduct.work_bytes(p, 1), pixels * taps * p.in_channels * sizeof(float));
    }
    const ConvEpilogue epilogue = {.bias = true, .residual = taps == 3};
    EXPECT_THAT(ConvolveBy(kConvProduct, c, epilogue, 2),
                Pointwise(WithinOf(1e-4), DirectSums(c, epilogue)));
  }
}

TEST(ConvProduct, LeavesOutPlanesOfPaddingAlone) {
  std::mt19937 rng(9);
  for (const std::array<int64_t, 3>& in :
       {std::array<int64_t, 3>{1, 4, 5}, {1, 1, 5}, {4, 1, 5}, {4, 1, 1}, {3, 4, 1}}) {
    ConvProblem p = {.batch = 1, .in_channels = 3, .out_channels = 17, .window = {.rank = 3}};
    for (int i = 0; i < 3; ++i) p.window[i] = ThreeTaps(in[i]);
    const ProductCase c(p, rng);
    EXPECT_THAT(ConvolveBy(kConvProduct, c, {}, 1), Pointwise(WithinOf(1e-4), DirectSums(c, {})));
  }
}

TEST(ConvProduct, GivesTheSameBitsWithAnyNumberOfThreads) {
  std::mt19937 rng(3);
  for (int i = 0; i < 20; ++i) {
    const ProductCase c(i == 0 ? PointwiseProblem(49, 512, 300) : RandomWindows(rng), rng);
    const ConvEpilogue epilogue = {true, i % 2 == 0, {ActivationKind::kRelu}};
    const std::vector<float> one = ConvolveBy(kConvProduct, c, epilogue, 1);
    for (const int threads : {2, 3, 7}) {
      EXPECT_EQ(ConvolveBy(kConvProduct, c, epilogue, threads), one) << "case " << i;
    }
  }
}

ConvProblem RandomFewOutputs(std::mt19937& rng) {
  ConvProblem p = RandomWindows(rng);
  while (p.window.rank != 2) p = RandomWindows(rng);
  p.out_channels = Pick(rng, 1, 8);
  for (int i = 0; i < 2; ++i) {
    p.window[i].kernel = Pick(rng, 1, 9);
    p.window[i].in = std::max(p.window[i].in, p.window[i].extent() - 2 * p.window[i].pad_begin);
    p.window[i].pad_end = p.window[i].pad_begin;
  }
  EXPECT_TRUE(FitWindow(p.window, /*ceil_mode=*/false).ok());
  return p;
}

TEST(ConvFewOutputs, GivesTheSumsOfRandomCases) {
  std::mt19937 rng(4);
  for (int i = 0; i < 120; ++i) {
    const ProductCase c(RandomFewOutputs(rng), rng);
    const ConvEpilogue epilogue = {i % 2 == 0,
                                   i % 4 < 2,
                                   kSomeActivations[i % 3],
                                   {i % 5 == 0 ? 2.0F : 1.0F, i % 5 == 0 ? 0.5F : 0.0F}};
    EXPECT_THAT(ConvolveBy(kConvFewOutputs, c, epilogue, 1 + i % 3),
                Pointwise(WithinOf(3e-4), DirectSums(c, epilogue)))
        << "case " << i;
  }
}

TEST(ConvFewOutputs, GivesTheSameBitsWithAnyNumberOfThreads) {
  std::mt19937 rng(5);
  for (int i = 0; i < 20; ++i) {
    const ProductCase c(RandomFewOutputs(rng), rng);
    const std::vector<float> one = ConvolveBy(kConvFewOutputs, c, {}, 1);
    for (const int threads : {2, 3, 7}) EXPECT_EQ(ConvolveBy(kConvFewOutputs, c, {}, threads), one);
  }
}

// Windows that reach far beside their images, or see every other pixel.
ConvProblem RandomSpreadWindows(std::mt19937& rng) {
  ConvProblem p = RandomWindows(rng);
  while (p.window.rank != 2) p = RandomWindows(rng);
  for (int i = 0; i < 2; ++i) {
    WindowAxis& axis = p.window[i];
    axis.stride = Pick(rng, 1, 3);
    axis.dilation = Pick(rng, 1, 20);
    axis.pad_begin = Pick(rng, 0, axis.extent() + 2);
    axis.pad_end = Pick(rng, 0, axis.extent() + 2);
    const int64_t least = std::max<int64_t>(axis.extent() - axis.pad_begin - axis.pad_end, 1);
    axis.in = least + Pick(rng, 0, 20);
  }
  EXPECT_TRUE(FitWindow(p.window, /*ceil_mode=*/false).ok());
  return p;
}

ConvProblem RandomGroups(std::mt19937& rng) {
  ConvProblem p = RandomSpreadWindows(rng);
  p.in_channels = p.out_channels = VectorOf<float>::kLanes * Pick(rng, 1, 6);
  const int64_t group = VectorOf<float>::kLanes >> Pick(rng, 1, kVectorBytes == 64 ? 3 : 2);
  p.groups = p.in_channels / group;
  // Long rows, for tiles of all widths.
  for (int i = 0; i < 2; ++i) p.window[i].in += Pick(rng, 0, 1) * Pick(rng, 0, 40);
  EXPECT_TRUE(FitWindow(p.window, /*ceil_mode=*/false).ok());
  EXPECT_TRUE(kConvGrouped.pays(p));
  return p;
}

// Random cases give their sums, and the same bits with any number of threads.
void ExpectSums(const ConvMethod& way, ConvProblem (&random)(std::mt19937&), unsigned seed) {
  std::mt19937 rng(seed);
  for (int i = 0; i < 120; ++i) {
    const ProductCase c(random(rng), rng);
    const ConvEpilogue epilogue = {i % 2 == 0,
                                   i % 4 < 2,
                                   kSomeActivations[i % 3],
                                   {i % 5 == 0 ? 2.0F : 1.0F, i % 5 == 0 ? 0.5F : 0.0F}};
    const std::vector<float> one = ConvolveBy(way, c, epilogue, 1);
    EXPECT_THAT(one, Pointwise(WithinOf(3e-4), DirectSums(c, epilogue))) << "case " << i;
    for (const int threads : {2, 5}) EXPECT_EQ(ConvolveBy(way, c, epilogue, threads), one);
  }
}

TEST(ConvByTap, GivesTheSumsOfRandomCases) { ExpectSums(kConvByTap, RandomSpreadWindows, 6); }

TEST(ConvGrouped, GivesTheSumsOfRandomCases) { ExpectSums(kConvGrouped, RandomGroups, 7); }

TEST(ConvByTap, PaysWhereWindowsLieInThePadding) {
  const auto square = [](int64_t size, int64_t dilation) {
    ConvProblem p = PointwiseProblem(size, 128, 64);
    for (int i = 0; i < 2; ++i) {
      p.window[i] = {.in = size,
                     .out = size,
                     .kernel = 3,
                     .dilation = dilation,
                     .pad_begin = dilation,
                     .pad_end = dilation};
    }
    return p;
  };
  EXPECT_TRUE(kConvByTap.pays(square(16, 12)));
  EXPECT_TRUE(kConvByTap.pays(square(32, 6)));
  EXPECT_FALSE(kConvByTap.pays(square(16, 1)));
  EXPECT_FALSE(kConvByTap.pays(square(64, 2)));  // Winograd's method is faster
  ConvProblem grouped = square(16, 12);
  grouped.groups = 2;
  EXPECT_FALSE(kConvByTap.pays(grouped));
  ConvProblem strided = square(56, 1);
  for (int i = 0; i < 2; ++i) strided.window[i].stride = 2;
  for (int i = 0; i < 2; ++i) strided.window[i].out = 28;
  EXPECT_EQ(kConvByTap.pays(strided), kVectorBytes == 32);
  strided.in_channels = 32;
  EXPECT_FALSE(kConvByTap.pays(strided));
}

ConvProblem RandomSpreadDepthwise(std::mt19937& rng) {
  ConvProblem p = RandomSpreadWindows(rng);
  p.in_channels = p.out_channels = p.groups = Pick(rng, 2, 6 * VectorOf<float>::kLanes);
  return p;
}

TEST(ConvSpreadDepthwise, GivesTheSumsOfRandomCases) {
  ExpectSums(kConvSpreadDepthwise, RandomSpreadDepthwise, 9);
}

TEST(ConvSpreadDepthwise, PaysForWideWindowsWithHoles) {
  ConvProblem p = PointwiseProblem(28, 64, 64);
  p.groups = 64;
  for (int i = 0; i < 2; ++i) {
    p.window[i] = {
        .in = 28, .out = 28, .kernel = 3, .dilation = 12, .pad_begin = 12, .pad_end = 12};
  }
  EXPECT_TRUE(kConvSpreadDepthwise.pays(p));
  ASSERT_NE(FindConvMethod(p), nullptr);
  EXPECT_EQ(FindConvMethod(p)->name, "depthwise by tap");
  p.out_channels = 128;
  EXPECT_FALSE(kConvSpreadDepthwise.pays(p));
  p.out_channels = 64;
  for (int i = 0; i < 2; ++i) {
    p.window[i] = {.in = 28, .out = 28, .kernel = 3, .dilation = 2, .pad_begin = 2, .pad_end = 2};
  }
  EXPECT_FALSE(kConvSpreadDepthwise.pays(p));  // oneDNN's is faster
}

// A filter with factors is packed to the bytes of one that was multiplied by them before.
TEST(ConvMethods, MultiplyChannelsByFactors) {
  const auto packed_by = [](const ConvMethod& way, const ConvProblem& p, const ScaledFilter& f) {
    AlignedArray<float> packed(way.filter_size(p));
    std::fill_n(packed.data(), packed.size(), 0.0F);
    way.pack(p, f, packed.data());
    return std::vector<float>(packed.data(), packed.data() + packed.size());
  };
  std::mt19937 rng(8);
  for (int i = 0; i < 40; ++i) {
    for (const auto& [way, random] :
         {std::pair(&kConvProduct, &RandomWindows), std::pair(&kConvFewOutputs, &RandomFewOutputs),
          std::pair(&kConvByTap, &RandomSpreadWindows), std::pair(&kConvGrouped, &RandomGroups),
          std::pair(&kConvSpreadDepthwise, &RandomSpreadDepthwise)}) {
      const ProductCase c(random(rng), rng);
      std::vector<double> factors(static_cast<size_t>(c.p.out_channels));
      for (double& factor : factors) factor = std::normal_distribution<double>()(rng);
      std::vector<float> multiplied = c.filter;
      ScaleChannels(factors, multiplied);
      EXPECT_EQ(packed_by(*way, c.p, {c.filter.data(), factors}),
                packed_by(*way, c.p, {multiplied.data()}))
          << way->name << ", case " << i;
    }
  }
}

// Of the methods that pay the first one is taken, each under a key of its own.
TEST(ConvMethods, AreFoundByProblem) {
  ConvProblem grouped = PointwiseProblem(64, 64, 64);
  grouped.groups = 32;
  ASSERT_NE(FindConvMethod(grouped), nullptr);
  EXPECT_EQ(FindConvMethod(grouped)->name, "groups in vectors");
  EXPECT_LT(FindConvMethod(grouped)->key, kConvMethodKeys);
  EXPECT_EQ(FindConvMethod(PointwiseProblem(1024, 64, 64)), nullptr);
}

// A vector of output channels is no waste where there are as many.
TEST(ConvFewOutputs, PaysWhereAVectorIsMostlyEmpty) {
  const bool measured = kVectorBytes >= 32;
  const auto problem = [](int64_t outputs, int64_t kernel) {
    ConvProblem p = PointwiseProblem(64, 64, outputs);
    for (int i = 0; i < 2; ++i) p.window[i] = {.in = 64, .out = 65 - kernel, .kernel = kernel};
    return p;
  };
  EXPECT_EQ(kConvFewOutputs.pays(problem(3, 9)), measured);
  EXPECT_EQ(kConvFewOutputs.pays(problem(1, 3)), measured);
  EXPECT_FALSE(kConvFewOutputs.pays(problem(3, 1)));
  EXPECT_FALSE(kConvFewOutputs.pays(problem(16, 3)));
  ConvProblem strided = problem(3, 9);
  strided.window[0].stride = 2;
  EXPECT_FALSE(kConvFewOutputs.pays(strided));
}

// Where a filter is small, or read by many pixels, there is nothing to fetch ahead.
TEST(ConvProduct, PaysForFewPixelsOfLargeFilters) {
  const bool measured = kVectorBytes == 64;
  EXPECT_EQ(kConvProduct.pays(PointwiseProblem(49, 512, 2048)), measured);
  EXPECT_EQ(kConvProduct.pays(PointwiseProblem(196, 512, 2048)), measured);
  EXPECT_FALSE(kConvProduct.pays(PointwiseProblem(784, 512, 2048)));
  ConvProblem window = PointwiseProblem(196, 512, 2048);
  window.window[1].kernel = 2;
  EXPECT_FALSE(kConvProduct.pays(window));
  ConvProblem strided = PointwiseProblem(256, 512, 2048);
  strided.window[1] = {.in = 512, .out = 256, .stride = 2};
  EXPECT_EQ(kConvProduct.pays(strided), measured);
  strided.window[1] = {.in = 254, .out = 256, .pad_begin = 1};
  EXPECT_FALSE(kConvProduct.pays(strided));
  EXPECT_FALSE(kConvProduct.pays(PointwiseProblem(257, 512, 2048)));
  EXPECT_FALSE(kConvProduct.pays(PointwiseProblem(49, 128, 128)));
  ConvProblem grouped = PointwiseProblem(49, 512, 2048);
  grouped.groups = 2;
  EXPECT_FALSE(kConvProduct.pays(grouped));
}

}  // namespace
}  // namespace interp::nn
