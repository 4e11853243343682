// Winograd's method against sums in float64.
#include "kernels/conv/conv_winograd.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/conv/conv_weights.h"
#include "kernels/conv/conv_winograd_filter_grad.h"
#include "tests/kernels/whole_vectors.h"

namespace interp::nn {
namespace {

using ::testing::Pointwise;

ConvProblem MakeProblem(int64_t batch, int64_t in_channels, int64_t out_channels,
                        std::array<WindowAxis, 2> axes) {
  ConvProblem p;
  p.batch = batch;
  p.in_channels = in_channels;
  p.out_channels = out_channels;
  p.window.rank = 2;
  for (int i = 0; i < 2; ++i) {
    WindowAxis& axis = p.window[i];
    axis = axes[i];
    axis.kernel = 3;
    axis.out = axis.in + axis.pad_begin + axis.pad_end - axis.extent() + 1;
  }
  return p;
}

ConvProblem RandomProblem(std::mt19937& rng, int64_t most_groups = 3) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  const auto axis = [&] {
    const int64_t dilation = pick(0, 1) * pick(0, 4) + 1;
    return WindowAxis{.in = pick(2 * dilation + 1, 21),
                      .dilation = dilation,
                      .pad_begin = pick(0, 3),
                      .pad_end = pick(0, 3)};
  };
  const int64_t groups = pick(1, most_groups);
  ConvProblem p =
      MakeProblem(pick(1, 3), groups * pick(16, 75), groups * pick(1, 75), {axis(), axis()});
  p.groups = groups;
  return p;
}

std::vector<float> RandomFloats(int64_t size, std::mt19937& rng) {
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) value = normal(rng);
  return values;
}

// The images, filter and epilogue of one case.
struct Case {
  ConvProblem problem;
  std::vector<float> in;
  std::vector<float> filter;
  std::vector<float> bias;
  std::vector<float> residual;
};

int64_t InSize(const ConvProblem& p) {
  return p.batch * p.window[0].in * p.window[1].in * p.in_channels;
}
int64_t OutSize(const ConvProblem& p) {
  return p.batch * p.window[0].out * p.window[1].out * p.out_channels;
}

Case RandomCase(const ConvProblem& p, std::mt19937& rng) {
  return {p, RandomFloats(InSize(p), rng), RandomFloats(p.group_in() * p.out_channels * 9, rng),
          RandomFloats(p.out_channels, rng), RandomFloats(OutSize(p), rng)};
}

// Calls body(at, filter, pixel) for each element `at` of the output and each tap of its window that
// is inside the image: where the tap's input channels begin in the filter, 9 apart, and in the
// input.
template <typename Body>
void ForEachTap(const ConvProblem& p, const Body& body) {
  const WindowAxis& h = p.window[0];
  const WindowAxis& w = p.window[1];
  for (int64_t at = 0; at < OutSize(p); ++at) {
    const int64_t o = at % p.out_channels;
    const int64_t x = at / p.out_channels % w.out;
    const int64_t y = at / p.out_channels / w.out % h.out;
    const int64_t n = at / p.out_channels / w.out / h.out;
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t iy = y + tap / 3 * h.dilation - h.pad_begin;
      const int64_t ix = x + tap % 3 * w.dilation - w.pad_begin;
      if (iy < 0 || iy >= h.in || ix < 0 || ix >= w.in) continue;
      const int64_t channel = o / p.group_out() * p.group_in();
      body(at, o * p.group_in() * 9 + tap, ((n * h.in + iy) * w.in + ix) * p.in_channels + channel);
    }
  }
}

// The sums alone, in float64.
std::vector<double> Reference(const Case& c) {
  std::vector<double> out(static_cast<size_t>(OutSize(c.problem)));
  ForEachTap(c.problem, [&](int64_t at, int64_t filter, int64_t pixel) {
    for (int64_t i = 0; i < c.problem.group_in(); ++i) {
      out[at] += static_cast<double>(c.in[pixel + i]) * c.filter[filter + i * 9];
    }
  });
  return out;
}

// The gradient by the filter, in float64.
std::vector<double> FilterGradReference(const Case& c, const std::vector<float>& out_grad) {
  std::vector<double> grad(c.filter.size());
  ForEachTap(c.problem, [&](int64_t at, int64_t filter, int64_t pixel) {
    for (int64_t i = 0; i < c.problem.group_in(); ++i) {
      grad[filter + i * 9] += static_cast<double>(c.in[pixel + i]) * out_grad[at];
    }
  });
  return grad;
}

