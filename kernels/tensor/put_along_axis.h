// What put_along_axis and its gradient have in common: the attributes, and the walk over Index.
#pragma once

#include <array>

#include "core/op_def.h"
#include "kernels/util/indices.h"
#include "kernels/util/read_choice.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp::put_along_axis {

enum class Reduce : uint8_t { kAssign, kAdd, kMultiply, kMean, kMax, kMin };

struct Attrs {
  int64_t axis = 0;
  Reduce reduce = Reduce::kAssign;
  bool include_self = true;
};

inline Attrs ReadAttrs(AttrReader& reader) {
  Attrs attrs = {.axis = reader.Long("Axis", 0)};
  attrs.include_self = reader.Bool("Include_self", true);
  attrs.reduce = ReadChoice<Reduce>(reader, "Reduce",
                                    {{"assign", Reduce::kAssign},
                                     {"add", Reduce::kAdd},
                                     {"mul", Reduce::kMultiply},
                                     {"multiply", Reduce::kMultiply},
                                     {"mean", Reduce::kMean},
                                     {"amax", Reduce::kMax},
                                     {"amin", Reduce::kMin}});
  return attrs;
}

// InvalidArgument unless Index fits into Value, and into Input but for the axis.
inline absl::Status CheckShapes(const Attrs& attrs, const Shape& input, const Shape& index,
                                const Shape& value) {
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(attrs.axis, input.rank(), "Axis"));
  bool fits = index.rank() == input.rank() && index.rank() == value.rank();
  for (int i = 0; fits && i < index.rank(); ++i) {
    fits = index[i] <= value[i] && (i == axis || index[i] <= input[i]);
  }
  if (fits) return absl::OkStatus();
  return InvalidArgument("'Index' has shape ", ToString(index), ", expected to fit into 'Value' ",
                         ToString(value), ", and into 'Input' ", ToString(input), " but for axis ",
                         axis);
}

// Calls body(indices, axis), an absl::Status, on the elements of Index, which are within the axis
// of Input. REQUIRES: CheckShapes has accepted the shapes.
template <typename Body>
absl::Status WithIndex(const KernelContext& ctx, const Shape& input, const Tensor& index,
                       const Body& body) {
  const int axis = *NormalizeAxis(ctx.attrs<Attrs>().axis, input.rank());
  return WithIndices(index, "Index", [&](const auto* indices) -> absl::Status {
    INTERP_RETURN_IF_ERROR(CheckIndices(indices, index.numel(), input[axis], "Index"));
    return body(indices, axis);
  });
}

// Calls visit(at, from) for every element of Index in memory order: the offsets of what it names in
// Input and of the element of Value at its own place.
// REQUIRES: CheckShapes has accepted the shapes, and indices are within the axis.
template <typename Index, typename Visit>
void ForEachPut(const Tensor& index, const Index* values, int axis, const Tensor& input,
                const Tensor& value, const Visit& visit) {
  const Shape& shape = index.shape;
  const int rank = shape.rank();
  const Strides value_steps = StridesOf(value);
  const int64_t axis_step = StridesOf(input)[axis];
  Strides input_steps = StridesOf(input);
  input_steps[axis] = 0;
  std::array<int64_t, kMaxRank> at = {};
  int64_t base = 0;
  int64_t from = 0;
  const int64_t count = shape.numel();
  for (int64_t n = 0; n < count; ++n) {
    visit(base + static_cast<int64_t>(values[n]) * axis_step, from);
    for (int d = rank - 1; d >= 0; --d) {
      base += input_steps[d];
      from += value_steps[d];
      if (++at[d] < shape[d]) break;
      base -= input_steps[d] * shape[d];
      from -= value_steps[d] * shape[d];
      at[d] = 0;
    }
  }
}

}  // namespace interp::put_along_axis
