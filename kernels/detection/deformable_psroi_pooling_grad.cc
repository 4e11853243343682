// deformable_psroi_pooling_grad: Input@GRAD by the weights of the samples' neighbours, Trans@GRAD
// by what moving the samples changes.
#include <algorithm>
#include <vector>

#include "kernels/detection/deformable_psroi.h"
#include "kernels/detection/roi.h"
#include "kernels/util/gradient_shape.h"

namespace interp {
namespace {

constexpr int kTopCount = 3;
constexpr int kOutputGrad = 4;
constexpr int kInputGrad = 0;
constexpr int kTransGrad = 1;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveDeformablePsRoi(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kTopCount, "TopCount", out));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutputGrad, "Output@GRAD", out));
  ctx.ShareShape(kPsRoiInput, kInputGrad);
  ctx.ShareShape(kPsRoiTrans, kTransGrad);
  return absl::OkStatus();
}

template <typename T>
T* Zeros(Tensor* tensor) {
  if (tensor == nullptr) return nullptr;
  std::fill_n(tensor->mutable_data<T>(), tensor->numel(), T{0});
  return tensor->mutable_data<T>();
}

template <typename T>
void SpreadSample(const DeformableSample<T>& s, int64_t width, T share, T* plane) {
  plane[s.y0 * width + s.x0] += (1 - s.dx) * (1 - s.dy) * share;
  plane[s.y1 * width + s.x0] += (1 - s.dx) * s.dy * share;
  plane[s.y0 * width + s.x1] += s.dx * (1 - s.dy) * share;
  plane[s.y1 * width + s.x1] += s.dx * s.dy * share;
}

// Of a sample's value, in the directions of x and y.
template <typename T>
struct Slope {
  T x, y;
};

template <typename T>
Slope<T> SlopeOf(const DeformableSample<T>& s, int64_t width, const T* plane) {
  const T u00 = plane[s.y0 * width + s.x0], u01 = plane[s.y1 * width + s.x0];
  const T u10 = plane[s.y0 * width + s.x1], u11 = plane[s.y1 * width + s.x1];
  return {u11 * s.dy + u10 * (1 - s.dy) - u01 * s.dy - u00 * (1 - s.dy),
          u11 * s.dx + u01 * (1 - s.dx) - u10 * s.dx - u00 * (1 - s.dx)};
}

template <typename T>
absl::Status PoolGrad(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<DeformablePsRoiAttrs>();
  const Tensor& x = ctx.input(kPsRoiInput);
  const Tensor& grad = ctx.input(kOutputGrad);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> images,
                          ImageOfRoi(ctx.input(kPsRoiRois), /*rois_num=*/nullptr, x.shape[0]));
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveDeformablePsRoi(ctx));
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const T std = static_cast<T>(attrs.trans_std);
  T* const x_grad = Zeros<T>(ctx.optional_output(kInputGrad));
  T* const trans_grad = Zeros<T>(ctx.optional_output(kTransGrad));
  for (int64_t i = 0; i < grad.numel(); ++i) {
    const T count = ctx.input(kTopCount).data<T>()[i];
    if (!(count > 0)) continue;
    const DeformableBin<T> bin = PlaceDeformableBin<T>(ctx, out, i);
    const int64_t image = images[i / (grad.numel() / out[0])];
    const int64_t plane = (image * channels + bin.channel) * height * width;
    const T share = grad.data<T>()[i] / count;
    ForEachDeformableSample(bin, attrs.samples, height, width, [&](const DeformableSample<T>& s) {
      if (x_grad != nullptr) SpreadSample(s, width, share, x_grad + plane);
      if (trans_grad == nullptr || bin.trans < 0) return;
      const Slope<T> slope = SlopeOf(s, width, x.data<T>() + plane);
      trans_grad[bin.trans] += slope.x * std * share * bin.width;
      trans_grad[bin.trans + bin.trans_step] += slope.y * std * share * bin.height;
    });
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "deformable_psroi_pooling_grad",
    .inputs = {{"Input"}, {"ROIs"}, {"Trans"}, {"TopCount"}, {"Output@GRAD"}},
    .outputs = {{"Input@GRAD", kOptional}, {"Trans@GRAD", kOptional}},
    .parse = ParseAttrs<DeformablePsRoiAttrs, ReadDeformablePsRoiAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, PoolGrad<float>}, {DType::kFloat64, PoolGrad<double>}},
});

}  // namespace
}  // namespace interp
