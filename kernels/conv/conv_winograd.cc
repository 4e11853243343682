#include "kernels/conv/conv_winograd.h"

#include <algorithm>
#include <type_traits>

#include "kernels/conv/conv_winograd_tiles.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

using namespace winograd;  // NOLINT(google-build-using-namespace)

// Floats of the packed filter of a group at one point.
int64_t GroupPoint(const ConvProblem& p) { return PackedSize<float>(p.group_in(), p.group_out()); }

// Floats of a packed filter at one point.
int64_t FilterPoint(const ConvProblem& p) { return OddLines(p.groups * GroupPoint(p)); }

// How the tiles of a case are walked, and where their points lie in working memory.
struct Tiling {
  TileGrid grid;
  bool together = false;  // all threads work on one block
  int64_t lanes = 0;      // parts of the tiles, each a thread's otherwise
  int64_t block = 0;      // tiles that are multiplied at once
  int64_t in_row = 0;     // floats of a tile at one point
  int64_t out_row = 0;
  int64_t in_point = 0;  // floats of a block at one point
  int64_t out_point = 0;
  int64_t stages = 1;  // tiles of a lane whose outputs are activated at once

  int64_t stage_floats() const { return kTile * kTile * out_row; }
  // Of a lane: the points, and the outputs of tiles.
  int64_t work_floats() const { return kPoints * (in_point + out_point) + stages * stage_floats(); }
};

constexpr int64_t kLeastTiles = 4;  // worth a thread of their own

// Whether all threads multiply the same tiles, each at some of the points. Then the filter is read
// once, which pays where tiles are few and the filter is larger than an L2 cache. Measured with two
// threads on AVX2. Of many threads some would get a point more than others.
bool SharesPoints(const ConvProblem& p, int64_t tiles, int num_threads) {
  constexpr int64_t kNearFloats = 128 * 1024;
  const int64_t few = kPoints >= 3 * num_threads ? 9 : kLeastTiles;
  return tiles < few * num_threads && kPoints * FilterPoint(p) >= kNearFloats;
}

Tiling TilingOf(const ConvProblem& p, int num_threads) {
  constexpr int64_t kBlockFloats = 128 * 1024;  // half of an L2 cache of 1 MiB
  Tiling t;
  t.grid = GridOf(p);
  t.together = num_threads > 1 && SharesPoints(p, t.grid.count, num_threads);
  t.lanes = t.together ? 1 : std::clamp<int64_t>(t.grid.count / kLeastTiles, 1, num_threads);
  t.in_row = RoundUp(p.in_channels, kLanes);
  t.out_row = RoundUp(p.out_channels - p.group_out() + RoundUp(p.group_out(), kLanes), kLanes);
  const int64_t fitting = kBlockFloats / (kPoints * (t.in_row + t.out_row));
  const int64_t wanted =
      RoundUp(std::clamp<int64_t>(fitting, 2 * kGemmRows, 8 * kGemmRows), kGemmRows);
  const int64_t share = (t.grid.count + t.lanes - 1) / t.lanes;
  // One and a half blocks are one: half of a block would read the whole filter, too.
  t.block = 2 * share <= 3 * wanted ? share : wanted;
  t.stages = t.together ? std::min<int64_t>(num_threads, t.block) : 1;
  t.in_point = OddLines(t.block * t.in_row);
  t.out_point = OddLines(t.block * t.out_row);
  return t;
}

class Winograd {
 public:
  Winograd(const ConvProblem& problem, const ConvEpilogue& epilogue, const float* points,
           const float* bias, const Tiling& tiling)
      : p_(problem), epilogue_(epilogue), points_(points), bias_(bias), tiling_(tiling) {}

  // At most a block of tiles from tile `first` on.
  template <typename T>
  void RunBlock(int64_t first, int64_t tiles, const T* in, T* out, float* work) const {
    Transform(first, {0, tiles}, in, work);
    Multiply({0, kPoints}, tiles, work);
    GatherTiles(first, {0, tiles}, out, work, StageOf(work));
  }

