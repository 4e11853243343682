#include "kernels/nn/conv_winograd.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kTile = 4;    // outputs along an axis of a tile
constexpr int kWindow = 3;  // taps along an axis
constexpr int kPatch = 6;   // inputs along an axis of a tile
constexpr int kPoints = kPatch * kPatch;
constexpr int kTaps = kWindow * kWindow;
constexpr int64_t kLanes = VectorOf<float>::kLanes;
using Vector = VectorOf<float>::type;
using Unaligned = VectorOf<float>::unaligned;

// The points of interpolation, their squares and products.
constexpr float kA = 0.625F;
constexpr float kB = 1.5F;
constexpr float kAA = kA * kA;
constexpr float kBB = kB * kB;

Vector Load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
void Store(Vector value, float* to) { *reinterpret_cast<Unaligned*>(to) = value; }

// The values of six inputs along an axis at the six points: one row of B^T d.
inline void TransformPatch(const Vector (&d)[kPatch], Vector (&v)[kPatch]) {
  const Vector even_a = d[4] - kBB * d[2];
  const Vector odd_a = kA * d[3] - kA * kBB * d[1];
  const Vector even_b = d[4] - kAA * d[2];
  const Vector odd_b = kB * d[3] - kAA * kB * d[1];
  v[0] = kAA * kBB * d[0] - (kAA + kBB) * d[2] + d[4];
  v[1] = even_a + odd_a;
  v[2] = even_a - odd_a;
  v[3] = even_b + odd_b;
  v[4] = even_b - odd_b;
  v[5] = kAA * kBB * d[1] - (kAA + kBB) * d[3] + d[5];
}

// Three taps along an axis at the six points: one row of G g.
inline void TransformTaps(const Vector (&g)[kWindow], Vector (&u)[kPatch]) {
  constexpr float kScaleA = 1 / (2 * kAA * (kAA - kBB));
  constexpr float kScaleB = 1 / (2 * kBB * (kBB - kAA));
  constexpr float kScale0 = 1 / (kAA * kBB);
  const Vector even_a = kScaleA * g[0] + kScaleA * kAA * g[2];
  const Vector odd_a = kScaleA * kA * g[1];
  const Vector even_b = kScaleB * g[0] + kScaleB * kBB * g[2];
  const Vector odd_b = kScaleB * kB * g[1];
  u[0] = kScale0 * g[0];
  u[1] = even_a + odd_a;
  u[2] = even_a - odd_a;
  u[3] = even_b + odd_b;
  u[4] = even_b - odd_b;
  u[5] = g[2];
}

// Four outputs along an axis of sums at the six points: one row of A^T m.
inline void TransformBack(const Vector (&m)[kPatch], Vector (&y)[kTile]) {
  const Vector sum_a = m[1] + m[2];
  const Vector difference_a = m[1] - m[2];
  const Vector sum_b = m[3] + m[4];
  const Vector difference_b = m[3] - m[4];
  y[0] = m[0] + sum_a + sum_b;
  y[1] = kA * difference_a + kB * difference_b;
  y[2] = kAA * sum_a + kBB * sum_b;
  y[3] = kAA * kA * difference_a + kBB * kB * difference_b + m[5];
}

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// An odd number of cache lines: arrays a power of two apart fall into the same few cache sets.
int64_t OddLines(int64_t floats) { return RoundUp(floats, 32) + 16; }

// Floats of a packed filter at one point.
int64_t FilterPoint(const ConvProblem& p) {
  return OddLines(PackedSize<float>(p.in_channels, p.out_channels));
}

// How the tiles of a case are walked, and where their points lie in working memory.
struct Tiling {
  int64_t rows = 0;     // of tiles in an image
  int64_t columns = 0;  // of tiles in an image
  int64_t count = 0;    // of all images
  int64_t block = 0;    // tiles that are multiplied at once
  int64_t in_row = 0;   // floats of a tile at one point
  int64_t out_row = 0;
  int64_t in_point = 0;  // floats of a block at one point
  int64_t out_point = 0;

  int64_t work_floats() const { return kPoints * (in_point + out_point); }
};

