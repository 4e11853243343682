// rms_norm: out = s / sqrt(mean of s^2 + epsilon) * norm_weight + norm_bias over the dimensions
// from begin_norm_axis on. s is x or, where there is a residual, residual_out = x + bias +
// residual.
#include <algorithm>
#include <cmath>

#include "core/op_def.h"
#include "kernels/product/row_ops.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kBias = 1;
constexpr int kResidual = 2;
constexpr int kNormWeight = 3;
constexpr int kNormBias = 4;
constexpr int kOut = 0;
constexpr int kResidualOut = 1;

struct Attrs {
  float epsilon = 1e-5F;
  int begin = 1;  // -1, which passes write: the last dim, whatever the rank
  bool keeps_lod = true;

  // The first dim that is normalised.
  int FirstDim(const Shape& x) const { return begin < 0 ? x.rank() + begin : begin; }
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {reader.Float("epsilon", 1e-5F), reader.Int("begin_norm_axis", 1),
                       reader.Bool("keeps_lod", true)};
  if (attrs.begin < 1 && attrs.begin != -1) {
    reader.Fail(absl::StrCat("attribute 'begin_norm_axis' is ", attrs.begin));
  }
  if (reader.Float("quant_scale", -1) > 0) {
    reader.Fail("attribute 'quant_scale' is set, which only Paddle's kernels for GPUs support");
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const int begin = ctx.attrs<Attrs>().FirstDim(x);
  if (begin < 0 || begin >= x.rank()) {
    return InvalidArgument("attribute 'begin_norm_axis' is ", begin, " for input 'x' ",
                           ToString(x));
  }
  const int64_t columns = x.numel(begin, x.rank());
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, kBias, "bias", columns));
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, kNormWeight, "norm_weight", columns));
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, kNormBias, "norm_bias", columns));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kResidual, "residual", x));
  ctx.ShareShape(kX, kOut);
  if (!ctx.attrs<Attrs>().keeps_lod) ctx.output(kOut).lod = {};
  ctx.SetShape(kResidualOut, ctx.has_input(kResidual) ? x : Shape{0});
  return absl::OkStatus();
}

template <typename T>
absl::Status RmsNorm(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  const Shape& shape = ctx.input(kX).shape;
  if (shape.numel() == 0) return absl::OkStatus();
  const int64_t n = shape.numel(attrs.FirstDim(shape), shape.rank());
  const T epsilon = static_cast<T>(attrs.epsilon);
  const T* const x = ctx.input(kX).data<T>();
  const T* const residual = InputOrNull<T>(ctx, kResidual);
  const T* const bias = InputOrNull<T>(ctx, kBias);
  const T* const weight = ctx.input(kNormWeight).data<T>();
  const T* const norm_bias = InputOrNull<T>(ctx, kNormBias);
  T* const out = ctx.output(kOut).mutable_data<T>();
  T* const sums = residual == nullptr ? nullptr : OutputOrNull<T>(ctx, kResidualOut);
  const int64_t grain = GrainFor(4 * n);
  ParallelFor(ctx.num_threads(), shape.numel() / n, grain, [=](int64_t begin, int64_t end) {
    for (int64_t at = begin * n; at < end * n; at += n) {
      T* const to = out + at;
      for (int64_t i = 0; i < n; ++i) {
        const T added = residual == nullptr ? T{0} : residual[at + i] + (bias ? bias[i] : T{0});
        to[i] = x[at + i] + added;
      }
      if (sums != nullptr) std::copy_n(to, n, sums + at);
      const T square = RowSumSquares(to, n, T{0}) / static_cast<T>(n);
      const T factor = T{1} / std::sqrt(square + epsilon);
      for (int64_t i = 0; i < n; ++i) {
        to[i] = to[i] * factor * weight[i] + (norm_bias ? norm_bias[i] : T{0});
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "rms_norm",
    .inputs = {{"x"},
               {"bias", kOptional},
               {"residual", kOptional},
               {"norm_weight"},
               {"norm_bias", kOptional}},
    .outputs = {{"out"}, {"residual_out", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, RmsNorm<float>}, {DType::kFloat64, RmsNorm<double>}},
});

}  // namespace
}  // namespace interp::nn
