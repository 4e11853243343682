// partial_concat, partial_sum: attributes and shapes of both directions.
#pragma once

#include "core/attr_reader.h"
#include "core/op_def.h"
#include "kernels/util/all_present.h"

namespace interp {

struct PartialAttrs {
  int64_t start = 0;    // counted from the end below 0
  int64_t length = -1;  // below 0: up to the end
};

inline PartialAttrs ReadPartialAttrs(AttrReader& reader) {
  return {reader.Int("start_index", 0), reader.Int("length", -1)};
}

// The columns [begin, begin + count) that are taken of each of the inputs, matrices of one shape.
struct PartialColumns {
  int64_t inputs = 0;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t begin = 0;
  int64_t count = 0;
};

// Those of variadic input 0. Errors: there is none, shapes that differ, columns that are not there.
inline absl::StatusOr<PartialColumns> ResolvePartial(const OpContext& ctx) {
  const auto& attrs = ctx.attrs<PartialAttrs>();
  const auto inputs = ctx.inputs(0);
  if (inputs.empty()) return InvalidArgument("there is no input 'X'");
  INTERP_RETURN_IF_ERROR(CheckAllPresent(inputs, "X"));
  const Shape& shape = inputs[0]->shape;
  for (const Tensor* const x : inputs) {
    if (x->shape.rank() == 2 && x->shape == shape) continue;
    return InvalidArgument("inputs 'X' have shapes ", ToString(shape), " and ", ToString(x->shape),
                           ", expected matrices of one shape");
  }
  const int64_t begin = attrs.start < 0 ? attrs.start + shape[1] : attrs.start;
  const int64_t count = attrs.length < 0 ? shape[1] - begin : attrs.length;
  if (begin < 0 || begin >= shape[1] || count > shape[1] - begin) {
    return InvalidArgument("start_index ", attrs.start, " and length ", attrs.length, " leave the ",
                           shape[1], " columns of input 'X'");
  }
  return PartialColumns{std::ssize(inputs), shape[0], shape[1], begin, count};
}

}  // namespace interp
