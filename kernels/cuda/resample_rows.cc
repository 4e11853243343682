// Rows of nearest and linear interpolation of images and of their gradients.
#include "kernels/cuda/resample.h"
#include "kernels/cuda/row.h"
#include "kernels/tensor/interpolate.h"
#include "kernels/util/data_mover.h"

namespace interp::cuda {
namespace {

// How images of the shape of `x` become those of `out`, without their memory.
absl::StatusOr<ResampleArguments> ArgumentsOf(const KernelContext& ctx, const Tensor& x,
                                              const Tensor& out) {
  const auto& attrs = ctx.attrs<InterpAttrs>();
  ResampleArguments args;
  args.view = InterpView(attrs, x, out.shape);
  args.nearest = attrs.method == InterpMethod::kNearest;
  INTERP_RETURN_IF_ERROR(FillInterpMaps(ctx, args.view, args.maps));
  return args;
}

// X, OutSize, SizeTensor, Scale -> Out.
absl::Status Interp(KernelContext& ctx) {
  const Tensor& x = ctx.input(kInterpX);
  Tensor& out = ctx.output(/*slot=*/0);
  if (x.shape == out.shape) return CopyUnlessShared(ctx, x, out);
  INTERP_ASSIGN_OR_RETURN(ResampleArguments args, ArgumentsOf(ctx, x, out));
  args.in = x.raw_data();
  args.out = out.mutable_raw_data();
  return Resample(x.dtype, args, StreamOf(ctx));
}

// X, OutSize, SizeTensor, Scale, Out@GRAD -> X@GRAD.
absl::Status InterpGrad(KernelContext& ctx) {
  Tensor* const x_grad = ctx.optional_output(/*slot=*/0);
  if (x_grad == nullptr) return absl::OkStatus();
  const Tensor& out_grad = ctx.input(/*slot=*/4);
  if (x_grad->shape == out_grad.shape) return CopyUnlessShared(ctx, out_grad, *x_grad);
  INTERP_ASSIGN_OR_RETURN(ResampleArguments args, ArgumentsOf(ctx, *x_grad, out_grad));
  args.in = out_grad.raw_data();
  args.out = x_grad->mutable_raw_data();
  return ResampleGradient(x_grad->dtype, args, StreamOf(ctx));
}

// Rows of the ops by their names, for the methods that they are named for.
bool IsNearest(const void* attrs) {
  return static_cast<const InterpAttrs*>(attrs)->method == InterpMethod::kNearest;
}
bool IsNoCubic(const void* attrs) {
  return static_cast<const InterpAttrs*>(attrs)->method != InterpMethod::kCubic;
}

constexpr std::initializer_list<DType> kCopied = {DType::kUndefined};
constexpr std::initializer_list<DType> kBlended = {DType::kFloat32, DType::kFloat64,
                                                   DType::kFloat16};
constexpr std::initializer_list<DType> kAddedUp = {DType::kFloat32, DType::kFloat64};

INTERP_REGISTER_KERNELS("nearest_interp", RowsFor(kCopied, Interp, IsNearest));
INTERP_REGISTER_KERNELS("nearest_interp_v2", RowsFor(kCopied, Interp, IsNearest));
INTERP_REGISTER_KERNELS("linear_interp", RowsFor(kBlended, Interp, IsNoCubic));
INTERP_REGISTER_KERNELS("linear_interp_v2", RowsFor(kBlended, Interp, IsNoCubic));
INTERP_REGISTER_KERNELS("bilinear_interp", RowsFor(kBlended, Interp, IsNoCubic));
INTERP_REGISTER_KERNELS("bilinear_interp_v2", RowsFor(kBlended, Interp, IsNoCubic));
INTERP_REGISTER_KERNELS("trilinear_interp", RowsFor(kBlended, Interp, IsNoCubic));
INTERP_REGISTER_KERNELS("trilinear_interp_v2", RowsFor(kBlended, Interp, IsNoCubic));
INTERP_REGISTER_KERNELS("nearest_interp_grad", RowsFor(kAddedUp, InterpGrad, IsNoCubic));
INTERP_REGISTER_KERNELS("nearest_interp_v2_grad", RowsFor(kAddedUp, InterpGrad, IsNoCubic));
INTERP_REGISTER_KERNELS("linear_interp_grad", RowsFor(kAddedUp, InterpGrad, IsNoCubic));
INTERP_REGISTER_KERNELS("linear_interp_v2_grad", RowsFor(kAddedUp, InterpGrad, IsNoCubic));
INTERP_REGISTER_KERNELS("bilinear_interp_grad", RowsFor(kAddedUp, InterpGrad, IsNoCubic));
INTERP_REGISTER_KERNELS("bilinear_interp_v2_grad", RowsFor(kAddedUp, InterpGrad, IsNoCubic));
INTERP_REGISTER_KERNELS("trilinear_interp_grad", RowsFor(kAddedUp, InterpGrad, IsNoCubic));
INTERP_REGISTER_KERNELS("trilinear_interp_v2_grad", RowsFor(kAddedUp, InterpGrad, IsNoCubic));

}  // namespace
}  // namespace interp::cuda
