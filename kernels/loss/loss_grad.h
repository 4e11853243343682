// What the gradients of losses have in common.
//
// Of a loss of two tensors, element by element (pair_loss.h), the gradient is a struct with a call
// operator for both elements and the gradient of the loss:
//
//   struct HingeGrad {
//     static constexpr PairLossGradSlots kSlots = {"Logits", "Labels", "Loss@GRAD", "Logits@GRAD"};
//     template <typename T>
//     T operator()(T x, T label, T grad) const { ... }
//   };
//   INTERP_REGISTER_OP(PairLossGradDef<HingeGrad>("hinge_loss_grad"));
#pragma once

#include <type_traits>

#include "kernels/loss/pair_loss.h"
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
  INTERP_RETURN_IF_ERROR(CheckLossShape(ctx, pair_loss::kTarget, kSlots.target, kSlots.input));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, pair_loss::kLossGrad, kSlots.loss_grad,
                                            ctx.input(pair_loss::kInput).shape));
  ctx.ShareShape(pair_loss::kInput, pair_loss::kInputGrad);
  return absl::OkStatus();
}

template <typename Op, typename T>
absl::Status PairLossGrad(KernelContext& ctx) {
  const T* const x = ctx.input(pair_loss::kInput).data<T>();
  const T* const target = ctx.input(pair_loss::kTarget).data<T>();
  const T* const grad = ctx.input(pair_loss::kLossGrad).data<T>();
  T* const x_grad = ctx.output(pair_loss::kInputGrad).mutable_data<T>();
  Op op = {};
  if constexpr (!std::is_empty_v<Op>) op = ctx.attrs<Op>();
  ParallelFor(ctx.num_threads(), ctx.input(pair_loss::kInput).numel(), pair_loss::kGrain,
              [=](int64_t begin, int64_t end) {
                const Op local = op;
#pragma GCC ivdep
                for (int64_t i = begin; i < end; ++i) x_grad[i] = local(x[i], target[i], grad[i]);
              });
  return absl::OkStatus();
}

template <typename Op>
OpDef PairLossGradDef(absl::string_view type) {
  OpDef def{
      .type = type,
      .inputs = {{Op::kSlots.input}, {Op::kSlots.target}, {Op::kSlots.loss_grad}},
      .outputs = {{Op::kSlots.input_grad}},
      .infer = InferPairLossGrad<Op>,
      .kernels = {{DType::kFloat32, PairLossGrad<Op, float>},
                  {DType::kFloat64, PairLossGrad<Op, double>}},
      .inplace = {{pair_loss::kInput, pair_loss::kInputGrad},
                  {pair_loss::kLossGrad, pair_loss::kInputGrad}},
  };
  if constexpr (!std::is_empty_v<Op>) def.parse = ParseAttrs<Op, pair_loss::Read<Op>>;
  return def;
}

// Outputs 0 and 1, where they are wanted: value(i) and -value(i) for i in [0, n), the gradients of
// the operands of a loss of a difference.
template <typename T, typename Value>
void WriteOpposites(KernelContext& ctx, int64_t n, const Value& value) {
  Tensor* const plus_out = ctx.optional_output(0);
  Tensor* const minus_out = ctx.optional_output(1);
  T* const plus = plus_out != nullptr ? plus_out->mutable_data<T>() : nullptr;
  T* const minus = minus_out != nullptr ? minus_out->mutable_data<T>() : nullptr;
  ParallelFor(ctx.num_threads(), n, pair_loss::kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T v = value(i);
      if (plus != nullptr) plus[i] = v;
      if (minus != nullptr) minus[i] = -v;
    }
  });
}

}  // namespace interp
