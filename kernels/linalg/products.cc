// mv: Out = X Vec. addmm: Out = Beta Input + Alpha X Y, Input broadcast. And their gradients.
#include <algorithm>

#include "kernels/linalg/addmm.h"
#include "kernels/linalg/matrices.h"
#include "kernels/linalg/product.h"
#include "kernels/util/broadcast.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/shape_args.h"

namespace interp::linalg {

AddmmAttrs ReadAddmmAttrs(AttrReader& reader) {
  return {reader.Float("Alpha", 1.0f), reader.Float("Beta", 1.0f)};
}

std::array<int64_t, 2> AddmmInputSteps(const Tensor& input) {
  const Strides steps = BroadcastStrides(input, 2, kTrailingAxis);
  return {steps[0], steps[1]};
}

namespace {

constexpr int kX = 0;
constexpr int kVec = 1;
constexpr int kOut = 0;

absl::Status CheckMatrixAndVector(const OpContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& vec = ctx.input(kVec).shape;
  if (x.rank() == 2 && vec == Shape{x[1]}) return absl::OkStatus();
  return InvalidArgument("'X' and 'Vec' have shapes ", ToString(x), " and ", ToString(vec),
                         ", expected [m,n] and [n]");
}

absl::Status InferMv(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckMatrixAndVector(ctx));
  ctx.SetShape(kOut, {ctx.input(kX).shape[0]});
  return absl::OkStatus();
}

// A vector is a matrix of one column.
Matrices ColumnOf(const Tensor& vector) { return {1, vector.numel(), 1}; }

template <typename T>
absl::Status Mv(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& vec = ctx.input(kVec);
  Tensor& out = ctx.output(kOut);
  MatrixAt<T>(out, ColumnOf(out), 0) =
      MatrixAt<T>(x, MatricesOf(x.shape), 0) * MatrixAt<T>(vec, ColumnOf(vec), 0);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "mv",
    .inputs = {{"X"}, {"Vec"}},
    .outputs = {{"Out"}},
    .infer = InferMv,
    .kernels = {Row<float, Mv<float>>(), Row<double, Mv<double>>()},
    .gradient = {.inputs = {"X", "Vec", "Out@GRAD"}, .outputs = {"X@GRAD", "Vec@GRAD"}},
});

constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;
constexpr int kVecGrad = 1;

absl::Status InferMvGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckMatrixAndVector(ctx));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", {ctx.input(kX).shape[0]}));
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kVec, kVecGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status MvGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& vec = ctx.input(kVec);
  const Tensor& grad = ctx.input(kOutGrad);
  const auto column = MatrixAt<T>(grad, ColumnOf(grad), 0);
  if (Tensor* out = ctx.optional_output(kXGrad)) {
    MatrixAt<T>(*out, MatricesOf(x.shape), 0) =
        column * MatrixAt<T>(vec, ColumnOf(vec), 0).transpose();
  }
  if (Tensor* out = ctx.optional_output(kVecGrad)) {
    MatrixAt<T>(*out, ColumnOf(vec), 0) =
        MatrixAt<T>(x, MatricesOf(x.shape), 0).transpose() * column;
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "mv_grad",
    .inputs = {{"X"}, {"Vec"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Vec@GRAD", kOptional}},
    .infer = InferMvGrad,
    .kernels = {Row<float, MvGrad<float>>(), Row<double, MvGrad<double>>()},
});

// Of addmm.
constexpr int kInput = 0;
constexpr int kLeft = 1;
constexpr int kRight = 2;

// The shape of the product, to which Input is broadcast.
absl::StatusOr<Shape> AddmmShape(const OpContext& ctx) {
  const Shape& x = ctx.input(kLeft).shape;
  const Shape& y = ctx.input(kRight).shape;
  if (x.rank() != 2 || y.rank() != 2 || x[1] != y[0]) {
    return InvalidArgument("'X' and 'Y' have shapes ", ToString(x), " and ", ToString(y),
                           ", expected [m,k] and [k,n]");
  }
  const Shape out = {x[0], y[1]};
  const Shape& input = ctx.input(kInput).shape;
  INTERP_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(input, out, kTrailingAxis));
  if (shape == out) return out;
  return InvalidArgument("input 'Input' has shape ", ToString(input),
                         ", which does not broadcast to ", ToString(out));
}

