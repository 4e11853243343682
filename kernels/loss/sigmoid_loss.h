// What sigmoid_cross_entropy_with_logits and its gradient have in common.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/op_def.h"
#include "kernels/loss/loss_attrs.h"
#include "kernels/loss/pair_loss.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/data_or_null.h"

namespace interp {

// What Out is divided by. Where no label counts that is 0, and Out NaN, as in Paddle.
template <typename T>
T CountLabels(const T* label, int64_t n, int32_t ignore_index) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    count += std::abs(label[i] - static_cast<T>(ignore_index)) > T(1e-6) ? 1 : 0;
  }
  return static_cast<T>(count);
}

// Positions of input slots of both.
namespace sigmoid_loss {
inline constexpr int kX = 0;
inline constexpr int kLabel = 1;
inline constexpr int kPosWeight = 2;
}  // namespace sigmoid_loss

// InvalidArgument unless Label, and pos_weight where there is one, have the shape of X.
inline absl::Status CheckSigmoidLossInputs(const InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, sigmoid_loss::kLabel, "Label", 0, "X"));
  if (!ctx.has_input(sigmoid_loss::kPosWeight)) return absl::OkStatus();
  return CheckSameShape(ctx, sigmoid_loss::kPosWeight, "pos_weight", 0, "X");
}

// Those inputs, and what losses and gradients are divided by.
template <typename T>
struct SigmoidLossInputs {
  int64_t n = 0;
  const T* x = nullptr;
  const T* label = nullptr;
  const T* weight = nullptr;  // null: 1
  T count = 1;

  explicit SigmoidLossInputs(const KernelContext& ctx)
      : n(ctx.input(sigmoid_loss::kX).numel()),
        x(ctx.input(sigmoid_loss::kX).data<T>()),
        label(ctx.input(sigmoid_loss::kLabel).data<T>()),
        weight(InputOrNull<T>(ctx, sigmoid_loss::kPosWeight)) {
    const auto& attrs = ctx.attrs<SigmoidCrossEntropyAttrs>();
    if (attrs.normalize) count = CountLabels(label, n, attrs.ignore_index);
  }
};

}  // namespace interp
