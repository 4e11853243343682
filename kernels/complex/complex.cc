// complex: Out = X + iY, with broadcasting at the last dimensions.
// complex_grad: X@GRAD and Y@GRAD are the parts of Out@GRAD, summed where an operand is broadcast.
#include "core/op_def.h"
#include "kernels/complex/complex_dtype.h"
#include "kernels/util/broadcast.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

absl::Status InferComplex(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          BroadcastShapes(ctx.input(kX).shape, ctx.input(kY).shape, kTrailingAxis));
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status MakeComplex(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  Tensor& out = ctx.output(kOut);
  RunBroadcast(PlanBroadcast(x, y, out, kTrailingAxis), ctx.num_threads(), x.data<T>(), y.data<T>(),
               out.mutable_data<std::complex<T>>(), [](T a, T b) { return std::complex<T>(a, b); });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "complex",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, ComplexDType(ctx.kernel())); },
    .infer = InferComplex,
    .kernels = {{DType::kFloat32, MakeComplex<float>}, {DType::kFloat64, MakeComplex<double>}},
    .gradient = {.inputs = {"X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD", "Y@GRAD"}},
});

constexpr int kOutGrad = 2;

absl::Status InferComplexGrad(InferContext& ctx) {
  const Tensor& grad = ctx.input(kOutGrad);
  INTERP_ASSIGN_OR_RETURN(const Shape shape,
                          BroadcastShapes(ctx.input(kX).shape, ctx.input(kY).shape, kTrailingAxis));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", shape));
  if (grad.dtype != ComplexDType(ctx.input(kX).dtype)) {
    return InvalidArgument("input 'Out@GRAD' is ", DescribeType(grad), ", expected ",
                           Name(ComplexDType(ctx.input(kX).dtype)));
  }
  ctx.SetShape(kX, ctx.input(kX).shape);
  ctx.SetShape(kY, ctx.input(kY).shape);
  return absl::OkStatus();
}

// Adds one part of the gradient to the operand that it meets, in the order of the output.
template <typename T, typename Part>
void AddPart(KernelContext& ctx, int operand, const Part& part) {
  Tensor* const out = ctx.optional_output(operand);
  if (out == nullptr) return;
  FillZero(ctx.num_threads(), *out);
  Tensor grad = ctx.input(kOutGrad);
  if (grad.numel() == 0) return;
  grad.shape = *BroadcastShapes(ctx.input(kX).shape, ctx.input(kY).shape, kTrailingAxis);
  const std::complex<T>* from = grad.data<std::complex<T>>();
  T* const sums = out->mutable_data<T>();
  const Strides steps = BroadcastStrides(*out, grad.shape.rank(), kTrailingAxis);
  LoopNest nest;
  for (int i = 0; i < grad.shape.rank(); ++i) nest.Add({grad.shape[i], steps[i], 0});
  const int64_t count = nest.count();
  LoopCursor cursor(nest);
  for (int64_t i = 0; i < count; ++i, cursor.Next()) sums[cursor.x()] += part(from[i]);
}

template <typename T>
absl::Status ComplexGrad(KernelContext& ctx) {
  AddPart<T>(ctx, kX, [](std::complex<T> grad) { return grad.real(); });
  AddPart<T>(ctx, kY, [](std::complex<T> grad) { return grad.imag(); });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "complex_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Y", kNoNeedBuffer}, {"Out@GRAD", kAnyDType}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .infer = InferComplexGrad,
    .kernels = {{DType::kFloat32, ComplexGrad<float>}, {DType::kFloat64, ComplexGrad<double>}},
});

}  // namespace
}  // namespace interp
