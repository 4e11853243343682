// affine_grid_grad: Theta@GRAD, the sum over the pixels of Output@GRAD times the base point.
#include <vector>

#include "kernels/detection/affine_grid.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kOutputGrad = 2;
constexpr int kThetaGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const IntList image, AffineImageShape(ctx));
  const int64_t rank = static_cast<int64_t>(image.size()) - 2;
  Shape expected = {image[0]};
  for (size_t i = 2; i < image.size(); ++i) expected.push_back(image[i]);
  expected.push_back(rank);
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutputGrad, "Output@GRAD", expected));
  ctx.SetShape(kThetaGrad, {image[0], rank, rank + 1});
  return absl::OkStatus();
}

template <typename T>
absl::Status AffineGridGrad(KernelContext& ctx) {
  if (ctx.input(kOutputGrad).numel() == 0) {
    FillZero(ctx.num_threads(), ctx.output(kThetaGrad));
    return absl::OkStatus();
  }
  INTERP_ASSIGN_OR_RETURN(const IntList image, AffineImageShape(ctx));
  const AffinePoints<T> points(image, ctx.attrs<AffineGridAttrs>().align_corners);
  const int rank = points.rank();
  const int64_t pixels = points.size();
  const T* const grad = ctx.input(kOutputGrad).data<T>();
  T* const theta_grad = ctx.output(kThetaGrad).mutable_data<T>();
  const int64_t grain = GrainFor(8 * pixels);
  ParallelFor(ctx.num_threads(), image[0], grain, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      double sums[12] = {};
      T point[4];
      for (int64_t i = 0; i < pixels; ++i) {
        points.Get(i, point);
        const T* const from = grad + (n * pixels + i) * rank;
        for (int k = 0; k < rank * (rank + 1); ++k) {
          sums[k] += static_cast<double>(from[k / (rank + 1)]) * point[k % (rank + 1)];
        }
      }
      for (int k = 0; k < rank * (rank + 1); ++k) {
        theta_grad[n * rank * (rank + 1) + k] = static_cast<T>(sums[k]);
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "affine_grid_grad",
    .inputs = {{"Theta", kNoNeedBuffer},
               {"OutputShape", kOptional | kAnyDType | kValueInInfer},
               {"Output@GRAD"}},
    .outputs = {{"Theta@GRAD"}},
    .parse = ParseAttrs<AffineGridAttrs, ReadAffineGridAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, AffineGridGrad<float>},
                {DType::kFloat64, AffineGridGrad<double>}},
});

}  // namespace
}  // namespace interp