  // The same by all threads together, each at a part of the filter.
  template <typename T>
  void RunBlockTogether(int num_threads, int64_t first, int64_t tiles, const T* in, T* out,
                        float* work) const {
    ParallelFor(num_threads, tiles, /*grain=*/1, [&](int64_t begin, int64_t end) {
      Transform(first, {begin, end}, in, work);
    });
    ParallelFor(num_threads, kPoints, /*grain=*/1, [&](int64_t begin, int64_t end) {
      Multiply({begin, end}, tiles, work);
    });
    const int64_t parts = std::min(tiling_.stages, tiles);
    ParallelFor(num_threads, parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
      float* const stage = StageOf(work) + begin * tiling_.stage_floats();
      GatherTiles(first, {tiles * begin / parts, tiles * end / parts}, out, work, stage);
    });
  }

 private:
  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
  };

  float* StageOf(float* work) const {
    return work + kPoints * (tiling_.in_point + tiling_.out_point);
  }

  template <typename T>
  void Transform(int64_t first, Range tiles, const T* in, float* work) const {
    for (int64_t i = tiles.begin; i < tiles.end; ++i) {
      TransformInputs(p_, PlaceOf(p_, tiling_.grid, first + i), in, work + i * tiling_.in_row,
                      tiling_.in_point);
    }
  }

  void Multiply(Range points, int64_t tiles, float* work) const {
    constexpr int64_t kCacheFloats = 256 * 1024;  // half of an L2 cache of 2 MiB
    const int64_t filter_point = FilterPoint(p_);
    const PanelsFrom from =
        kPoints * filter_point > kCacheFloats ? PanelsFrom::kMemoryInARow : PanelsFrom::kCache;
    float* const sums = work + kPoints * tiling_.in_point;
    for (int64_t point = points.begin; point < points.end; ++point) {
      // Whole vectors of columns, of which the filter's padding gives zeros; the next group writes
      // its sums over them.
      for (int64_t g = 0; g < p_.groups; ++g) {
        GemmPacked(tiles, p_.group_in(), RoundUp(p_.group_out(), kLanes),
                   work + point * tiling_.in_point + g * p_.group_in(), tiling_.in_row,
                   points_ + point * filter_point + g * GroupPoint(p_),
                   sums + point * tiling_.out_point + g * p_.group_out(), tiling_.out_row,
                   /*accumulate=*/false, from);
      }
    }
  }

  template <typename T>
  void GatherTiles(int64_t first, Range tiles, T* out, const float* work, float* stage) const {
    const float* const sums = work + kPoints * tiling_.in_point;
    for (int64_t i = tiles.begin; i < tiles.end; ++i) {
      Gather(PlaceOf(p_, tiling_.grid, first + i), sums + i * tiling_.out_row, out, stage);
    }
  }

  // Relu is one instruction; other activations take a pass of their own.
  bool needs_pass() const {
    const ActivationKind kind = epilogue_.activation.kind;
    return kind != ActivationKind::kNone && kind != ActivationKind::kRelu;
  }

  // Transforms the sums of a tile back and stores its outputs. Before an activation bfloat16 ones
  // are staged as float: `stage` has room for a dense tile.
  template <typename T>
  void Gather(const TilePlace& place, const float* sums, T* out, float* stage) const {
    const bool staged = needs_pass() && !std::is_same_v<T, float>;
    const TileOutputs tile = OutputsOf(p_, place);
    T* const first = out + tile.offset;
    for (int64_t c = 0; c < p_.out_channels; c += kLanes) {
      const int64_t count = std::min(kLanes, p_.out_channels - c);
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
      const Vector bias = bias_ != nullptr ? LoadPart(bias_ + c, count) : Vector{};
      for (int64_t i = 0; i < tile.rows; ++i) {
        Vector y[kTile];
        TransformBack(half[i], y);
        for (int64_t j = 0; j < tile.columns; ++j) {
          T* const to = first + i * tile.row_step + j * tile.column_step + c;
          const Vector value = Finish(y[j] + bias, to, count);
          if (staged) {
            StorePart(value, stage + (i * tile.columns + j) * p_.out_channels + c, count);
          } else {
            StorePart(value, to, count);
          }
        }
      }
    }
    if (needs_pass()) Activate(tile, first, stage);
  }

  template <typename T>
  Vector Finish(Vector value, const T* to, int64_t count) const {
    if (epilogue_.residual) value += LoadPart(to, count);
    if (epilogue_.activation.kind == ActivationKind::kRelu) {
      value = value < 0 ? Vector{} : value;
    }
    if (!needs_pass() && !epilogue_.affine.is_identity()) {
      value = epilogue_.affine.scale * value + epilogue_.affine.shift;
    }
    return value;
  }

  template <typename T>
  void Activate(const TileOutputs& tile, T* first, float* stage) const {
    // The outputs of a row lie apart where windows have a dilation.
    const bool apart = tile.column_step != p_.out_channels;
    const int64_t pieces = apart ? tile.columns : 1;
    const int64_t size = apart ? p_.out_channels : tile.columns * p_.out_channels;
    for (int64_t i = 0; i < tile.rows; ++i) {
      for (int64_t j = 0; j < pieces; ++j) {
        T* const piece = first + i * tile.row_step + j * tile.column_step;
        ActivatePiece(stage + (i * tile.columns + j) * p_.out_channels, size, piece);
      }
    }
  }

  void ActivatePiece(float* /*staged*/, int64_t size, float* out) const {
    ApplyActivation(epilogue_.activation, out, size);
    ApplyAffine(epilogue_.affine, out, size);
  }
  void ActivatePiece(float* staged, int64_t size, bfloat16* out) const {
    ActivatePiece(nullptr, size, staged);
    for (int64_t k = 0; k < size; k += kLanes) {
      const int64_t count = std::min(kLanes, size - k);
      StorePart(LoadPart(staged + k, count), out + k, count);
    }
  }

  const ConvProblem& p_;
  const ConvEpilogue& epilogue_;
  const float* const points_;
  const float* bias_;
  const Tiling& tiling_;
};

}  // namespace

