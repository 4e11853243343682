// Gradients of ops that take elements out of an array.
#pragma once

#include "absl/types/span.h"
#include "kernels/control_flow/gradient_values.h"

namespace interp {

// The array in slot `output` becomes zeros like the one in slot `input`, but for its elements
// first, first + step, ..., which are the gradients, as far as these have a value. InvalidArgument
// where one is of another shape. REQUIRES: there are as many elements.
inline absl::Status SpreadGradients(KernelContext& ctx, int input, int output, int64_t first,
                                    int64_t step, absl::Span<const Tensor> gradients) {
  Variable& spread = ctx.output_variable(output);
  INTERP_RETURN_IF_ERROR(control_flow::FillZerosLike(ctx, ctx.input_variable(input), spread));
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!control_flow::HasValue(gradients[i])) continue;
    const int64_t at = first + static_cast<int64_t>(i) * step;
    const Tensor& taken = ctx.input_array(input)[at];
    if (!(gradients[i].shape == taken.shape)) {
      return InvalidArgument("element ", i, " of 'Out@GRAD' is ", DescribeType(gradients[i]),
                             ", but element ", at, " of 'Input' is ", DescribeType(taken));
    }
    spread.array[at] = gradients[i];
  }
  return absl::OkStatus();
}

// InvalidArgument where the array of gradients is longer than what was taken, `taken` elements.
inline absl::Status CheckNumGradients(absl::Span<const Tensor> gradients, int64_t taken) {
  if (std::ssize(gradients) <= taken) return absl::OkStatus();
  return InvalidArgument("the array 'Out@GRAD' has ", gradients.size(), " elements, but the slice ",
                         taken);
}

}  // namespace interp
