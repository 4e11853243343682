// psroi_pool_grad: every element of Out@GRAD goes to the pixels of its bin in equal shares.
//
// Regions overlap; channels share nothing: threads share the channels.
#include <vector>

#include "core/op_def.h"
#include "kernels/detection/psroi_pool.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRois = 1;
constexpr int kRoisNum = 2;
constexpr int kOutGrad = 3;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(
      const Shape out,
      InferPsRoiShape(ctx.attrs<PsRoiAttrs>(), ctx.input(kX).shape, ctx.input(kRois).shape));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", out));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
void Spread(const PsRoiBin& bin, int64_t width, T grad, T* plane) {
  const T share = bin.area() == 0 ? T{0} : grad / static_cast<T>(bin.area());
  for (int64_t y = bin.top; y < bin.bottom; ++y) {
    for (int64_t i = y * width + bin.left; i < y * width + bin.right; ++i) plane[i] += share;
  }
}

template <typename T>
absl::Status PsRoiPoolGrad(KernelContext& ctx) {
  Tensor& x_grad = ctx.output(kXGrad);
  const Tensor& rois = ctx.input(kRois);
  const Shape& x = x_grad.shape;
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> images,
                          ImageOfRoi(rois, ctx.optional_input(kRoisNum), x[0]));
  const RoiGrid& grid = ctx.attrs<PsRoiAttrs>().grid;
  const int64_t channels = x[1], height = x[2], width = x[3], bins = grid.height * grid.width;
  const T* const grad = ctx.input(kOutGrad).data<T>();
  T* const to = x_grad.mutable_data<T>();
  std::fill_n(to, x_grad.numel(), T{0});
  const int64_t grain = GrainFor(16 * rois.shape[0]);
  ParallelFor(ctx.num_threads(), channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t region = 0; region < rois.shape[0]; ++region) {
      for (int64_t c = begin; c < end; ++c) {
        const PsRoiBin place =
            PlacePsRoiBin(grid, rois.data<T>() + 4 * region, c % bins / grid.width,
                          c % bins % grid.width, height, width);
        Spread(place, width, grad[region * channels + c],
               to + (images[region] * channels + c) * height * width);
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "psroi_pool_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"ROIs"}, {"RoisNum", kOptional | kAnyDType}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<PsRoiAttrs, ReadPsRoiAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, PsRoiPoolGrad<float>}, {DType::kFloat64, PsRoiPoolGrad<double>}},
});

}  // namespace
}  // namespace interp