Tiling TilingOf(const ConvProblem& p, int num_threads) {
  constexpr int64_t kBlockFloats = 128 * 1024;  // half of an L2 cache of 1 MiB
  Tiling t;
  t.rows = (p.window[0].out + kTile - 1) / kTile;
  t.columns = (p.window[1].out + kTile - 1) / kTile;
  t.count = p.batch * t.rows * t.columns;
  t.in_row = RoundUp(p.in_channels, kLanes);
  t.out_row = RoundUp(p.out_channels, kLanes);
  const int64_t fitting = kBlockFloats / (kPoints * (t.in_row + t.out_row));
  const int64_t share = (t.count + num_threads - 1) / num_threads;
  t.block = std::min(std::clamp<int64_t>(fitting, 2 * kGemmRows, 8 * kGemmRows), share);
  if (t.block > kGemmRows) t.block = RoundUp(t.block, kGemmRows);
  t.in_point = OddLines(t.block * t.in_row);
  t.out_point = OddLines(t.block * t.out_row);
  return t;
}

// A tile's place: its image and the first of its outputs.
struct TilePlace {
  int64_t image = 0;
  int64_t y = 0;
  int64_t x = 0;
};
TilePlace PlaceOf(const Tiling& t, int64_t tile) {
  const int64_t in_image = tile % (t.rows * t.columns);
  return {tile / (t.rows * t.columns), in_image / t.columns * kTile, in_image % t.columns * kTile};
}

// Calls body(first channel, its count) for vectors of channels; the last may have fewer.
template <typename Body>
void ForEachVector(int64_t channels, const Body& body) {
  for (int64_t c = 0; c < channels; c += kLanes) body(c, std::min(kLanes, channels - c));
}

class Winograd {
 public:
  Winograd(const ConvProblem& problem, const ConvEpilogue& epilogue, const WinogradFilter& filter,
           const float* bias, const Tiling& tiling)
      : p_(problem), epilogue_(epilogue), filter_(filter), bias_(bias), tiling_(tiling) {}

  void RunBlock(int64_t first, const float* in, float* out, float* work) const {
    const int64_t tiles = std::min(tiling_.block, tiling_.count - first);
    float* const sums = work + kPoints * tiling_.in_point;
    for (int64_t i = 0; i < tiles; ++i) {
      Spread(PlaceOf(tiling_, first + i), in, work + i * tiling_.in_row);
    }
    const int64_t filter_point = FilterPoint(p_);
    for (int point = 0; point < kPoints; ++point) {
      GemmPacked(tiles, p_.in_channels, p_.out_channels, work + point * tiling_.in_point,
                 tiling_.in_row, filter_.points.data() + point * filter_point,
                 sums + point * tiling_.out_point, tiling_.out_row, /*accumulate=*/false);
    }
    for (int64_t i = 0; i < tiles; ++i) {
      Gather(PlaceOf(tiling_, first + i), sums + i * tiling_.out_row, out);
    }
  }

 private:
  // Transforms the inputs of a tile to its points. The last vector of channels overlaps the one
  // before it.
  void Spread(const TilePlace& place, const float* in, float* points) const {
    static constexpr float kZeros[kLanes] = {};
    const WindowAxis& h = p_.window[0];
    const WindowAxis& w = p_.window[1];
    std::array<const float*, kPoints> pixels;
    std::array<int64_t, kPoints> steps;
    for (int64_t i = 0; i < kPatch; ++i) {
      const int64_t y = place.y + i - h.pad_begin;
      for (int64_t j = 0; j < kPatch; ++j) {
        const int64_t x = place.x + j - w.pad_begin;
        const bool inside = y >= 0 && y < h.in && x >= 0 && x < w.in;
        const int64_t pixel = (place.image * h.in + y) * w.in + x;
        pixels[i * kPatch + j] = inside ? in + pixel * p_.in_channels : kZeros;
        steps[i * kPatch + j] = inside ? 1 : 0;
      }
    }
    for (int64_t start = 0; start < p_.in_channels; start += kLanes) {
      const int64_t c = std::min(start, p_.in_channels - kLanes);
      Vector half[kPatch][kPatch];
      for (int j = 0; j < kPatch; ++j) {
        Vector d[kPatch];
        Vector v[kPatch];
        for (int i = 0; i < kPatch; ++i) {
          const int at = i * kPatch + j;
          d[i] = Load(pixels[at] + c * steps[at]);
        }
        TransformPatch(d, v);
        for (int i = 0; i < kPatch; ++i) half[i][j] = v[i];
      }
      for (int i = 0; i < kPatch; ++i) {
        Vector v[kPatch];
        TransformPatch(half[i], v);
        for (int j = 0; j < kPatch; ++j) {
          Store(v[j], points + (i * kPatch + j) * tiling_.in_point + c);
        }
      }
    }
  }

