// Attributes of norms: what the ops and their gradients share.
#pragma once

#include "absl/strings/str_cat.h"
#include "kernels/math/reduction.h"
#include "kernels/util/shape_args.h"

namespace interp {

struct PNormAttrs {
  ReductionAttrs reduction;  // first: DimsOf reads it
  float order = 2;
  float epsilon = 1e-12F;  // of the gradient

  static PNormAttrs Read(AttrReader& attrs) {
    PNormAttrs parsed;
    parsed.order = attrs.Float("porder", 2.0f);
    parsed.epsilon = attrs.Float("epsilon", 1e-12F);
    parsed.reduction.keep_dim = attrs.Bool("keepdim", false);
    const int64_t axis = attrs.Long("axis", -1);
    if (!attrs.Bool("asvector", false)) parsed.reduction.dims = {axis};
    return parsed;
  }
};

inline ReductionAttrs ReadLogSumExpAttrs(AttrReader& attrs) {
  ReductionAttrs parsed;
  parsed.dims = attrs.Ints("axis", {0});
  parsed.keep_dim = attrs.Bool("keepdim", false);
  if (attrs.Bool("reduce_all", false)) parsed.dims.clear();
  return parsed;
}

// Of the op `norm`.
struct NormAttrs {
  int64_t axis = -1;
  float epsilon = 1e-10f;

  static NormAttrs Read(AttrReader& attrs) {
    return {attrs.Long("axis", -1), attrs.Float("epsilon", 1e-10f)};
  }
};

struct ClipByNormAttrs {
  float max_norm;
  static ClipByNormAttrs Read(AttrReader& attrs) {
    const float max_norm = attrs.Float("max_norm", 0.0f);
    if (!(max_norm > 0)) {
      attrs.Fail(absl::StrCat("attribute 'max_norm' is ", max_norm, ", expected more than 0"));
    }
    return {max_norm};
  }
};

// The shape of Norm: that of X with 1 in place of the dimension.
inline absl::StatusOr<Shape> NormShape(const NormAttrs& attrs, const Shape& x) {
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(attrs.axis, x.rank()));
  Shape norm = x;
  norm[axis] = 1;
  return norm;
}

}  // namespace interp
