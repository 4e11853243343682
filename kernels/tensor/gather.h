// The axis of gather, index_select and their gradients.
#pragma once

#include "core/op_def.h"
#include "kernels/util/shape_args.h"

namespace interp {

struct GatherAttrs {
  int64_t axis = 0;
};

inline GatherAttrs ReadGatherAttrs(AttrReader& reader) { return {reader.Long("axis", 0)}; }
inline GatherAttrs ReadSelectAttrs(AttrReader& reader) { return {reader.Long("dim", 0)}; }

// The axis of the input X in slot `x`; the tensor in slot `axis` wins over the attribute.
inline absl::StatusOr<int> GatherAxis(const OpContext& ctx, int x, int axis) {
  INTERP_ASSIGN_OR_RETURN(const int64_t given,
                          ReadInteger(ctx, axis, "Axis", ctx.attrs<GatherAttrs>().axis));
  return ResolveAxis(given, ctx.input(x).shape.rank());
}

}  // namespace interp