// Of images that are stored as T, as the result is.
template <typename T = float>
std::vector<T> Convolve(const Case& c, const ConvEpilogue& epilogue, int threads) {
  WinogradFilter filter;
  TransformFilter(c.problem, ForwardFilter(c.problem, {c.filter.data()}), threads, filter);
  const std::vector<T> in(c.in.begin(), c.in.end());
  std::vector<T> out(c.residual.begin(), c.residual.end());
  AlignedArray<float> work(
      static_cast<int64_t>(WinogradWorkBytes(c.problem, threads) / sizeof(float)));
  RunWinograd(c.problem, epilogue, filter.points.data(), epilogue.bias ? c.bias.data() : nullptr,
              in.data(), out.data(), threads, work.data());
  return out;
}

MATCHER_P(NearTo, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance;
}

// What errors of float32 sums of that many products of normal numbers stay below.
double Tolerance(const ConvProblem& p) {
  return 1e-5 * std::sqrt(static_cast<double>(p.in_channels) * 9);
}

TEST(Winograd, MultipliesChannelsByFactors) {
  const auto points_of = [](const ConvProblem& p, const ScaledFilter& f) {
    WinogradFilter filter;
    TransformFilter(p, ForwardFilter(p, f), /*num_threads=*/1, filter);
    return std::vector<float>(filter.points.data(), filter.points.data() + filter.points.size());
  };
  const ConvProblem problem = MakeProblem(1, 5, 37, {{{.in = 9}, {.in = 9}}});
  std::mt19937 rng(11);
  std::normal_distribution<float> normal;
  std::vector<float> filter(5 * 37 * 9);
  for (float& element : filter) element = normal(rng);
  std::vector<double> factors(37);
  for (double& factor : factors) factor = normal(rng);
  std::vector<float> multiplied = filter;
  ScaleChannels(factors, multiplied);
  EXPECT_EQ(points_of(problem, {filter.data(), factors}), points_of(problem, {multiplied.data()}));
}

TEST(Winograd, GivesTheSumsOfRandomCases) {
  std::mt19937 rng(1);
  for (int i = 0; i < 60; ++i) {
    const Case c = RandomCase(RandomProblem(rng), rng);
    EXPECT_THAT(Convolve(c, ConvEpilogue(), 1),
                Pointwise(NearTo(Tolerance(c.problem)), Reference(c)))
        << "case " << i;
  }
}

const FusedActivation kActivations[] = {
    {}, {ActivationKind::kRelu}, {ActivationKind::kHardSwish, 1.0F / 6, 0.5F}};

TEST(Winograd, AddsBiasAndResidualAndActivates) {
  std::mt19937 rng(2);
  for (int i = 0; i < 24; ++i) {
    const Case c = RandomCase(RandomProblem(rng), rng);
    const ConvEpilogue epilogue = {i % 2 == 0, i % 4 < 2, kActivations[i % 3]};
    const std::vector<double> sums = Reference(c);
    std::vector<float> expected(sums.size());
    for (size_t at = 0; at < sums.size(); ++at) {
      const size_t channel = at % c.bias.size();
      expected[at] = static_cast<float>(sums[at] + (epilogue.bias ? c.bias[channel] : 0.0F) +
                                        (epilogue.residual ? c.residual[at] : 0.0F));
    }
    ApplyActivation(epilogue.activation, expected.data(), std::ssize(expected));
    EXPECT_THAT(Convolve(c, epilogue, 1), Pointwise(NearTo(Tolerance(c.problem)), expected))
        << "case " << i;
  }
}

// All else is computed in float.
TEST(Winograd, RoundsBfloat16Once) {
  std::mt19937 rng(7);
  for (int i = 0; i < 24; ++i) {
    Case c = RandomCase(RandomProblem(rng), rng);
    for (float& value : c.in) value = bfloat16(value);
    for (float& value : c.residual) value = bfloat16(value);
    const ConvEpilogue epilogue = {i % 2 == 0, i % 4 < 2, kActivations[i % 3]};
    const std::vector<bfloat16> out = Convolve<bfloat16>(c, epilogue, 1 + i % 5);
    const std::vector<float> wide = Convolve(c, epilogue, 1);
    const std::vector<bfloat16> rounded(wide.begin(), wide.end());
    EXPECT_EQ(std::vector<float>(out.begin(), out.end()),
              std::vector<float>(rounded.begin(), rounded.end()))
        << "case " << i;
  }
}

TEST(Winograd, GivesTheSameBitsWithAnyNumberOfThreads) {
  std::mt19937 rng(3);
  for (int i = 0; i < 20; ++i) {
    const Case c = RandomCase(RandomProblem(rng), rng);
    const std::vector<float> one = Convolve(c, ConvEpilogue(), 1);
    for (const int threads : {2, 3, 7}) EXPECT_EQ(Convolve(c, ConvEpilogue(), threads), one);
  }
}

TEST(Winograd, KeepsNotANumberToItsTile) {
  std::mt19937 rng(4);
  const WindowAxis axis = {.in = 12, .pad_begin = 1, .pad_end = 1};
  Case c = RandomCase(MakeProblem(1, 16, 16, {axis, axis}), rng);
  c.in[0] = NAN;
  const std::vector<float> out = Convolve(c, {.activation = {ActivationKind::kRelu}}, 1);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_FALSE(std::isnan(out.back()));
}