bool WinogradPays(const ConvProblem& p, bool constant, DType dtype) {
  // Measured on AVX-512: products of fewer channels or tiles of a group take longer than direct
  // sums.
  constexpr int64_t kLeastOfGroup = 24;
  constexpr int64_t kLeastTilesOfGroup = 2 * kGemmRows;
  if (!Computes(p)) return false;
  if (p.groups > 1 && (p.group_in() < kLeastOfGroup || GridOf(p).count < kLeastTilesOfGroup)) {
    return false;
  }
  const double elements = static_cast<double>(p.in_channels) * static_cast<double>(p.group_out());
  const double filter_bytes = kTaps * elements * sizeof(float);
  const double point_bytes = kPoints * static_cast<double>(FilterPoint(p)) * sizeof(float);
  // Few output channels fill a small part of a panel.
  constexpr double kMostGrowth = 16;
  constexpr double kSmallBytes = 4e6;
  if (point_bytes > std::max(kMostGrowth * filter_bytes, kSmallBytes)) return false;
  const double winograd =
      TilesCost(p) + point_bytes * kByteCost + (constant ? 0 : kFilterElementCost * elements);
  return winograd < kWorthwhile * (DirectCost(p, dtype) + filter_bytes * kByteCost);
}

TapFilter ForwardFilter(const ConvProblem& problem, const ScaledFilter& filter) {
  return {filter.data, kTaps, problem.group_in() * kTaps, /*mirrored=*/false, filter.factors};
}

ConvProblem DataGradProblem(const ConvProblem& problem) {
  ConvProblem grad = problem;
  std::swap(grad.in_channels, grad.out_channels);
  for (int i = 0; i < problem.window.rank; ++i) {
    WindowAxis& axis = grad.window[i];
    std::swap(axis.in, axis.out);
    axis.pad_begin = axis.extent() - 1 - axis.pad_begin;
    axis.pad_end = axis.extent() - 1 - axis.pad_end;
  }
  return grad;
}

TapFilter DataGradFilter(const ConvProblem& problem, const float* data) {
  return {data, problem.group_in() * kTaps, kTaps, /*mirrored=*/true};
}

int64_t WinogradFilterSize(const ConvProblem& problem) { return kPoints * FilterPoint(problem); }

