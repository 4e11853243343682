// fill_diagonal: Out = X with `value` on the diagonal of all its dimensions, which are as long as
// each other; of a matrix of any shape, where `wrap` starts another diagonal below the end of each
// when there are more rows than columns.
// fill_diagonal_tensor: Out = X with Y on the diagonals of dim1 and dim2.
// Their gradients: X@GRAD = Out@GRAD with zeros there.
#include "kernels/tensor/diagonal.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/copy.h"
#include "kernels/util/scalar_bytes.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

struct FillAttrs {
  float value = 0;
  int64_t offset = 0;
  bool wrap = false;
};

FillAttrs ReadFillAttrs(AttrReader& reader) {
  return {reader.Float("value", 0), reader.Int("offset", 0), reader.Bool("wrap", false)};
}

absl::Status InferFillDiagonal(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  bool fits = x.rank() >= 2;
  for (int i = 1; fits && x.rank() > 2 && i < x.rank(); ++i) fits = x[i] == x[0];
  if (!fits) {
    return InvalidArgument("the input has shape ", ToString(x),
                           ", expected a matrix or dimensions of one length");
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

// Elements a step of one in every dimension apart, from the first one on, which the offset moves
// along the last dimension. One that the offset moves out of its row does not count. Without `wrap`
// Paddle ends where a square matrix would, in more dimensions too.
void WriteDiagonal(const FillAttrs& attrs, const ScalarBytes& value, Tensor& out) {
  const Shape& shape = out.shape;
  if (out.numel() == 0) return;
  const Strides strides = StridesOf(out);
  int64_t step = 0;
  for (int d = 0; d < shape.rank(); ++d) step += strides[d];
  const int64_t columns = shape.back();
  const bool square = columns <= out.numel() / columns;  // and its size does not overflow
  const int64_t end = attrs.wrap || !square ? out.numel() : columns * columns;
  const size_t bytes = SizeOf(out.dtype);
  for (int64_t at = 0; at < end; at += step) {
    const int64_t column = at % columns + attrs.offset;
    if (column < 0 || column >= columns) continue;
    std::memcpy(At(out.mutable_raw_data(), at + attrs.offset, bytes), value.bytes.data(), bytes);
  }
}

absl::Status FillDiagonal(KernelContext& ctx) {
  const FillAttrs& attrs = ctx.attrs<FillAttrs>();
  Tensor& out = ctx.output(kOut);
  CopyUnlessShared(ctx.input(kX), out);
  WriteDiagonal(attrs, ToScalarBytes(out.dtype, attrs.value), out);
  return absl::OkStatus();
}

absl::Status FillDiagonalGrad(KernelContext& ctx) {
  Tensor& x_grad = ctx.output(kOut);
  CopyUnlessShared(ctx.input(kX), x_grad);
  WriteDiagonal(ctx.attrs<FillAttrs>(), ScalarBytes(), x_grad);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fill_diagonal",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<FillAttrs, ReadFillAttrs>,
    .infer = InferFillDiagonal,
    .kernels = {{DType::kUndefined, FillDiagonal}},
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "fill_diagonal_grad",
    .inputs = {{"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<FillAttrs, ReadFillAttrs>,
    .infer = InferFillDiagonal,
    .kernels = {{DType::kUndefined, FillDiagonalGrad}},
    .inplace = {{kX, kOut}},
});

DiagonalAttrs ReadFillTensorAttrs(AttrReader& reader) {
  return {reader.Long("offset", 0), reader.Int("dim1", 0), reader.Int("dim2", 1)};
}

absl::Status InferFillTensor(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const Diagonal diagonal, FindDiagonal(ctx.attrs<DiagonalAttrs>(), x));
  const Shape expected = DiagonalShape(diagonal, x);
  // Paddle's API makes a row of a vector.
  const bool is_row = expected.rank() == 1 && ctx.input(kY).shape == Shape{1, expected[0]};
  if (!is_row) INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kY, "Y", expected));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status FillTensor(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  CopyUnlessShared(ctx.input(kX), out);
  WriteDiagonals(ctx.num_threads(), *FindDiagonal(ctx.attrs<DiagonalAttrs>(), out.shape),
                 DiagonalSource::kFull, ctx.input(kY).raw_data(), out);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fill_diagonal_tensor",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<DiagonalAttrs, ReadFillTensorAttrs>,
    .infer = InferFillTensor,
    .kernels = {{DType::kUndefined, FillTensor}},
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
});

absl::Status InferFillTensorGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(FindDiagonal(ctx.attrs<DiagonalAttrs>(), ctx.input(kX).shape).status());
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status FillTensorGrad(KernelContext& ctx) {
  Tensor& x_grad = ctx.output(kOut);
  CopyUnlessShared(ctx.input(kX), x_grad);
  const ScalarBytes zero;
  WriteDiagonals(ctx.num_threads(), *FindDiagonal(ctx.attrs<DiagonalAttrs>(), x_grad.shape),
                 DiagonalSource::kOne, zero.bytes.data(), x_grad);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fill_diagonal_tensor_grad",
    .inputs = {{"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<DiagonalAttrs, ReadFillTensorAttrs>,
    .infer = InferFillTensorGrad,
    .kernels = {{DType::kUndefined, FillTensorGrad}},
    .inplace = {{kX, kOut}},
});

}  // namespace
}  // namespace interp
