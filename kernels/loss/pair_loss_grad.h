// Gradients of losses of two tensors, element by element (pair_loss.h): a struct with a call
// operator for both elements and the gradient of the loss:
//
//   struct HingeGrad {
//     static constexpr PairLossGradSlots kSlots = {"Logits", "Labels", "Loss@GRAD", "Logits@GRAD"};
//     template <typename T>
//     T operator()(T x, T label, T grad) const { ... }
//   };
//   INTERP_REGISTER_OP(PairLossGradDef<HingeGrad>("hinge_loss_grad"));
#pragma once

#include "kernels/loss/pair_loss.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/gradient_shape.h"

namespace interp {

struct PairLossGradSlots {
  absl::string_view input;
  absl::string_view target;
  absl::string_view loss_grad;
  absl::string_view input_grad;
};

namespace pair_loss {
inline constexpr int kLossGrad = 2;
inline constexpr int kInputGrad = 0;
}  // namespace pair_loss

template <typename Op>
absl::Status InferPairLossGrad(InferContext& ctx) {
  constexpr PairLossGradSlots kSlots = Op::kSlots;
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, pair_loss::kTarget, kSlots.target, 0, kSlots.input));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, pair_loss::kLossGrad, kSlots.loss_grad,
                                            ctx.input(pair_loss::kInput).shape));
  ctx.ShareShape(pair_loss::kInput, pair_loss::kInputGrad);
  return absl::OkStatus();
}

template <typename Op, typename T>
absl::Status PairLossGrad(KernelContext& ctx) {
  pair_loss::MapElements<Op>(
      ctx, ctx.input(pair_loss::kInput).numel(),
      ctx.output(pair_loss::kInputGrad).mutable_data<T>(), ctx.input(pair_loss::kInput).data<T>(),
      ctx.input(pair_loss::kTarget).data<T>(), ctx.input(pair_loss::kLossGrad).data<T>());
  return absl::OkStatus();
}

template <typename Op>
OpDef PairLossGradDef(absl::string_view type) {
  return pair_loss::WithAttrs<Op>(OpDef{
      .type = type,
      .inputs = {{Op::kSlots.input}, {Op::kSlots.target}, {Op::kSlots.loss_grad}},
      .outputs = {{Op::kSlots.input_grad}},
      .infer = InferPairLossGrad<Op>,
      .kernels = {{DType::kFloat32, PairLossGrad<Op, float>},
                  {DType::kFloat64, PairLossGrad<Op, double>}},
      .inplace = {{pair_loss::kInput, pair_loss::kInputGrad},
                  {pair_loss::kLossGrad, pair_loss::kInputGrad}},
  });
}

}  // namespace interp
