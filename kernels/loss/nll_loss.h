// nll_loss: attributes, shapes and the loop over labels of both directions.
#pragma once

#include "core/op_def.h"
#include "kernels/loss/loss_attrs.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/indices.h"
#include "kernels/util/read_choice.h"

namespace interp {

struct NllAttrs {
  LossReduction reduction = LossReduction::kMean;
  int64_t ignore_index = -100;

  static NllAttrs Read(AttrReader& reader) {
    return {ReadChoice<LossReduction>(reader, "reduction",
                                      {{"mean", LossReduction::kMean},
                                       {"none", LossReduction::kNone},
                                       {"sum", LossReduction::kSum}}),
            reader.Long("ignore_index", -100)};
  }
};

// The first inputs of nll_loss and of its gradient: X [N,C,...], Label [N,...] or, of rows
// alone, [N,1], Weight [C].
inline constexpr int kNllX = 0;
inline constexpr int kNllLabel = 1;
inline constexpr int kNllWeight = 2;

// Checks them; the shape of Out.
inline absl::StatusOr<Shape> ResolveNll(const OpContext& ctx) {
  const Shape& x = ctx.input(kNllX).shape;
  if (x.rank() != 2 && x.rank() != 4) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected [N,C] or [N,C,H,W]");
  }
  Shape expected = {x[0]};
  for (int i = 2; i < x.rank(); ++i) expected.push_back(x[i]);
  // Labels of rows may be a column.
  if (x.rank() != 2 || !(ctx.input(kNllLabel).shape == Shape({x[0], 1}))) {
    INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kNllLabel, "Label", expected));
  }
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kNllWeight, "Weight", {x[1]}));
  return ctx.attrs<NllAttrs>().reduction == LossReduction::kNone ? expected : Shape{};
}

// Calls body(i, where in X the probability of label i lies, its weight) for each label; a position
// of -1 says that it is ignored.
template <typename T, typename Body>
absl::Status ForEachNllLabel(const OpContext& ctx, const Body& body) {
  const Shape& x = ctx.input(kNllX).shape;
  const Tensor& label = ctx.input(kNllLabel);
  const Tensor* const weight = ctx.optional_input(kNllWeight);
  const int64_t ignore = ctx.attrs<NllAttrs>().ignore_index;
  const int64_t inner = x.numel(2, x.rank());
  return WithIndices(label, "Label", [&](const auto* labels) -> absl::Status {
    for (int64_t i = 0; i < label.numel(); ++i) {
      if (labels[i] == ignore) {
        body(i, int64_t{-1}, T{0});
        continue;
      }
      if (labels[i] < 0 || labels[i] >= x[1]) {
        return InvalidArgument("'Label' has the value ", labels[i], " at position ", i,
                               ", expected 0 to ", x[1] - 1, " or ", ignore);
      }
      const int64_t at = (i / inner * x[1] + labels[i]) * inner + i % inner;
      body(i, at, weight == nullptr ? T{1} : weight->data<T>()[labels[i]]);
    }
    return absl::OkStatus();
  });
}

}  // namespace interp