  // Transforms the sums of a tile back and stores its outputs.
  void Gather(const TilePlace& place, const float* sums, float* out) const {
    const WindowAxis& h = p_.window[0];
    const WindowAxis& w = p_.window[1];
    const int64_t rows = std::min<int64_t>(kTile, h.out - place.y);
    const int64_t columns = std::min<int64_t>(kTile, w.out - place.x);
    const int64_t row_step = w.out * p_.out_channels;
    float* const first =
        out + ((place.image * h.out + place.y) * w.out + place.x) * p_.out_channels;
    ForEachVector(p_.out_channels, [&](int64_t c, int64_t count) {
      Vector half[kTile][kPatch];
      for (int j = 0; j < kPatch; ++j) {
        Vector m[kPatch];
        Vector y[kTile];
        for (int i = 0; i < kPatch; ++i) {
          m[i] = Load(sums + (i * kPatch + j) * tiling_.out_point + c);
        }
        TransformBack(m, y);
        for (int i = 0; i < kTile; ++i) half[i][j] = y[i];
      }
      const Vector bias = bias_ != nullptr ? Part(bias_ + c, count) : Vector{};
      for (int64_t i = 0; i < rows; ++i) {
        Vector y[kTile];
        TransformBack(half[i], y);
        for (int64_t j = 0; j < columns; ++j) {
          Finish(y[j] + bias, first + i * row_step + j * p_.out_channels + c, count);
        }
      }
    });
    const ActivationKind kind = epilogue_.activation.kind;
    if (kind == ActivationKind::kNone || kind == ActivationKind::kRelu) return;
    for (int64_t i = 0; i < rows; ++i) {
      ApplyActivation(epilogue_.activation, first + i * row_step, columns * p_.out_channels);
    }
  }

  static Vector Part(const float* from, int64_t count) {
    if (count == kLanes) return Load(from);
    Vector value = {};
    std::memcpy(&value, from, static_cast<size_t>(count) * sizeof(float));
    return value;
  }

  void Finish(Vector value, float* to, int64_t count) const {
    if (epilogue_.residual) value += Part(to, count);
    if (epilogue_.activation.kind == ActivationKind::kRelu) {
      value = value < 0 ? Vector{} : value;
    }
    if (count == kLanes) return Store(value, to);
    std::memcpy(to, &value, static_cast<size_t>(count) * sizeof(float));
  }

  const ConvProblem& p_;
  const ConvEpilogue& epilogue_;
  const WinogradFilter& filter_;
  const float* bias_;
  const Tiling& tiling_;
};

bool Computes(const ConvProblem& p) {
  if (p.window.rank != 2 || p.groups != 1 || p.in_channels < kLanes) return false;
  for (int i = 0; i < 2; ++i) {
    const WindowAxis& axis = p.window[i];
    if (axis.kernel != kWindow || axis.stride != 1 || axis.dilation != 1) return false;
  }
  return true;
}

}  // namespace

bool WinogradPays(const ConvProblem& p, bool constant) {
  if (!Computes(p)) return false;
  // In multiplications of vectors, measured on AVX-512: a tile's transforms cost about 580 for each
  // vector of channels, a byte of the filter a sixth when it comes from beyond the L2 cache, and
  // transforming an element of the filter 40.
  constexpr double kTransform = 580;
  constexpr double kByte = 1.0 / 6;
  constexpr double kFilterElement = 40;
  constexpr double kWorthwhile = 0.9;
  const auto vectors = [](int64_t channels) {
    return static_cast<double>((channels + kLanes - 1) / kLanes);
  };
  const auto in = static_cast<double>(p.in_channels);
  const auto out = static_cast<double>(p.out_channels);
  const Tiling tiling = TilingOf(p, 1);
  const double products = in * vectors(p.out_channels);
  const double filter_bytes = in * out * sizeof(float);
  const double direct =
      static_cast<double>(p.batch * p.window[0].out * p.window[1].out) * kTaps * products +
      kTaps * filter_bytes * kByte;
  const double tile =
      kPoints * products + kTransform * (vectors(p.in_channels) + vectors(p.out_channels));
  const double winograd = static_cast<double>(tiling.count) * tile +
                          kPoints * filter_bytes * kByte +
                          (constant ? 0 : kFilterElement * in * out);
  return winograd < kWorthwhile * direct;
}

