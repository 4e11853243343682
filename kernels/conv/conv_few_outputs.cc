#include "kernels/conv/conv_few_outputs.h"

#include <algorithm>
#include <vector>

#include "kernels/product/gemm.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int64_t kMostOutputs = 8;

int64_t TapsOf(const ConvProblem& p) { return p.window[0].kernel * p.window[1].kernel; }

// Columns of the product: taps and output channels, then whole vectors of them.
int64_t ColumnsOf(const ConvProblem& p) {
  constexpr int64_t kLanes = VectorOf<float>::kLanes;
  return (TapsOf(p) * p.out_channels + kLanes - 1) / kLanes * kLanes;
}

// Floats of the taps of a row; a vector may be read from the last of them.
int64_t RowFloats(const ConvProblem& p) { return p.window[1].in * ColumnsOf(p) + kMostOutputs; }

// The lanes of a sum are output channels; those that there are not hold what lies beside.
template <int kLanes>
struct OutputLanes {
  typedef float type
      __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float)), may_alias));
};

// A run over some rows of one image.
class Rows {
 public:
  Rows(const ConvProblem& problem, const float* packed, float* taps)
      : p_(problem), packed_(packed), taps_(taps), columns_(ColumnsOf(problem)) {}

  // Adds the sums of output rows [first, last) to `out`, the whole image, from `in`.
  void Add(const float* in, int64_t first, int64_t last, float* out) const {
    const WindowAxis& h = p_.window[0];
    const int64_t row_floats = p_.window[1].in * p_.in_channels;
    const int64_t begin = std::max<int64_t>(first * h.stride - h.pad_begin, 0);
    const int64_t end = std::min(h.in, (last - 1) * h.stride - h.pad_begin + h.extent());
    for (int64_t y = begin; y < end; ++y) {
      GemmPacked(p_.window[1].in, p_.in_channels, columns_, in + y * row_floats, p_.in_channels,
                 packed_, taps_, columns_, /*accumulate=*/false);
      for (int64_t ky = 0; ky < h.kernel; ++ky) {
        const int64_t at = y + h.pad_begin - ky * h.dilation;
        if (at < first * h.stride || at >= last * h.stride || at % h.stride != 0) continue;
        AddRow(ky, out + at / h.stride * p_.window[1].out * p_.out_channels);
      }
    }
  }

 private:
  // What kernel row `ky` adds to an output row.
  void AddRow(int64_t ky, float* out) const {
    p_.out_channels <= 4 ? AddPixels<4>(ky, out) : AddPixels<kMostOutputs>(ky, out);
  }

  template <int kLanes>
  void AddPixels(int64_t ky, float* out) const {
    using V = typename OutputLanes<kLanes>::type;
    const WindowAxis& w = p_.window[1];
    const float* const row = taps_ + ky * w.kernel * p_.out_channels;
    const int64_t step = w.dilation * columns_ + p_.out_channels;
    for (int64_t x = 0; x < w.out; ++x, out += p_.out_channels) {
      const int64_t at = x * w.stride - w.pad_begin;
      const int64_t begin = at < 0 ? (-at + w.dilation - 1) / w.dilation : 0;
      const int64_t end = std::min(w.kernel, (w.in - at + w.dilation - 1) / w.dilation);
      V sum = {};
      for (int64_t kx = begin; kx < end; ++kx) {
        sum += *reinterpret_cast<const V*>(row + (at * columns_ + kx * step));
      }
      for (int64_t c = 0; c < p_.out_channels; ++c) out[c] += sum[c];
    }
  }

  const ConvProblem& p_;
  const float* const packed_;
  float* const taps_;
  const int64_t columns_;
};

int64_t LanesOf(const ConvProblem& p, int num_threads) {
  return std::min<int64_t>(num_threads, p.batch * p.window[0].out);
}

bool ConvFewOutputsPays(const ConvProblem& p) {
  if (p.window.rank != 2 || p.groups != 1 || p.out_channels > kMostOutputs) return false;
  if (p.window[0].stride != 1 || p.window[1].stride != 1) return false;
  // A direct kernel computes a vector of output channels. 9x9 64>3 at 64x64 with AVX-512, and at
  // 128x128 with AVX2, took a third of the time.
  constexpr int64_t kLeastChannels = 16;
  const int64_t direct = TapsOf(p) * VectorOf<float>::kLanes;
  return kVectorBytes >= 32 && TapsOf(p) > 1 && p.in_channels >= kLeastChannels &&
         2 * ColumnsOf(p) <= direct;
}

int64_t ConvFewOutputsFilterSize(const ConvProblem& problem) {
  return PackedSize<float>(problem.in_channels, ColumnsOf(problem));
}

void PackConvFewOutputsFilter(const ConvProblem& problem, const ScaledFilter& filter,
                              float* packed) {
  const int64_t columns = ColumnsOf(problem);
  const int64_t taps = TapsOf(problem);
  std::vector<float> matrix(static_cast<size_t>(problem.in_channels * columns));
  const float* from = filter.data;
  for (int64_t o = 0; o < problem.out_channels; ++o) {
    for (int64_t i = 0; i < problem.in_channels; ++i) {
      for (int64_t t = 0; t < taps; ++t) {
        matrix[i * columns + t * problem.out_channels + o] = filter.Scaled(*from++, o);
      }
    }
  }
  PackMatrix(problem.in_channels, columns, matrix.data(), columns, int64_t{1}, packed);
}

size_t ConvFewOutputsWorkBytes(const ConvProblem& problem, int num_threads) {
  return static_cast<size_t>(LanesOf(problem, num_threads) * RowFloats(problem)) * sizeof(float);
}

void RunConvFewOutputs(const ConvProblem& problem, const ConvEpilogue& epilogue,
                       const float* packed, const float* bias, const float* in, float* out,
                       int num_threads, float* work) {
  const WindowAxis& h = problem.window[0];
  const WindowAxis& w = problem.window[1];
  const int64_t lanes = LanesOf(problem, num_threads);
  const int64_t rows = problem.batch * h.out;
  ParallelFor(num_threads, lanes, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; ++lane) {
      const Rows some(problem, packed, work + lane * RowFloats(problem));
      // A lane may begin and end within images.
      const int64_t last = rows * (lane + 1) / lanes;
      for (int64_t row = rows * lane / lanes; row < last;) {
        const int64_t image = row / h.out;
        const int64_t first = row - image * h.out;
        const int64_t count = std::min(h.out - first, last - row);
        float* const to = out + image * h.out * w.out * problem.out_channels;
        float* const part = to + first * w.out * problem.out_channels;
        const int64_t size = count * w.out * problem.out_channels;
        BeginSums(epilogue, bias, count * w.out, problem.out_channels, part);
        some.Add(in + image * h.in * w.in * problem.in_channels, first, first + count, to);
        ApplyActivation(epilogue.activation, part, size);
        ApplyAffine(epilogue.affine, part, size);
        row += count;
      }
    }
  });
}

}  // namespace

constexpr ConvMethod kConvFewOutputs = {
    .name = "product of taps",
    .key = 4,
    .pays = ConvFewOutputsPays,
    .filter_size = ConvFewOutputsFilterSize,
    .pack = PackConvFewOutputsFilter,
    .work_bytes = ConvFewOutputsWorkBytes,
    .run = RunConvFewOutputs,
};

}  // namespace interp::nn
