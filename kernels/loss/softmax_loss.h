// What softmax_with_cross_entropy and its gradient have in common.
#pragma once

#include "core/op_def.h"
#include "kernels/loss/loss_attrs.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/shape_args.h"

namespace interp {

// The shape of Loss, or an error where the labels do not fit Logits.
inline absl::StatusOr<Shape> SoftmaxLossShape(const SoftmaxLossAttrs& attrs, const Tensor& logits,
                                              const Tensor& label) {
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(attrs.axis, logits.shape.rank()));
  Shape loss = logits.shape;
  loss[axis] = 1;
  INTERP_RETURN_IF_ERROR(CheckInputShape(label, "Label", attrs.soft_label ? logits.shape : loss));
  if (attrs.soft_label && label.dtype != logits.dtype) {
    return InvalidArgument("input 'Label' is ", DescribeType(label), ", expected ",
                           Name(logits.dtype));
  }
  return loss;
}

}  // namespace interp
