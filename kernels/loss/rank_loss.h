// rank_loss: what the op and its gradient share.
#pragma once

#include "core/op_def.h"

namespace interp {

// InvalidArgument unless the first three inputs, Label, Left and Right of rank_loss are [n] or [n,
// 1], each as it likes.
inline absl::Status CheckRankLossInputs(const InferContext& ctx) {
  constexpr absl::string_view kNames[] = {"Label", "Left", "Right"};
  const int64_t rows = ctx.input(0).numel();
  for (int slot = 0; slot < 3; ++slot) {
    const Shape& shape = ctx.input(slot).shape;
    const bool column = shape.rank() == 1 || (shape.rank() == 2 && shape[1] == 1);
    if (column && shape[0] == rows) continue;
    return InvalidArgument("input '", kNames[slot], "' has shape ", ToString(shape),
                           ", expected [n] or [n,1], with the n of 'Label'");
  }
  return absl::OkStatus();
}

}  // namespace interp
