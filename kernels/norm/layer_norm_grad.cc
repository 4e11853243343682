// layer_norm_grad. By row, with x' = (X - Mean) / sqrt(Variance + epsilon) and g = Y@GRAD Scale:
//   X@GRAD = (g - mean of g - x' mean of (g x')) / sqrt(Variance + epsilon)
//   Scale@GRAD = sum over rows of Y@GRAD x',   Bias@GRAD = sum over rows of Y@GRAD
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/op_def.h"
#include "kernels/norm/layer_norm.h"
#include "kernels/product/gemm.h"
#include "kernels/product/row_ops.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kBias = 2;
constexpr int kMean = 3;
constexpr int kVariance = 4;
constexpr int kYGrad = 5;
constexpr int kXGrad = 0;
constexpr int kScaleGrad = 1;
constexpr int kBiasGrad = 2;

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kScaleGrad, StatisticsDType(ctx.kernel()));
  ctx.Set(kBiasGrad, StatisticsDType(ctx.kernel()));
}

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckLayerNorm(ctx));
  const Shape& x = ctx.input(kX).shape;
  const int begin = ctx.attrs<LayerNormAttrs>().FirstDim(x);
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kYGrad, "Y@GRAD", x));
  const DType dtype = StatisticsDType(ctx.input(kX).dtype);
  for (const int slot : {kMean, kVariance}) {
    const Tensor& rows = ctx.input(slot);
    if (rows.numel() == x.numel(0, begin) && rows.dtype == dtype) continue;
    return InvalidArgument("input '", slot == kMean ? "Mean" : "Variance", "' is ",
                           DescribeType(rows), ", expected ", x.numel(0, begin), " elements of ",
                           Name(dtype), " for 'X' ", ToString(x));
  }
  ctx.ShareShape(kX, kXGrad);
  for (const auto& [of, grad] : {std::pair(kScale, kScaleGrad), std::pair(kBias, kBiasGrad)}) {
    if (ctx.has_input(of)) {
      ctx.ShareShape(of, grad);
    } else {
      ctx.SetShape(grad, {x.numel(begin, x.rank())});
    }
  }
  return absl::OkStatus();
}

template <typename T>
struct LayerNormGradRun {
  using C = ComputeType<T>;
  int64_t n;  // columns
  C epsilon;
  const T* x;
  const C* scale;  // null: 1
  const C* mean;
  const C* variance;
  const T* y_grad;
  T* x_grad;  // null: not wanted

  // Rows [begin, end), adding to the sums of their columns; null: not wanted. `memory` is scratch
  // of kScratchRows rows.
  void Rows(int64_t begin, int64_t end, C* memory, double* scale_sums, double* bias_sums) const {
    // Few rows are summed in C before they are added: half as much to load and store.
    constexpr int64_t kFewRows = 16;
    C* const scale_part = memory;
    C* const bias_part = memory + n;
    for (int64_t r = begin; r < end; r += kFewRows) {
      std::fill_n(scale_part, 2 * n, C{0});
      for (int64_t i = r; i < std::min(end, r + kFewRows); ++i) {
        Row(i, memory + 2 * n, scale_sums == nullptr ? nullptr : scale_part,
            bias_sums == nullptr ? nullptr : bias_part);
      }
      for (int64_t i = 0; scale_sums != nullptr && i < n; ++i) scale_sums[i] += scale_part[i];
      for (int64_t i = 0; bias_sums != nullptr && i < n; ++i) bias_sums[i] += bias_part[i];
    }
  }

