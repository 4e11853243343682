// The shapes that inputs of ops must have.
#pragma once

#include "absl/strings/string_view.h"
#include "core/op_context.h"

namespace interp {

// InvalidArgument unless the input called `name` has the shape `expected`.
inline absl::Status CheckInputShape(const Tensor& input, absl::string_view name,
                                    const Shape& expected) {
  if (input.shape == expected) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(input.shape), ", expected ",
                         ToString(expected));
}
inline absl::Status CheckInputShape(const OpContext& ctx, int slot, absl::string_view name,
                                    const Shape& expected) {
  return CheckInputShape(ctx.input(slot), name, expected);
}
// The same for an input that need not be there.
inline absl::Status CheckOptionalShape(const OpContext& ctx, int slot, absl::string_view name,
                                       const Shape& expected) {
  return ctx.has_input(slot) ? CheckInputShape(ctx, slot, name, expected) : absl::OkStatus();
}

// InvalidArgument unless input `slot` has the shape of input `other_slot`, where it is there.
inline absl::Status CheckSameShape(const OpContext& ctx, int slot, absl::string_view name,
                                   int other_slot, absl::string_view other) {
  const Tensor* const input = ctx.optional_input(slot);
  const Shape& expected = ctx.input(other_slot).shape;
  if (input == nullptr || input->shape == expected) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(input->shape),
                         ", expected that of '", other, "', ", ToString(expected));
}

// InvalidArgument unless input `slot` has `least` to `most` dimensions, which `dims` says in words:
// "[batch, heads, rows, columns]".
inline absl::Status CheckRank(const OpContext& ctx, int slot, absl::string_view name, int least,
                              int most, absl::string_view dims) {
  const Shape& shape = ctx.input(slot).shape;
  if (shape.rank() >= least && shape.rank() <= most) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(shape), ", expected ", dims);
}

// InvalidArgument unless the input, where there is one, has `count` elements, whatever its shape.
inline absl::Status CheckVector(const Tensor* vector, absl::string_view name, int64_t count) {
  if (vector == nullptr || vector->numel() == count) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(vector->shape), ", expected ",
                         count, " elements");
}
inline absl::Status CheckVector(const OpContext& ctx, int slot, absl::string_view name,
                                int64_t count) {
  return CheckVector(ctx.optional_input(slot), name, count);
}

}  // namespace interp