void TransformFilter(const ConvProblem& problem, const TapFilter& taps, int num_threads,
                     WinogradFilter& filter) {
  const int64_t size = WinogradFilterSize(problem);
  if (filter.points.size() != size) filter.points = AlignedArray<float>(size);
  TransformFilter(problem, taps, num_threads, filter.points.data());
}

void TransformFilter(const ConvProblem& problem, const TapFilter& taps, int num_threads,
                     float* points) {
  const int64_t point = FilterPoint(problem);
  const int64_t used = problem.groups * GroupPoint(problem);
  const int64_t group_in = problem.group_in();
  const int64_t vectors = GroupPoint(problem) / group_in / kLanes;  // of a group
  // The same bytes in every process, as files keep them.
  for (int i = 0; i < kPoints; ++i) std::fill_n(points + i * point + used, point - used, 0.0F);
  const auto transform = [&](int64_t group, int64_t vector, int64_t in_channel) {
    const int64_t first = vector * kLanes;
    const int64_t count = std::clamp<int64_t>(problem.group_out() - first, 0, kLanes);
    const float* const of_group =
        taps.data + group * group_in * problem.group_out() * kTaps + in_channel * taps.in_stride;
    Vector g[kWindow][kWindow] = {};
    for (int64_t lane = 0; lane < count; ++lane) {
      const float* const from = of_group + (first + lane) * taps.out_stride;
      const auto tap = [&](int t) { return from[taps.mirrored ? kTaps - 1 - t : t]; };
      if (taps.factors.empty()) {
        for (int t = 0; t < kTaps; ++t) g[t / kWindow][t % kWindow][lane] = tap(t);
      } else {
        const double factor = taps.factors[group * problem.group_out() + first + lane];
        for (int t = 0; t < kTaps; ++t) {
          g[t / kWindow][t % kWindow][lane] = static_cast<float>(tap(t) * factor);
        }
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
    float* const to = points + group * GroupPoint(problem) +
                      (panel * group_in + in_channel) * kPanel<float> + first % kPanel<float>;
    for (int i = 0; i < kPatch; ++i) {
      Vector u[kPatch];
      TransformTaps(half[i], u);
      for (int j = 0; j < kPatch; ++j) Store(u[j], to + (i * kPatch + j) * point);
    }
  };
  constexpr int64_t kGrain = 256;
  const int64_t of_group = vectors * group_in;
  ParallelFor(num_threads, problem.groups * of_group, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      transform(i / of_group, i % of_group / group_in, i % group_in);
    }
  });
}

size_t WinogradWorkBytes(const ConvProblem& problem, int num_threads) {
  const Tiling tiling = TilingOf(problem, num_threads);
  return static_cast<size_t>(tiling.lanes * tiling.work_floats()) * sizeof(float);
}

template <typename T>
void RunWinograd(const ConvProblem& problem, const ConvEpilogue& epilogue, const float* points,
                 const float* bias, const T* in, T* out, int num_threads, float* work) {
  const Tiling tiling = TilingOf(problem, num_threads);
  const Winograd winograd(problem, epilogue, points, bias, tiling);
  if (tiling.together) {
    for (int64_t first = 0; first < tiling.grid.count; first += tiling.block) {
      winograd.RunBlockTogether(num_threads, first,
                                std::min(tiling.block, tiling.grid.count - first), in, out, work);
    }
    return;
  }
  ParallelFor(num_threads, tiling.lanes, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; ++lane) {
      const int64_t last = tiling.grid.count * (lane + 1) / tiling.lanes;
      for (int64_t first = tiling.grid.count * lane / tiling.lanes; first < last;
           first += tiling.block) {
        winograd.RunBlock(first, std::min(tiling.block, last - first), in, out,
                          work + lane * tiling.work_floats());
      }
    }
  });
}

template void RunWinograd(const ConvProblem&, const ConvEpilogue&, const float*, const float*,
                          const float*, float*, int, float*);
template void RunWinograd(const ConvProblem&, const ConvEpilogue&, const float*, const float*,
                          const bfloat16*, bfloat16*, int, float*);

}  // namespace interp::nn