  // One row; `memory` is scratch of two.
  void Row(int64_t r, C* memory, C* scale_sums, C* bias_sums) const {
    C* const normal = memory;
    C* const scaled = memory + n;
    const C factor = C{1} / std::sqrt(variance[r] + epsilon);
    const C center = mean[r];
    const T* const g = y_grad + r * n;
    for (int64_t i = 0; i < n; ++i) normal[i] = (x[r * n + i] - center) * factor;
    for (int64_t i = 0; i < n; ++i) scaled[i] = scale == nullptr ? C{g[i]} : g[i] * scale[i];
    for (int64_t i = 0; scale_sums != nullptr && i < n; ++i) scale_sums[i] += g[i] * normal[i];
    for (int64_t i = 0; bias_sums != nullptr && i < n; ++i) bias_sums[i] += g[i];
    if (x_grad == nullptr) return;
    const C shift = RowSum(scaled, n) / static_cast<C>(n);
    const C slope = Dot(scaled, normal, n) / static_cast<C>(n);
    T* const out = x_grad + r * n;
    for (int64_t i = 0; i < n; ++i) out[i] = (scaled[i] - shift - normal[i] * slope) * factor;
  }
};

constexpr int64_t kScratchRows = 4;

// Rows are cut into parts by their number alone, whose sums are added in order.
constexpr int64_t kLeastPart = 16;
constexpr int64_t kMaxParts = 64;

// Adds the sums of all parts to those of the first.
void AddParts(int64_t parts, int64_t count, double* sums) {
  for (int64_t part = 1; part < parts; ++part) {
    const double* const more = sums + part * count;
    for (int64_t i = 0; i < count; ++i) sums[i] += more[i];
  }
}

template <typename T>
void Store(const double* sums, int64_t n, Tensor* out) {
  if (out == nullptr) return;
  T* const to = out->mutable_data<T>();
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(sums[i]);
}

template <typename T>
absl::Status LayerNormGrad(KernelContext& ctx) {
  using C = ComputeType<T>;
  const auto& attrs = ctx.attrs<LayerNormAttrs>();
  const Tensor& x = ctx.input(kX);
  const int first = attrs.FirstDim(x.shape);
  const int64_t rows = x.shape.numel(0, first);
  const int64_t n = x.shape.numel(first, x.shape.rank());
  Tensor* scale_grad = ctx.optional_output(kScaleGrad);
  Tensor* bias_grad = ctx.optional_output(kBiasGrad);
  const LayerNormGradRun<T> run = {n,
                                   static_cast<C>(attrs.epsilon),
                                   x.data<T>(),
                                   InputOrNull<C>(ctx, kScale),
                                   ctx.input(kMean).data<C>(),
                                   ctx.input(kVariance).data<C>(),
                                   ctx.input(kYGrad).data<T>(),
                                   OutputOrNull<T>(ctx, kXGrad)};
  const int64_t parts = std::clamp<int64_t>(rows / kLeastPart, 1, kMaxParts);
  INTERP_ASSIGN_OR_RETURN(const Workspace sum_memory,
                          ctx.workspace(static_cast<size_t>(parts * 2 * n) * sizeof(double)));
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                          ctx.workspace(static_cast<size_t>(parts * kScratchRows * n) * sizeof(C)));
  double* const sums = sum_memory.data<double>();
  const int64_t grain = GrainFor(4 * (rows * n / parts));
  ParallelFor(ctx.num_threads(), parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      double* const to = sums + part * 2 * n;
      std::fill_n(to, 2 * n, 0.0);
      run.Rows(rows * part / parts, rows * (part + 1) / parts,
               scratch.data<C>() + part * kScratchRows * n, scale_grad == nullptr ? nullptr : to,
               bias_grad == nullptr ? nullptr : to + n);
    }
  });
  AddParts(parts, 2 * n, sums);
  Store<C>(sums, n, scale_grad);
  Store<C>(sums + n, n, bias_grad);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "layer_norm_grad",
    .inputs = {{"X"},
               {"Scale", kOptional | kAnyDType},
               {"Bias", kOptional | kNoNeedBuffer | kAnyDType},
               {"Mean", kAnyDType},
               {"Variance", kAnyDType},
               {"Y@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Scale@GRAD", kOptional}, {"Bias@GRAD", kOptional}},
    .parse = ParseAttrs<LayerNormAttrs, ReadLayerNorm>,
    .infer_dtype = InferDTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, LayerNormGrad<float>},
                {DType::kFloat64, LayerNormGrad<double>},
                {DType::kBFloat16, LayerNormGrad<bfloat16>}},
});

}  // namespace
}  // namespace interp::nn
