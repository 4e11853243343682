#include "kernels/conv/conv_by_tap.h"

#include <algorithm>
#include <vector>

#include "kernels/conv/conv_direct.h"
#include "kernels/conv/conv_winograd.h"
#include "kernels/conv/conv_winograd_tiles.h"
#include "kernels/product/gemm.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

int64_t TapsOf(const ConvProblem& p) { return p.window[0].kernel * p.window[1].kernel; }

int64_t TapSize(const ConvProblem& p) { return PackedSize<float>(p.in_channels, p.out_channels); }

// The share of taps within the image.
double SeenShare(const WindowAxis& axis) {
  int64_t seen = 0;
  for (int64_t k = 0; k < axis.kernel; ++k) {
    const OutputRange outputs = ValidOutputs(axis, k);
    seen += std::max<int64_t>(outputs.end - outputs.begin, 0);
  }
  return static_cast<double>(seen) / static_cast<double>(axis.kernel * axis.out);
}

// A run over some rows of one image.
class Rows {
 public:
  Rows(const ConvProblem& problem, const float* packed, const float* in, float* out)
      : p_(problem), packed_(packed), in_(in), out_(out) {}

  // Adds the sums of output rows `rows` to the image.
  void Add(OutputRange rows) const {
    for (int64_t ky = 0; ky < p_.window[0].kernel; ++ky) {
      const OutputRange seen = ValidOutputs(p_.window[0], ky);
      const OutputRange some = {std::max(rows.begin, seen.begin), std::min(rows.end, seen.end)};
      if (some.begin >= some.end) continue;
      for (int64_t kx = 0; kx < p_.window[1].kernel; ++kx) AddTap(ky, kx, some);
    }
  }

 private:
  void AddTap(int64_t ky, int64_t kx, OutputRange rows) const {
    const WindowAxis& h = p_.window[0];
    const WindowAxis& w = p_.window[1];
    const OutputRange columns = ValidOutputs(w, kx);
    const int64_t count = columns.end - columns.begin;
    if (count <= 0) return;
    const float* const filter = packed_ + (ky * w.kernel + kx) * TapSize(p_);
    const int64_t x = columns.begin * w.stride + kx * w.dilation - w.pad_begin;
    // Whole rows that lie behind each other are one product.
    const bool joined = count == w.out && w.out == w.in && w.stride == 1 && h.stride == 1;
    const int64_t step = joined ? rows.end - rows.begin : 1;
    for (int64_t y = rows.begin; y < rows.end; y += step) {
      const int64_t from = y * h.stride + ky * h.dilation - h.pad_begin;
      GemmPacked(step * count, p_.in_channels, p_.out_channels,
                 in_ + (from * w.in + x) * p_.in_channels, w.stride * p_.in_channels, filter,
                 out_ + (y * w.out + columns.begin) * p_.out_channels, p_.out_channels,
                 /*accumulate=*/true,
                 y == rows.begin ? PanelsFrom::kMemoryInARow : PanelsFrom::kCache);
    }
  }

  const ConvProblem& p_;
  const float* const packed_;
  const float* const in_;
  float* const out_;
};

bool ConvByTapPays(const ConvProblem& p) {
  const WindowAxis& h = p.window[0];
  const WindowAxis& w = p.window[1];
  if (p.window.rank != 2 || p.groups != 1 || TapsOf(p) == 1) return false;
  if (p.out_channels < VectorOf<float>::kLanes || w.out < kGemmRows) return false;
  constexpr int64_t kLeastChannels = 16;
  constexpr double kWorthwhile = 0.8;
  const bool dilated = (h.kernel > 1 && h.dilation > 1) || (w.kernel > 1 && w.dilation > 1);
  const double share = SeenShare(h) * SeenShare(w);
  if (WinogradPays(p, /*constant=*/true) &&
      winograd::TilesCost(p) < share * winograd::DirectCost(p, DType::kFloat32)) {
    return false;
  }
  if (dilated && p.in_channels >= kLeastChannels && share < kWorthwhile) return true;
  // oneDNN's kernels for AVX2 slow down where neighbouring outputs see other pixels: to 45 to 62
  // GFLOP/s, of which these make 63 to 90. What is padded by more pixels than they compute at once,
  // they leave to a product of copied windows, at 23.
  constexpr int64_t kManyChannels = 64;
  constexpr int64_t kMostPadding = 3;
  if (kVectorBytes != 32) return false;
  return ((dilated || w.stride > 1) && p.in_channels >= kManyChannels) ||
         (w.pad_begin > kMostPadding && p.in_channels >= kLeastChannels);
}

int64_t ConvByTapFilterSize(const ConvProblem& problem) {
  return TapsOf(problem) * TapSize(problem);
}

void PackConvByTapFilter(const ConvProblem& problem, const ScaledFilter& filter, float* packed) {
  const int64_t taps = TapsOf(problem);
  const int64_t outputs = problem.out_channels;
  const int64_t inputs = problem.in_channels;
  std::vector<float> matrix(static_cast<size_t>(inputs * outputs));
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t i = 0; i < inputs; ++i) {
        matrix[o * inputs + i] = filter.Scaled(filter.data[(o * inputs + i) * taps + t], o);
      }
    }
    PackMatrix(inputs, outputs, matrix.data(), /*row_stride=*/1, /*col_stride=*/inputs,
               packed + t * TapSize(problem));
  }
}

void RunConvByTap(const ConvProblem& problem, const ConvEpilogue& epilogue, const float* packed,
                  const float* bias, const float* in, float* out, int num_threads,
                  float* /*work*/) {
  const WindowAxis& h = problem.window[0];
  const WindowAxis& w = problem.window[1];
  const int64_t row = w.out * problem.out_channels;
  ParallelForImageRows(
      num_threads, problem.batch, h.out, [&](int64_t image, int64_t first, int64_t last) {
        float* const to = out + image * h.out * row;
        float* const part = to + first * row;
        BeginSums(epilogue, bias, (last - first) * w.out, problem.out_channels, part);
        const Rows some(problem, packed, in + image * h.in * w.in * problem.in_channels, to);
        some.Add({first, last});
        ApplyActivation(epilogue.activation, part, (last - first) * row);
        ApplyAffine(epilogue.affine, part, (last - first) * row);
      });
}

}  // namespace

constexpr ConvMethod kConvByTap = {
    .name = "product by tap",
    .key = 5,
    .pays = ConvByTapPays,
    .filter_size = ConvByTapFilterSize,
    .pack = PackConvByTapFilter,
    .run = RunConvByTap,
};

}  // namespace interp::nn
