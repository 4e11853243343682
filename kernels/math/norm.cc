// norm: Norm = sqrt(sum of squares along `axis` + epsilon), Out = X / Norm.
// clip_by_norm: Out = X scaled down so that its norm is at most max_norm. Of selected rows, those
// of the same row are added up first.
#include <cmath>

#include "core/op_def.h"
#include "kernels/math/norm_attrs.h"
#include "kernels/math/unary.h"
#include "kernels/util/broadcast.h"
#include "kernels/util/reduce.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kNorm = 1;

struct SumOfSquares {
  using Acc = double;
  Acc Init() const { return 0; }
  template <typename T>
  Acc Map(T x, int64_t) const {
    return Acc{x} * x;
  }
  Acc Fold(Acc a, Acc b) const { return a + b; }
};

absl::Status InferNorm(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape norm, NormShape(ctx.attrs<NormAttrs>(), ctx.input(kX).shape));
  ctx.SetShape(kNorm, norm);
  ctx.SetShape(kOut, ctx.input(kX).shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status Norm(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const NormAttrs& attrs = ctx.attrs<NormAttrs>();
  const int axis = *NormalizeAxis(attrs.axis, x.shape.rank());
  Tensor scratch;  // where a program does not ask for the norms
  Tensor* norm = ctx.optional_output(kNorm);
  if (norm == nullptr) {
    norm = &scratch;
    scratch.dtype = x.dtype;
    scratch.shape = x.shape;
    scratch.shape[axis] = 1;
    INTERP_RETURN_IF_ERROR(ctx.Allocate(scratch));
  }
  T* norms = norm->mutable_data<T>();
  const double epsilon = attrs.epsilon;
  RunReduce(PlanReduce(x, DimSet().set(axis), *norm), ctx.num_threads(), x.data<T>(), norms,
            SumOfSquares(),
            [epsilon](double sum, int64_t) { return static_cast<T>(std::sqrt(sum + epsilon)); });
  Tensor& out = ctx.output(kOut);
  RunBroadcast(PlanBroadcast(x, *norm, out, kTrailingAxis), ctx.num_threads(), x.data<T>(), norms,
               out.mutable_data<T>(), [](T value, T length) { return value / length; });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "norm",
    .inputs = {{"X"}},
    .outputs = {{"Out"}, {"Norm", kOptional}},
    .parse = ParseAttrs<NormAttrs, NormAttrs::Read>,
    .infer = InferNorm,
    .kernels = {{DType::kFloat32, Norm<float>}, {DType::kFloat64, Norm<double>}},
    .gradient = {.inputs = {"X", "Norm", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

template <typename T>
struct Times {
  T factor;
  T operator()(T x) const { return x * factor; }
};

template <typename T>
Times<T> FactorOf(const KernelContext& ctx, const Tensor& x) {
  Tensor whole;  // only its shape is used: one element
  double sum = 0;
  RunReduce(PlanReduce(x, DimSet().set(), whole), ctx.num_threads(), x.data<T>(), &sum,
            SumOfSquares(), [](double total, int64_t) { return total; });
  const double norm = std::sqrt(sum);
  const double max_norm = ctx.attrs<ClipByNormAttrs>().max_norm;
  return {static_cast<T>(norm > max_norm ? max_norm / norm : 1.0)};
}

template <typename T>
absl::Status RunClipByNorm(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const bool rows, AreRows(ctx, kX, kOut));
  if (!rows) {
    MapUnary<T, T>(ctx, FactorOf<T>(ctx, ctx.input(kX)));
    return absl::OkStatus();
  }
  Variable& out = ctx.output_variable(kOut);
  INTERP_RETURN_IF_ERROR(MergeRows(ctx, ctx.input_variable(kX), out));
  MapInPlace<T>(ctx.num_threads(), out.tensor, FactorOf<T>(ctx, out.tensor));
  return absl::OkStatus();
}

OpDef ClipByNormDef() {
  OpDef def = TakingRows(PlainUnaryDef("clip_by_norm", {{DType::kFloat32, RunClipByNorm<float>},
                                                        {DType::kFloat64, RunClipByNorm<double>}}));
  def.parse = ParseAttrs<ClipByNormAttrs, ClipByNormAttrs::Read>;
  return def;
}

INTERP_REGISTER_OP(ClipByNormDef());

}  // namespace
}  // namespace interp
