// maxout: the attributes, and X as both directions see it.
#pragma once

#include "core/attr_reader.h"
#include "core/status.h"
#include "core/tensor.h"
#include "kernels/util/shape_args.h"

namespace interp::nn {

struct MaxoutAttrs {
  int64_t groups = 0;
  int64_t axis = 1;
};

inline MaxoutAttrs ReadMaxoutAttrs(AttrReader& reader) {
  const MaxoutAttrs attrs = {reader.Int("groups", 0), reader.Int("axis", 1)};
  if (attrs.groups < 2) {
    reader.Fail(absl::StrCat("attribute 'groups' is ", attrs.groups, ", expected more than 1"));
  }
  return attrs;
}

// X as [outer, channels, groups, inner]: the maximum is over groups.
struct MaxoutBlocks {
  int64_t rows = 0;  // outer * channels
  int64_t groups = 0;
  int64_t inner = 0;
  Shape out;
};

inline absl::StatusOr<MaxoutBlocks> ResolveMaxout(const MaxoutAttrs& attrs, const Shape& x) {
  if (x.rank() != 4) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected 4 dims");
  }
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(attrs.axis, x.rank()));
  if (axis != 1 && axis != 3) {
    return InvalidArgument("axis is ", attrs.axis, ", expected 1, 3 or -1");
  }
  if (x[axis] % attrs.groups != 0) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", dim ", axis,
                           " is no multiple of groups ", attrs.groups);
  }
  MaxoutBlocks blocks;
  blocks.out = x;
  blocks.out[axis] = x[axis] / attrs.groups;
  blocks.rows = x.numel(0, axis) * blocks.out[axis];
  blocks.groups = attrs.groups;
  blocks.inner = x.numel(axis + 1, x.rank());
  return blocks;
}

}  // namespace interp::nn
