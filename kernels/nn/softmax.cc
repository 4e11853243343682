// softmax: Out = e^s / sum e^s and log_softmax: Out = s - log(sum e^s) along an axis, with
// s = max(X - max X, -64): Paddle's CPU kernels clip there.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/nn/row_ops.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/vector_math.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct SoftmaxAttrs {
  int64_t axis = -1;
};

SoftmaxAttrs ReadSoftmax(AttrReader& reader) { return {reader.Int("axis", -1)}; }

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const int64_t axis = ctx.attrs<SoftmaxAttrs>().axis;
  if (!NormalizeAxis(axis, std::max(x.rank(), 1)).has_value()) {
    return InvalidArgument("attribute 'axis' is ", axis, " for input 'X' ", ToString(x));
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

// The tensor in memory order around the axis: outer x length x inner.
struct Slices {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

Slices SliceAlong(const Tensor& x, int64_t axis) {
  Slices slices;
  const int rank = x.shape.rank();
  if (rank == 0) return slices;
  const int logical = *NormalizeAxis(axis, rank);
  bool after = false;
  for (int i = 0; i < rank; ++i) {
    int dim = i;  // of the shape, at position i in memory
    if (x.layout == Layout::kChannelsLast && i > 0) dim = i == rank - 1 ? 1 : i + 1;
    if (dim == logical) {
      slices.length = x.shape[dim];
      after = true;
    } else {
      (after ? slices.inner : slices.outer) *= x.shape[dim];
    }
  }
  return slices;
}

template <typename T>
constexpr T kLowest = T{-64};

template <typename T, bool kLog>
void SoftmaxRow(const T* x, int64_t n, T* y) {
  const T max = RowMax(x, n);
  for (int64_t i = 0; i < n; ++i) {
    const T shifted = x[i] - max;
    y[i] = shifted < kLowest<T> ? kLowest<T> : shifted;
  }
  if constexpr (kLog) {
    // The sum in blocks, as the exponentials themselves are not kept.
    constexpr int64_t kBlock = 256;
    T block[kBlock];
    T sum = 0;
    for (int64_t begin = 0; begin < n; begin += kBlock) {
      const int64_t count = std::min(kBlock, n - begin);
      for (int64_t i = 0; i < count; ++i) block[i] = Exp(y[begin + i]);
      sum += RowSum(block, count);
    }
    const T log = Log(sum);
    for (int64_t i = 0; i < n; ++i) y[i] -= log;
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = Exp(y[i]);
    const T factor = T{1} / RowSum(y, n);
    for (int64_t i = 0; i < n; ++i) y[i] *= factor;
  }
}

// Columns [begin, end) of a length x inner matrix; vectors run along the columns.
template <typename T, bool kLog>
void SoftmaxColumns(const T* x, int64_t length, int64_t inner, int64_t begin, int64_t end, T* y) {
  constexpr int64_t kBlock = 64;
  T max[kBlock];
  T sum[kBlock];
  for (int64_t j = begin; j < end; j += kBlock) {
    const int64_t width = std::min(kBlock, end - j);
    std::copy_n(x + j, width, max);
    std::fill_n(sum, width, T{0});
    for (int64_t k = 1; k < length; ++k) {
      const T* row = x + k * inner + j;
      for (int64_t i = 0; i < width; ++i) max[i] = row[i] > max[i] ? row[i] : max[i];
    }
    for (int64_t k = 0; k < length; ++k) {
      const T* from = x + k * inner + j;
      T* to = y + k * inner + j;
      for (int64_t i = 0; i < width; ++i) {
        const T shifted = from[i] - max[i] < kLowest<T> ? kLowest<T> : from[i] - max[i];
        const T e = Exp(shifted);
        to[i] = kLog ? shifted : e;
        sum[i] += e;
      }
    }
    for (int64_t i = 0; i < width; ++i) sum[i] = kLog ? Log(sum[i]) : T{1} / sum[i];
    for (int64_t k = 0; k < length; ++k) {
      T* to = y + k * inner + j;
      for (int64_t i = 0; i < width; ++i) to[i] = kLog ? to[i] - sum[i] : to[i] * sum[i];
    }
  }
}

template <typename T, bool kLog>
absl::Status Softmax(KernelContext& ctx) {
  const Tensor& x_tensor = ctx.input(kX);
  if (x_tensor.numel() == 0) return absl::OkStatus();
  const Slices slices = SliceAlong(x_tensor, ctx.attrs<SoftmaxAttrs>().axis);
  const T* x = x_tensor.data<T>();
  T* y = ctx.output(kOut).mutable_data<T>();
  constexpr int64_t kGrain = 4 * 1024;  // elements: an exponential costs more than a copy
  const int64_t grain = kGrain / slices.length + 1;
  const int64_t block = slices.length * slices.inner;
  ParallelFor(ctx.num_threads(), slices.outer * slices.inner, grain,
              [=](int64_t begin, int64_t end) {
                while (begin < end) {
                  const int64_t o = begin / slices.inner;
                  const int64_t stop = std::min(end, (o + 1) * slices.inner);
                  if (slices.inner == 1) {
                    SoftmaxRow<T, kLog>(x + o * block, slices.length, y + o * block);
                  } else {
                    SoftmaxColumns<T, kLog>(x + o * block, slices.length, slices.inner,
                                            begin - o * slices.inner, stop - o * slices.inner,
                                            y + o * block);
                  }
                  begin = stop;
                }
              });
  return absl::OkStatus();
}

template <bool kLog>
OpDef SoftmaxDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<SoftmaxAttrs, ReadSoftmax>,
      .infer = Infer,
      .kernels = {{DType::kFloat32, Softmax<float, kLog>},
                  {DType::kFloat64, Softmax<double, kLog>}},
      .layout = LayoutRule::kFollows,
      .inplace = {{kX, kOut}},
  };
}

INTERP_REGISTER_OP(SoftmaxDef<false>("softmax"));
INTERP_REGISTER_OP(SoftmaxDef<true>("log_softmax"));

}  // namespace
}  // namespace interp::nn
