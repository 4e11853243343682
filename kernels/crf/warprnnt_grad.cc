// warprnnt_grad: input@GRAD = warprnntgrad * loss@GRAD of the sequence, see warprnnt.cc.
#include "core/op_def.h"
#include "kernels/util/parallel_for.h"

namespace interp::crf {
namespace {

constexpr int kInput = 0;
constexpr int kWarpRnntGrad = 2;
constexpr int kLossGrad = 3;
constexpr int kInputGrad = 0;

absl::Status InferWarpRnntGrad(InferContext& ctx) {
  const Shape& input = ctx.input(kInput).shape;
  const Tensor& grad = ctx.input(kWarpRnntGrad);
  const Tensor& loss_grad = ctx.input(kLossGrad);
  if (input.rank() != 4 || grad.shape != input || loss_grad.shape.CheckedNumel() != input[0]) {
    return InvalidArgument("inputs 'warprnntgrad' and 'loss@GRAD' are ", DescribeType(grad),
                           " and ", DescribeType(loss_grad), " for 'input' ", ToString(input));
  }
  ctx.ShareShape(kInput, kInputGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status WarpRnntGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kWarpRnntGrad);
  if (x.numel() == 0) return absl::OkStatus();
  const int64_t size = x.numel() / x.shape[0];
  const T* const factors = ctx.input(kLossGrad).data<T>();
  const T* const from = x.data<T>();
  T* const to = ctx.output(kInputGrad).mutable_data<T>();
  ParallelFor(ctx.num_threads(), x.shape[0], GrainFor(size), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t k = i * size; k < (i + 1) * size; ++k) to[k] = from[k] * factors[i];
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "warprnnt_grad",
    .inputs = {{"input", kNoNeedBuffer},
               {"input_lengths", kAnyDType | kNoNeedBuffer},
               {"warprnntgrad"},
               {"loss@GRAD"}},
    .outputs = {{"input@GRAD"}},
    .infer = InferWarpRnntGrad,
    .kernels = {{DType::kFloat32, WarpRnntGrad<float>}, {DType::kFloat64, WarpRnntGrad<double>}},
});

}  // namespace
}  // namespace interp::crf
