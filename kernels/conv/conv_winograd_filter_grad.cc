#include "kernels/conv/conv_winograd_filter_grad.h"

#include <algorithm>

#include "kernels/conv/conv_winograd_tiles.h"
#include "kernels/product/gemm.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

using namespace winograd;  // NOLINT(google-build-using-namespace)

// Working memory: for a block of tiles the points of inputs (tiles by channels) and of gradients
// (packed panels), and the sums at each point (input by output channels).
struct Layout {
  TileGrid grid;
  int64_t block = 0;   // tiles that are multiplied at once
  int64_t in_row = 0;  // floats of a tile at one point
  int64_t in_point = 0;
  int64_t grad_point = 0;
  int64_t sum_row = 0;
  int64_t sum_point = 0;

  int64_t work_floats() const { return kPoints * (in_point + grad_point + sum_point); }
};

Layout LayoutOf(const ConvProblem& p) {
  constexpr int64_t kBlockFloats = 256 * 1024;  // an L2 cache of 1 MiB
  constexpr int64_t kLeastTiles = 64;           // per reading and writing of the sums
  Layout l;
  l.grid = GridOf(p);
  l.in_row = RoundUp(p.in_channels, kLanes);
  l.sum_row = RoundUp(p.out_channels, kLanes);
  const int64_t fitting = kBlockFloats / (kPoints * (l.in_row + l.sum_row));
  l.block = std::min(std::clamp(fitting, kLeastTiles, kGemmDepth), l.grid.count);
  l.in_point = OddLines(l.block * l.in_row);
  l.grad_point = OddLines(PackedSize<float>(l.block, p.out_channels));
  l.sum_point = OddLines(p.in_channels * l.sum_row);
  return l;
}

// Transforms the gradients of a tile's outputs and stores row `row` of `rows` of the panels of
// every point.
void TransformOutputGrads(const ConvProblem& p, const TilePlace& place, const float* out_grad,
                          int64_t row, int64_t rows, float* points, int64_t step) {
  const TileOutputs tile = OutputsOf(p, place);
  for (int64_t c = 0; c < p.out_channels; c += kLanes) {
    const int64_t count = std::min(kLanes, p.out_channels - c);
    Vector half[kPatch][kTile];
    for (int64_t j = 0; j < kTile; ++j) {
      Vector y[kTile] = {};
      Vector m[kPatch];
      for (int64_t i = 0; i < tile.rows && j < tile.columns; ++i) {
        y[i] =
            LoadPart(out_grad + tile.offset + i * tile.row_step + j * tile.column_step + c, count);
      }
      TransformOutputs(y, m);
      for (int i = 0; i < kPatch; ++i) half[i][j] = m[i];
    }
    const int64_t panel = c / kPanel<float>;
    float* const to = points + (panel * rows + row) * kPanel<float> + c % kPanel<float>;
    for (int i = 0; i < kPatch; ++i) {
      Vector m[kPatch];
      TransformOutputs(half[i], m);
      for (int j = 0; j < kPatch; ++j) Store(m[j], to + (i * kPatch + j) * step);
    }
  }
}

// Transforms the sums of one input channel to taps.
void TransformSums(const ConvProblem& p, int64_t in_channel, const float* sums, int64_t step,
                   float* filter_grad) {
  for (int64_t c = 0; c < p.out_channels; c += kLanes) {
    const int64_t count = std::min(kLanes, p.out_channels - c);
    Vector half[kWindow][kPatch];
    for (int j = 0; j < kPatch; ++j) {
      Vector u[kPatch];
      Vector g[kWindow];
      for (int i = 0; i < kPatch; ++i) u[i] = Load(sums + (i * kPatch + j) * step + c);
      TransformTapsBack(u, g);
      for (int i = 0; i < kWindow; ++i) half[i][j] = g[i];
    }
    for (int64_t i = 0; i < kWindow; ++i) {
      Vector g[kWindow];
      TransformTapsBack(half[i], g);
      for (int64_t lane = 0; lane < count; ++lane) {
        float* const taps = filter_grad + ((c + lane) * p.in_channels + in_channel) * kTaps;
        for (int j = 0; j < kWindow; ++j) taps[i * kWindow + j] = g[j][lane];
      }
    }
  }
}

}  // namespace

bool WinogradFilterGradPays(const ConvProblem& p) {
  if (!Computes(p) || p.groups != 1 || GridOf(p).count == 0) return false;
  const Layout l = LayoutOf(p);
  const auto blocks = static_cast<double>((l.grid.count + l.block - 1) / l.block);
  const double sum_bytes = kPoints * static_cast<double>(l.sum_point) * sizeof(float);
  const double elements = static_cast<double>(p.in_channels) * static_cast<double>(p.out_channels);
  const double winograd =
      TilesCost(p) + blocks * 2 * sum_bytes * kByteCost + kFilterElementCost * elements;
  return winograd < kWorthwhile * DirectCost(p, DType::kFloat32);
}

size_t WinogradFilterGradWorkBytes(const ConvProblem& problem) {
  return static_cast<size_t>(LayoutOf(problem).work_floats()) * sizeof(float);
}

void WinogradFilterGrad(const ConvProblem& problem, const float* in, const float* out_grad,
                        float* filter_grad, int num_threads, float* work) {
  const Layout l = LayoutOf(problem);
  float* const ins = work;
  float* const grads = ins + kPoints * l.in_point;
  float* const sums = grads + kPoints * l.grad_point;
  for (int64_t first = 0; first < l.grid.count; first += l.block) {
    const int64_t tiles = std::min(l.block, l.grid.count - first);
    constexpr int64_t kTileGrain = 8;
    ParallelFor(num_threads, tiles, kTileGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const TilePlace place = PlaceOf(problem, l.grid, first + i);
        TransformInputs(problem, place, in, ins + i * l.in_row, l.in_point);
        TransformOutputGrads(problem, place, out_grad, i, tiles, grads, l.grad_point);
      }
    });
    ParallelFor(num_threads, kPoints, /*grain=*/1, [&](int64_t begin, int64_t end) {
      for (int64_t point = begin; point < end; ++point) {
        GemmPackedTransposed(problem.in_channels, tiles, l.sum_row, ins + point * l.in_point,
                             l.in_row, grads + point * l.grad_point, sums + point * l.sum_point,
                             l.sum_row, /*accumulate=*/first > 0);
      }
    });
  }
  constexpr int64_t kChannelGrain = 8;
  ParallelFor(num_threads, problem.in_channels, kChannelGrain, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel) {
      TransformSums(problem, channel, sums + channel * l.sum_row, l.sum_point, filter_grad);
    }
  });
}

}  // namespace interp::nn
