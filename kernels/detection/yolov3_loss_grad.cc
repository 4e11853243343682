// yolov3_loss_grad: X@GRAD. Where several boxes are in one cell with one anchor the last one
// counts, as in Paddle, while all of them count in the loss.
#include <algorithm>

#include "kernels/detection/yolov3_loss.h"
#include "kernels/util/check_shape.h"

namespace interp {
namespace {

constexpr int kLossGrad = 4;
constexpr int kObjectnessMask = 5;
constexpr int kMatchMask = 6;
constexpr int kXGrad = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckYoloInputs(ctx));
  const Shape& x = ctx.input(kYoloX).shape;
  const int64_t masks = ctx.attrs<YoloLossAttrs>().num_masks();
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kLossGrad, "Loss@GRAD", {x[0]}));
  INTERP_RETURN_IF_ERROR(
      CheckInputShape(ctx, kObjectnessMask, "ObjectnessMask", {x[0], masks, x[2], x[3]}));
  INTERP_RETURN_IF_ERROR(
      CheckInputShape(ctx, kMatchMask, "GTMatchMask", {x[0], ctx.input(kYoloBox).shape[1]}));
  if (ctx.input(kMatchMask).dtype != DType::kInt32) {
    return InvalidArgument("input 'GTMatchMask' is ", Name(ctx.input(kMatchMask).dtype),
                           ", expected int32");
  }
  ctx.ShareShape(kYoloX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
T CrossEntropyGrad(T x, T label) {
  return T{1} / (T{1} + std::exp(-x)) - label;
}

// What a matched box gives: `x` and `grad` stand at its prediction.
template <typename T>
void LocationAndClasses(const YoloLossAttrs& attrs, const YoloMap& map, const YoloTarget<T>& target,
                        int32_t label, T score, T loss, const T* x, T* grad) {
  const int64_t step = map.cells;
  const auto sign = [](T difference) { return difference > 0 ? T{1} : T{-1}; };
  grad[0] = CrossEntropyGrad(x[0], target.x) * target.scale * loss;
  grad[step] = CrossEntropyGrad(x[step], target.y) * target.scale * loss;
  grad[2 * step] = sign(x[2 * step] - target.w) * target.scale * loss;
  grad[3 * step] = sign(x[3 * step] - target.h) * target.scale * loss;
  for (int64_t c = 0; c < map.classes; ++c) {
    const T wanted = static_cast<T>(c == label ? attrs.positive() : attrs.negative());
    grad[(5 + c) * step] = CrossEntropyGrad(x[(5 + c) * step], wanted) * score * loss;
  }
}

template <typename T>
absl::Status Matches(const KernelContext& ctx, const YoloMap& map, int64_t n, const T* x, T* grad) {
  const auto& attrs = ctx.attrs<YoloLossAttrs>();
  const int64_t num_boxes = ctx.input(kYoloBox).shape[1];
  const Tensor* const scores = ctx.optional_input(kYoloScore);
  const T loss = ctx.input(kLossGrad).data<T>()[n];
  for (int64_t b = n * num_boxes; b < (n + 1) * num_boxes; ++b) {
    const int32_t mask = ctx.input(kMatchMask).data<int32_t>()[b];
    if (mask < 0) continue;
    if (mask >= map.masks) {
      return InvalidArgument("input 'GTMatchMask' has the value ", mask, ", expected -1 to ",
                             map.masks - 1);
    }
    const T* const values = ctx.input(kYoloBox).data<T>() + 4 * b;
    const YoloBox<T> box = {values[0], values[1], values[2], values[3]};
    INTERP_ASSIGN_OR_RETURN(const int64_t cell, CellOf(map, box));
    const T score = scores == nullptr ? T{1} : scores->data<T>()[b];
    const int64_t at = map.at(n, mask, cell);
    LocationAndClasses(attrs, map, MakeYoloTarget(attrs, map, box, attrs.mask[mask], cell, score),
                       ctx.input(kYoloLabel).data<int32_t>()[b], score, loss, x + at, grad + at);
  }
  return absl::OkStatus();
}

template <typename T>
void Objectness(const YoloMap& map, int64_t n, T loss, const T* mask, const T* x, T* grad) {
  for (int64_t m = 0; m < map.masks; ++m) {
    const int64_t at = map.at(n, m, 4 * map.cells);
    for (int64_t cell = 0; cell < map.cells; ++cell) {
      const T weight = mask[map.mask_at(n, m, cell)];
      if (weight > static_cast<T>(1e-5)) {
        grad[at + cell] = CrossEntropyGrad(x[at + cell], T{1}) * weight * loss;
      } else if (weight > T{-0.5}) {
        grad[at + cell] = CrossEntropyGrad(x[at + cell], T{0}) * loss;
      }
    }
  }
}

template <typename T>
absl::Status YoloLossGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kYoloX);
  const YoloMap map(ctx.attrs<YoloLossAttrs>(), x.shape);
  T* const grad = ctx.output(kXGrad).mutable_data<T>();
  std::fill_n(grad, x.numel(), T{0});
  for (int64_t n = 0; n < x.shape[0]; ++n) {
    INTERP_RETURN_IF_ERROR(Matches(ctx, map, n, x.data<T>(), grad));
    Objectness(map, n, ctx.input(kLossGrad).data<T>()[n], ctx.input(kObjectnessMask).data<T>(),
               x.data<T>(), grad);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "yolov3_loss_grad",
    .inputs = {{"X"},
               {"GTBox"},
               {"GTLabel", kAnyDType},
               {"GTScore", kOptional},
               {"Loss@GRAD"},
               {"ObjectnessMask"},
               {"GTMatchMask", kAnyDType}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<YoloLossAttrs, ReadYoloLossAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, YoloLossGrad<float>}, {DType::kFloat64, YoloLossGrad<double>}},
});

}  // namespace
}  // namespace interp
