// cross: Out = the vector products of X and Y along dimension `dim`, which has length 3; by default
// the first one that has. cross_grad: X@GRAD = Y x Out@GRAD, Y@GRAD = Out@GRAD x X.
#include "core/op_def.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/lines.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

struct CrossAttrs {
  int64_t dim = kMaxRank;  // kMaxRank: the first of length 3
};

CrossAttrs ReadCrossAttrs(AttrReader& reader) { return {reader.Int("dim", kMaxRank)}; }

absl::StatusOr<Lines> LinesOf(const OpContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& y = ctx.input(kY).shape;
  if (x != y) {
    return InvalidArgument("'X' and 'Y' have shapes ", ToString(x), " and ", ToString(y),
                           ", expected one shape");
  }
  const int64_t given = ctx.attrs<CrossAttrs>().dim;
  int dim = 0;
  if (given == kMaxRank) {
    while (dim < x.rank() && x[dim] != 3) ++dim;
  } else {
    INTERP_ASSIGN_OR_RETURN(dim, ResolveAxis(given, x.rank(), "dim"));
  }
  if (dim >= x.rank() || x[dim] != 3) {
    return InvalidArgument("input 'X' has shape ", ToString(x),
                           ", expected a dimension of length 3, which 'dim' names");
  }
  return LinesAlong(x, dim);
}

template <typename T>
void CrossLines(const Lines& lines, const T* x, const T* y, T* out) {
  const int64_t step = lines.inner;
  for (int64_t line = 0; line < lines.count(); ++line) {
    const int64_t at = lines.Start(line);
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t a = at + (i + 1) % 3 * step;
      const int64_t b = at + (i + 2) % 3 * step;
      out[at + i * step] = WrapSub(WrapMul(x[a], y[b]), WrapMul(x[b], y[a]));
    }
  }
}

absl::Status InferCross(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(LinesOf(ctx).status());
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status Cross(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Lines lines, LinesOf(ctx));
  CrossLines<T>(lines, ctx.input(kX).data<T>(), ctx.input(kY).data<T>(),
                ctx.output(kOut).mutable_data<T>());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cross",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<CrossAttrs, ReadCrossAttrs>,
    .infer = InferCross,
    .kernels = {{DType::kFloat32, Cross<float>},
                {DType::kFloat64, Cross<double>},
                {DType::kInt32, Cross<int32_t>},
                {DType::kInt64, Cross<int64_t>}},
    .gradient = {.inputs = {"X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}},
});

constexpr int kOutGrad = 2;

absl::Status InferCrossGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(LinesOf(ctx).status());
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", ctx.input(kX).shape));
  ctx.ShareShape(kX, kX);
  ctx.ShareShape(kY, kY);
  return absl::OkStatus();
}

template <typename T>
absl::Status CrossGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Lines lines, LinesOf(ctx));
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  if (Tensor* out = ctx.optional_output(kX)) CrossLines<T>(lines, y, grad, out->mutable_data<T>());
  if (Tensor* out = ctx.optional_output(kY)) CrossLines<T>(lines, grad, x, out->mutable_data<T>());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "cross_grad",
    .inputs = {{"X"}, {"Y"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .parse = ParseAttrs<CrossAttrs, ReadCrossAttrs>,
    .infer = InferCrossGrad,
    .kernels = {{DType::kFloat32, CrossGrad<float>}, {DType::kFloat64, CrossGrad<double>}},
});

}  // namespace
}  // namespace interp
