// softmax: Out = e^s / sum e^s and log_softmax: Out = s - log(sum e^s) along an axis, with
// s = max(X - max X, -64): Paddle's CPU kernels clip there.
#include "kernels/nn/softmax.h"

#include "core/op_def.h"
#include "kernels/util/shape_args.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(CheckAxis(ctx.attrs<SoftmaxAttrs>().axis, x, "X"));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T, bool kLog>
absl::Status Softmax(KernelContext& ctx) {
  RunSoftmax<T, kLog>(ctx.num_threads(), ctx.input(kX), ctx.attrs<SoftmaxAttrs>().axis,
                      ctx.output(kOut).mutable_data<T>());
  return absl::OkStatus();
}

template <bool kLog>
OpDef SoftmaxDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<SoftmaxAttrs, ReadSoftmax>,
      .infer = Infer,
      .kernels = {{DType::kFloat32, Softmax<float, kLog>},
                  {DType::kFloat64, Softmax<double, kLog>}},
      .layout = LayoutRule::kFollows,
      .inplace = {{kX, kOut}},
      .gradient = {.inputs = {"Out", "Out@GRAD"}, .outputs = {"X@GRAD"}},
  };
}

INTERP_REGISTER_OP(SoftmaxDef<false>("softmax"));
INTERP_REGISTER_OP(SoftmaxDef<true>("log_softmax"));

}  // namespace
}  // namespace interp::nn
