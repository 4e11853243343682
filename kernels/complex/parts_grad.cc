// real_grad, imag_grad: X@GRAD = Out@GRAD as the one part, 0 as the other.
// angle_grad: X@GRAD = Out@GRAD (-y + ix) / (x^2 + y^2) for X = x + iy, 0 for X = 0 and of real
// numbers.
#include "core/op_def.h"
#include "kernels/complex/complex_dtype.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kXGrad = 0;

absl::Status InferPartGrad(InferContext& ctx) {
  ctx.SetShape(kXGrad, ctx.input(kOutGrad).shape);
  return absl::OkStatus();
}

template <typename T, bool kReal>
absl::Status PartGrad(KernelContext& ctx) {
  const T* const grad = ctx.input(kOutGrad).data<T>();
  std::complex<T>* const out = ctx.output(kXGrad).mutable_data<std::complex<T>>();
  ParallelFor(ctx.num_threads(), ctx.input(kOutGrad).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  out[i] = kReal ? std::complex<T>(grad[i], 0) : std::complex<T>(0, grad[i]);
                }
              });
  return absl::OkStatus();
}

template <bool kReal>
OpDef PartGradDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"Out@GRAD"}},
      .outputs = {{"X@GRAD"}},
      .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kXGrad, ComplexDType(ctx.kernel())); },
      .infer = InferPartGrad,
      .kernels = {{DType::kFloat32, PartGrad<float, kReal>},
                  {DType::kFloat64, PartGrad<double, kReal>}},
  };
}

constexpr int kX = 0;
constexpr int kAngleGrad = 1;

absl::Status InferAngleGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kAngleGrad, "Out@GRAD", ctx.input(kX).shape));
  if (ctx.input(kAngleGrad).dtype != RealDType(ctx.input(kX).dtype)) {
    return InvalidArgument("input 'Out@GRAD' is ", DescribeType(ctx.input(kAngleGrad)),
                           ", expected ", Name(RealDType(ctx.input(kX).dtype)));
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status AngleGrad(KernelContext& ctx) {
  const std::complex<T>* const x = ctx.input(kX).data<std::complex<T>>();
  const T* const grad = ctx.input(kAngleGrad).data<T>();
  std::complex<T>* const out = ctx.output(kXGrad).mutable_data<std::complex<T>>();
  ParallelFor(ctx.num_threads(), ctx.input(kX).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T factor = x[i] == T{0} ? T{0} : grad[i] / std::norm(x[i]);
                  out[i] = {-x[i].imag() * factor, x[i].real() * factor};
                }
              });
  return absl::OkStatus();
}

absl::Status RealAngleGrad(KernelContext& ctx) {
  FillZero(ctx.num_threads(), ctx.output(kXGrad));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(PartGradDef<true>("real_grad"));
INTERP_REGISTER_OP(PartGradDef<false>("imag_grad"));
INTERP_REGISTER_OP(OpDef{
    .type = "angle_grad",
    .inputs = {{"X"}, {"Out@GRAD", kAnyDType}},
    .outputs = {{"X@GRAD"}},
    .infer = InferAngleGrad,
    .kernels = {{DType::kComplex64, AngleGrad<float>},
                {DType::kComplex128, AngleGrad<double>},
                {DType::kFloat32, RealAngleGrad},
                {DType::kFloat64, RealAngleGrad}},
});

}  // namespace
}  // namespace interp
