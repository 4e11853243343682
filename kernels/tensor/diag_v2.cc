// diag_v2: of a vector the matrix with it as a diagonal and `padding_value` elsewhere; of a matrix
// its diagonal.
#include <cstdlib>

#include "kernels/tensor/diagonal.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/scalar_bytes.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct DiagAttrs {
  DiagonalAttrs diagonal;
  float padding_value = 0;
};

DiagAttrs ReadDiagAttrs(AttrReader& reader) {
  return {{reader.Int("offset", 0), 0, 1}, reader.Float("padding_value", 0)};
}

absl::StatusOr<Shape> DiagShape(const DiagAttrs& attrs, const Shape& x) {
  if (x.rank() == 2) {
    INTERP_ASSIGN_OR_RETURN(const Diagonal diagonal, FindDiagonal(attrs.diagonal, x));
    return Shape{diagonal.length};
  }
  if (x.rank() > 1) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected rank 1 or 2");
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t size,
                          CheckedSum(x.numel(), std::abs(attrs.diagonal.offset)));
  return Shape{size, size};
}

absl::Status InferDiag(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          DiagShape(ctx.attrs<DiagAttrs>(), ctx.input(kX).shape));
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

absl::Status Diag(KernelContext& ctx) {
  const DiagAttrs& attrs = ctx.attrs<DiagAttrs>();
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (x.shape.rank() == 2) {
    ReadDiagonals(ctx.num_threads(), *FindDiagonal(attrs.diagonal, x.shape), x,
                  out.mutable_raw_data());
    return absl::OkStatus();
  }
  const ScalarBytes padding = ToScalarBytes(out.dtype, attrs.padding_value);
  FillElements(ctx.num_threads(), SizeOf(out.dtype), padding.bytes.data(), out.mutable_raw_data(),
               out.numel());
  WriteDiagonals(ctx.num_threads(), *FindDiagonal(attrs.diagonal, out.shape), DiagonalSource::kFull,
                 x.raw_data(), out);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "diag_v2",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<DiagAttrs, ReadDiagAttrs>,
    .infer = InferDiag,
    .kernels = {{DType::kUndefined, Diag}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status InferDiagGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          DiagShape(ctx.attrs<DiagAttrs>(), ctx.input(kX).shape));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", shape));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

absl::Status DiagGrad(KernelContext& ctx) {
  const DiagonalAttrs& attrs = ctx.attrs<DiagAttrs>().diagonal;
  const Tensor& grad = ctx.input(kOutGrad);
  Tensor& x_grad = ctx.output(kXGrad);
  if (x_grad.shape.rank() != 2) {
    ReadDiagonals(ctx.num_threads(), *FindDiagonal(attrs, grad.shape), grad,
                  x_grad.mutable_raw_data());
    return absl::OkStatus();
  }
  FillZero(ctx.num_threads(), x_grad);
  WriteDiagonals(ctx.num_threads(), *FindDiagonal(attrs, x_grad.shape), DiagonalSource::kFull,
                 grad.raw_data(), x_grad);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "diag_v2_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<DiagAttrs, ReadDiagAttrs>,
    .infer = InferDiagGrad,
    .kernels = {{DType::kFloat32, DiagGrad}, {DType::kFloat64, DiagGrad}},
});

}  // namespace
}  // namespace interp