absl::Status InferAddmm(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, AddmmShape(ctx));
  ctx.SetShape(kOut, shape);
  ShareLod(ctx.input(kInput), ctx.output(kOut));
  return absl::OkStatus();
}

// Calls body(index of the result, index of Input).
template <typename Body>
void ForEachAdded(const Tensor& input, const Shape& out, const Body& body) {
  if (out.numel() == 0) return;
  const std::array<int64_t, 2> steps = AddmmInputSteps(input);
  for (int64_t i = 0; i < out[0]; ++i) {
    for (int64_t j = 0; j < out[1]; ++j) body(i * out[1] + j, i * steps[0] + j * steps[1]);
  }
}

template <typename T>
absl::Status Addmm(KernelContext& ctx) {
  const AddmmAttrs& attrs = ctx.attrs<AddmmAttrs>();
  const Tensor& x = ctx.input(kLeft);
  const Tensor& y = ctx.input(kRight);
  Tensor& out = ctx.output(kOut);
  MatrixAt<T>(out, MatricesOf(out.shape), 0) = static_cast<T>(attrs.alpha) *
                                               MatrixAt<T>(x, MatricesOf(x.shape), 0) *
                                               MatrixAt<T>(y, MatricesOf(y.shape), 0);
  const T* const input = ctx.input(kInput).data<T>();
  T* const sums = out.mutable_data<T>();
  const T beta = static_cast<T>(attrs.beta);
  ForEachAdded(ctx.input(kInput), out.shape,
               [=](int64_t at, int64_t from) { sums[at] += beta * input[from]; });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "addmm",
    .inputs = {{"Input"}, {"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<AddmmAttrs, ReadAddmmAttrs>,
    .infer = InferAddmm,
    .kernels = {Row<float, Addmm<float>>(), Row<double, Addmm<double>>()},
    .gradient = {.inputs = {"Input", "X", "Y", "Out@GRAD"},
                 .outputs = {"Input@GRAD", "X@GRAD", "Y@GRAD"}},
});

constexpr int kAddmmGrad = 3;

absl::Status InferAddmmGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, AddmmShape(ctx));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kAddmmGrad, "Out@GRAD", shape));
  for (const int slot : {kInput, kLeft, kRight}) ctx.ShareShape(slot, slot);
  return absl::OkStatus();
}

template <typename T>
absl::Status AddmmGrad(KernelContext& ctx) {
  const AddmmAttrs& attrs = ctx.attrs<AddmmAttrs>();
  const Tensor& x = ctx.input(kLeft);
  const Tensor& y = ctx.input(kRight);
  const Tensor& grad = ctx.input(kAddmmGrad);
  const Matrix<T> scaled =
      static_cast<T>(attrs.alpha) * MatrixAt<T>(grad, MatricesOf(grad.shape), 0);
  if (Tensor* out = ctx.optional_output(kLeft)) {
    MatrixAt<T>(*out, MatricesOf(x.shape), 0) =
        Product<T>(scaled, MatrixAt<T>(y, MatricesOf(y.shape), 0).transpose());
  }
  if (Tensor* out = ctx.optional_output(kRight)) {
    MatrixAt<T>(*out, MatricesOf(y.shape), 0) =
        Product<T>(MatrixAt<T>(x, MatricesOf(x.shape), 0).transpose(), scaled);
  }
  if (Tensor* out = ctx.optional_output(kInput)) {
    T* const sums = out->mutable_data<T>();
    std::fill_n(sums, out->numel(), T{0});
    const T beta = static_cast<T>(attrs.beta);
    const T* const from = grad.data<T>();
    ForEachAdded(ctx.input(kInput), grad.shape,
                 [=](int64_t at, int64_t to) { sums[to] += beta * from[at]; });
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "addmm_grad",
    .inputs = {{"Input", kNoNeedBuffer}, {"X"}, {"Y"}, {"Out@GRAD"}},
    .outputs = {{"Input@GRAD", kOptional}, {"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .parse = ParseAttrs<AddmmAttrs, ReadAddmmAttrs>,
    .infer = InferAddmmGrad,
    .kernels = {Row<float, AddmmGrad<float>>(), Row<double, AddmmGrad<double>>()},
});

}  // namespace
}  // namespace interp::linalg