TapFilter ForwardFilter(const ConvProblem& problem, const float* data) {
  return {data, kTaps, problem.in_channels * kTaps, /*mirrored=*/false};
}

ConvProblem DataGradProblem(const ConvProblem& problem) {
  ConvProblem grad = problem;
  std::swap(grad.in_channels, grad.out_channels);
  for (int i = 0; i < problem.window.rank; ++i) {
    WindowAxis& axis = grad.window[i];
    std::swap(axis.in, axis.out);
    axis.pad_begin = axis.kernel - 1 - axis.pad_begin;
    axis.pad_end = axis.kernel - 1 - axis.pad_end;
  }
  return grad;
}

TapFilter DataGradFilter(const ConvProblem& problem, const float* data) {
  return {data, problem.in_channels * kTaps, kTaps, /*mirrored=*/true};
}

WinogradFilter MakeWinogradFilter(const ConvProblem& problem) {
  return {AlignedArray<float>(kPoints * FilterPoint(problem))};
}

void TransformFilter(const ConvProblem& problem, const TapFilter& taps, int num_threads,
                     WinogradFilter& filter) {
  const int64_t point = FilterPoint(problem);
  const int64_t vectors =
      PackedSize<float>(problem.in_channels, problem.out_channels) / problem.in_channels / kLanes;
  float* const points = filter.points.data();
  const auto transform = [&](int64_t vector, int64_t in_channel) {
    const int64_t first = vector * kLanes;
    const int64_t count = std::clamp<int64_t>(problem.out_channels - first, 0, kLanes);
    Vector g[kWindow][kWindow] = {};
    for (int64_t lane = 0; lane < count; ++lane) {
      const float* from =
          taps.data + in_channel * taps.in_stride + (first + lane) * taps.out_stride;
      for (int t = 0; t < kTaps; ++t) {
        g[t / kWindow][t % kWindow][lane] = from[taps.mirrored ? kTaps - 1 - t : t];
      }
    }
    Vector half[kPatch][kWindow];
    for (int j = 0; j < kWindow; ++j) {
      const Vector column[kWindow] = {g[0][j], g[1][j], g[2][j]};
      Vector u[kPatch];
      TransformTaps(column, u);
      for (int i = 0; i < kPatch; ++i) half[i][j] = u[i];
    }
    const int64_t panel = first / kPanel<float>;
    float* const to =
        points + (panel * problem.in_channels + in_channel) * kPanel<float> + first % kPanel<float>;
    for (int i = 0; i < kPatch; ++i) {
      Vector u[kPatch];
      TransformTaps(half[i], u);
      for (int j = 0; j < kPatch; ++j) Store(u[j], to + (i * kPatch + j) * point);
    }
  };
  constexpr int64_t kGrain = 256;
  ParallelFor(num_threads, vectors * problem.in_channels, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      transform(i / problem.in_channels, i % problem.in_channels);
    }
  });
}

size_t WinogradWorkBytes(const ConvProblem& problem, int num_threads) {
  const Tiling tiling = TilingOf(problem, num_threads);
  return static_cast<size_t>(num_threads * tiling.work_floats()) * sizeof(float);
}

void RunWinograd(const ConvProblem& problem, const ConvEpilogue& epilogue,
                 const WinogradFilter& filter, const float* bias, const float* in, float* out,
                 int num_threads, float* work) {
  const Tiling tiling = TilingOf(problem, num_threads);
  const Winograd winograd(problem, epilogue, filter, bias, tiling);
  const int64_t blocks = (tiling.count + tiling.block - 1) / tiling.block;
  const int64_t lanes = std::min<int64_t>(num_threads, blocks);
  ParallelFor(num_threads, lanes, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; ++lane) {
      float* const own = work + lane * tiling.work_floats();
      for (int64_t b = blocks * lane / lanes; b < blocks * (lane + 1) / lanes; ++b) {
        winograd.RunBlock(b * tiling.block, in, out, own);
      }
    }
  });
}

}  // namespace interp::nn
