// data_norm_grad: X@GRAD = Y@GRAD Scales [scale_w], and the gradients of scale_w and bias. What
// goes by the names BatchSize@GRAD, BatchSum@GRAD and BatchSquareSum@GRAD are no derivatives: they
// are the statistics of this batch, per row, that a trainer adds to the sums. With `slot_dim`, rows
// of a slot that shows nothing do not count; with scale_w, too, X@GRAD is 0 there, as in Paddle.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/norm/data_norm.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kScaleW = 1;
constexpr int kBias = 2;
constexpr int kScales = 3;
constexpr int kMeans = 4;
constexpr int kYGrad = 5;
constexpr int kXGrad = 0;
constexpr int kScaleWGrad = 4;
constexpr int kBiasGrad = 5;

const std::vector<SlotDef> kInputs = {{"X"},
                                      {"scale_w", kOptional},
                                      {"bias", kOptional},
                                      {"Scales"},
                                      {"Means"},
                                      {"Y@GRAD"},
                                      // Programs of Paddle 1.x list the sums, which are not read.
                                      {"BatchSize", kOptional | kNoNeedBuffer},
                                      {"BatchSum", kOptional | kNoNeedBuffer},
                                      {"BatchSquareSum", kOptional | kNoNeedBuffer}};

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<DataNormAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckDataNormRows(attrs, x));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kYGrad, "Y@GRAD", x));
  for (const int slot : {kScaleW, kBias, kScales, kMeans}) {
    if (!attrs.scale_and_shift && slot <= kBias) continue;
    const Tensor* vector = ctx.optional_input(slot);
    if (vector != nullptr && vector->numel() == x[1]) continue;
    return InvalidArgument("input '", kInputs[slot].name, "' is ",
                           vector == nullptr ? "absent" : DescribeType(*vector), ", expected [",
                           x[1], "]");
  }
  ctx.SetShape(kXGrad, ctx.input(kX).shape);
  for (int slot = kXGrad + 1; slot <= kBiasGrad; ++slot) ctx.SetShape(slot, {x[1]});
  return absl::OkStatus();
}

// Sums by column over the rows that count, in the order of the rows.
struct ColumnSums {
  std::vector<double> count, value, square, product, gradient;
  explicit ColumnSums(size_t n) : count(n), value(n), square(n), product(n), gradient(n) {}
};

template <typename T>
struct DataNormRows {
  const T* x;
  const T* means;
  const T* scales;
  const T* y_grad;
  int64_t rows, width, slot_dim;

  // Calls body(row, first column, last column) for what is shown.
  template <typename Body>
  void ForEachSlot(int64_t row, const Body& body) const {
    const int64_t step = slot_dim > 0 ? slot_dim : std::max<int64_t>(width, 1);
    for (int64_t i = 0; i < width; i += step) {
      if (slot_dim > 0 && ShowsNothing(x[row * width + i])) continue;
      body(i, i + step);
    }
  }

  ColumnSums Sums() const {
    ColumnSums sums(static_cast<size_t>(width));
    for (int64_t row = 0; row < rows; ++row) {
      ForEachSlot(row, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T value = x[row * width + i];
          const T centered = value - means[i];
          const T grad = y_grad[row * width + i];
          sums.count[i] += 1;
          sums.value[i] += value;
          sums.square[i] += centered * centered;
          sums.product[i] += grad * centered * scales[i];
          sums.gradient[i] += grad;
        }
      });
    }
    return sums;
  }

  void InputGradient(T* x_grad, int threads) const {
    ForEachRow(threads, [&](int64_t row) {
      for (int64_t i = 0; i < width; ++i) {
        x_grad[row * width + i] = y_grad[row * width + i] * scales[i];
      }
    });
  }
  void InputGradient(const T* weight, T* x_grad, int threads) const {
    ForEachRow(threads, [&](int64_t row) {
      T* const to = x_grad + row * width;
      const T* const grad = y_grad + row * width;
      std::fill_n(to, width, T{0});
      ForEachSlot(row, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = grad[i] * scales[i] * weight[i];
      });
    });
  }

 private:
  template <typename Body>
  void ForEachRow(int threads, const Body& body) const {
    const int64_t grain = GrainFor(width);
    ParallelFor(threads, rows, grain, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) body(row);
    });
  }
};

template <typename T>
void GiveStatistics(KernelContext& ctx, const ColumnSums& sums, const DataNormAttrs& attrs) {
  T* size = OutputOrNull<T>(ctx, 1);
  T* sum = OutputOrNull<T>(ctx, 2);
  T* square = OutputOrNull<T>(ctx, 3);
  for (size_t i = 0; i < sums.count.size(); ++i) {
    const double count = sums.count[i];
    const double share = attrs.slot_dim > 0 && count > 0 ? 1 / count : 1;
    if (size != nullptr) size[i] = static_cast<T>(count * share);
    if (sum != nullptr) sum[i] = static_cast<T>(sums.value[i] * share);
    if (square != nullptr) {
      square[i] = static_cast<T>(sums.square[i] * share + count * attrs.epsilon);
    }
  }
}

template <typename T>
void Give(const std::vector<double>& sums, Tensor* out) {
  if (out == nullptr) return;
  for (size_t i = 0; i < sums.size(); ++i) out->mutable_data<T>()[i] = static_cast<T>(sums[i]);
}

template <typename T>
absl::Status DataNormGrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<DataNormAttrs>();
  const Shape& x = ctx.input(kX).shape;
  const DataNormRows<T> task = {ctx.input(kX).data<T>(),
                                ctx.input(kMeans).data<T>(),
                                ctx.input(kScales).data<T>(),
                                ctx.input(kYGrad).data<T>(),
                                x[0],
                                x[1],
                                attrs.slot_dim};
  const ColumnSums sums = task.Sums();
  GiveStatistics<T>(ctx, sums, attrs);
  Give<T>(sums.product, ctx.optional_output(kScaleWGrad));
  Give<T>(sums.gradient, ctx.optional_output(kBiasGrad));
  if (Tensor* x_grad = ctx.optional_output(kXGrad)) {
    T* const to = x_grad->mutable_data<T>();
    if (attrs.scale_and_shift) {
      task.InputGradient(ctx.input(kScaleW).data<T>(), to, ctx.num_threads());
    } else {
      task.InputGradient(to, ctx.num_threads());
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "data_norm_grad",
    .inputs = kInputs,
    .outputs = {{"X@GRAD", kOptional},
                {"BatchSize@GRAD", kOptional},
                {"BatchSum@GRAD", kOptional},
                {"BatchSquareSum@GRAD", kOptional},
                {"scale_w@GRAD", kOptional},
                {"bias@GRAD", kOptional},
                // Named by programs, but written on Paddle's devices only.
                {"BatchSize", kOptional | kOfSubBlock},
                {"BatchSum", kOptional | kOfSubBlock},
                {"BatchSquareSum", kOptional | kOfSubBlock}},
    .parse = ParseAttrs<DataNormAttrs, ReadDataNormAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, DataNormGrad<float>}, {DType::kFloat64, DataNormGrad<double>}},
});

}  // namespace
}  // namespace interp
