#include "kernels/linalg/matrices.h"

#include <algorithm>

#include "kernels/util/broadcast.h"

namespace interp::linalg {

absl::Status CheckMatrices(const OpContext& ctx, int slot, absl::string_view name) {
  const Shape& shape = ctx.input(slot).shape;
  if (shape.rank() >= 2) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(shape), ", expected matrices");
}

absl::Status CheckSquare(const OpContext& ctx, int slot, absl::string_view name) {
  const Shape& shape = ctx.input(slot).shape;
  if (shape.rank() >= 2 && shape.back(1) == shape.back(2)) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(shape),
                         ", expected square matrices");
}

absl::Status CheckShape(const OpContext& ctx, int slot, absl::string_view name,
                        const Shape& expected) {
  const Shape& shape = ctx.input(slot).shape;
  if (shape == expected) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(shape), ", expected ",
                         ToString(expected));
}

absl::StatusOr<BatchPairs> PairBatches(const Shape& x, const Shape& y) {
  BatchPairs pairs;
  INTERP_ASSIGN_OR_RETURN(pairs.batch, BroadcastShapes(x, y, kTrailingAxis));
  const int rank = pairs.batch.rank();
  const auto steps_of = [rank](const Shape& shape) {
    DimStrides steps = {};
    int64_t step = 1;
    for (int i = shape.rank() - 1; i >= 0; step *= shape[i--]) {
      steps[rank - shape.rank() + i] = shape[i] == 1 ? 0 : step;
    }
    return steps;
  };
  const DimStrides x_steps = steps_of(x);
  const DimStrides y_steps = steps_of(y);
  for (int i = 0; i < rank; ++i) pairs.loops.Add({pairs.batch[i], x_steps[i], y_steps[i]});
  return pairs;
}

}  // namespace interp::linalg