// <x * f, y> = <x, gradient of y>.
TEST(Winograd, ComputesTheGradientByTheInput) {
  std::mt19937 rng(5);
  for (int i = 0; i < 30; ++i) {
    const ConvProblem problem = RandomProblem(rng);
    const ConvProblem back = DataGradProblem(problem);
    if (back.in_channels < 16) continue;
    const Case forward = RandomCase(problem, rng);
    const std::vector<float> out_grad = RandomFloats(OutSize(problem), rng);
    WinogradFilter filter;
    TransformFilter(back, DataGradFilter(problem, forward.filter.data()), 1, filter);
    std::vector<float> in_grad(forward.in.size());
    AlignedArray<float> work(static_cast<int64_t>(WinogradWorkBytes(back, 1) / sizeof(float)));
    RunWinograd(back, ConvEpilogue(), filter.points.data(), nullptr, out_grad.data(),
                in_grad.data(), 1, work.data());
    const std::vector<double> out = Reference(forward);
    double by_out = 0;
    double by_in = 0;
    double size = 0;
    for (size_t at = 0; at < out.size(); ++at) {
      by_out += out[at] * out_grad[at];
      size += std::abs(out[at] * out_grad[at]);
    }
    for (size_t at = 0; at < in_grad.size(); ++at) {
      by_in += static_cast<double>(forward.in[at]) * in_grad[at];
    }
    EXPECT_NEAR(by_out, by_in, 1e-6 * size) << "case " << i;
  }
}

// The same by the filter.
TEST(Winograd, ComputesTheGradientByTheFilter) {
  std::mt19937 rng(6);
  for (int i = 0; i < 30; ++i) {
    const Case forward = RandomCase(RandomProblem(rng, /*most_groups=*/1), rng);
    const ConvProblem& problem = forward.problem;
    const std::vector<float> out_grad = RandomFloats(OutSize(problem), rng);
    const auto gradient = [&](int threads) {
      std::vector<float> grad(forward.filter.size());
      AlignedArray<float> work(
          static_cast<int64_t>(WinogradFilterGradWorkBytes(problem) / sizeof(float)));
      WinogradFilterGrad(problem, forward.in.data(), out_grad.data(), grad.data(), threads,
                         work.data());
      return grad;
    };
    const std::vector<float> filter_grad = gradient(1);
    EXPECT_EQ(gradient(3), filter_grad);
    EXPECT_THAT(filter_grad, Pointwise(NearTo(1e-5 * std::sqrt(OutSize(problem))),
                                       FilterGradReference(forward, out_grad)))
        << "case " << i;
  }
}

TEST(Winograd, IsForWindowsOfThreeWithoutStride) {
  const WindowAxis axis = {.in = 56, .pad_begin = 1, .pad_end = 1};
  const ConvProblem good = MakeProblem(1, 64, 64, {axis, axis});
  EXPECT_EQ(WinogradPays(good, true), interp::testing::UsesWholeVectors());
  const auto with = [&](auto change) {
    ConvProblem p = good;
    change(p);
    return WinogradPays(p, true);
  };
  EXPECT_FALSE(with([](ConvProblem& p) { p.window[0].stride = 2; }));
  const auto dilate = [](int64_t dilation) {
    return [=](ConvProblem& p) {
      for (int i = 0; i < 2; ++i) p.window[i].dilation = dilation;
      for (int i = 0; i < 2; ++i) p.window[i].pad_begin = p.window[i].pad_end = dilation;
    };
  };
  EXPECT_EQ(with(dilate(2)), interp::testing::UsesWholeVectors());
  EXPECT_FALSE(with(dilate(40)));  // tiles of one or two outputs
  EXPECT_FALSE(with([](ConvProblem& p) { p.window[1].kernel = 5; }));
  EXPECT_FALSE(with([](ConvProblem& p) { p.groups = 64; }));
  EXPECT_EQ(with([](ConvProblem& p) { p.groups = 2; }), interp::testing::UsesWholeVectors());
  EXPECT_FALSE(with([](ConvProblem& p) { p.in_channels = 3; }));
  EXPECT_FALSE(with([](ConvProblem& p) { p.window.rank = 3; }));
}

// A filter that is read once costs more than the multiplications saved.
TEST(Winograd, DoesNotPayForFewPixelsOfManyChannels) {
  const WindowAxis axis = {.in = 4, .pad_begin = 1, .pad_end = 1};
  EXPECT_FALSE(WinogradPays(MakeProblem(1, 512, 512, {axis, axis}), true));
  EXPECT_EQ(WinogradPays(MakeProblem(64, 512, 512, {axis, axis}), true),
            interp::testing::UsesWholeVectors());
}

}  // namespace
}  // namespace interp::nn
