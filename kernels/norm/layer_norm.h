// The attributes of layer_norm and the check of its inputs, which its gradient shares.
#pragma once

#include "absl/strings/str_cat.h"
#include "core/attr_reader.h"
#include "core/op_context.h"
#include "core/status.h"
#include "kernels/norm/statistics_dtype.h"

namespace interp::nn {

struct LayerNormAttrs {
  float epsilon = 1e-5F;
  int begin = 1;  // -1, which passes write: the last dim, whatever the rank
  bool keeps_lod = true;

  // The first dim that is normalised.
  int FirstDim(const Shape& x) const { return begin < 0 ? x.rank() + begin : begin; }
};

inline LayerNormAttrs ReadLayerNorm(AttrReader& reader) {
  LayerNormAttrs attrs;
  attrs.epsilon = reader.Float("epsilon", 1e-5F);
  attrs.begin = reader.Int("begin_norm_axis", 1);
  attrs.keeps_lod = reader.Bool("keeps_lod", true);
  if (attrs.begin < 1 && attrs.begin != -1) {
    reader.Fail(absl::StrCat("attribute 'begin_norm_axis' is ", attrs.begin));
  }
  return attrs;
}

// Checks X, Scale and Bias, which are the inputs 0, 1 and 2. Those of bfloat16 data are float32.
inline absl::Status CheckLayerNorm(const InferContext& ctx) {
  const Shape& x = ctx.input(0).shape;
  const int begin = ctx.attrs<LayerNormAttrs>().FirstDim(x);
  if (begin < 0 || begin >= x.rank()) {
    return InvalidArgument("attribute 'begin_norm_axis' is ", begin, " for input 'X' ",
                           ToString(x));
  }
  const int64_t columns = x.numel(begin, x.rank());
  const DType dtype = StatisticsDType(ctx.input(0).dtype);
  for (const int slot : {1, 2}) {
    const Tensor* vector = ctx.optional_input(slot);
    if (vector == nullptr) continue;
    if (vector->numel() == columns && vector->dtype == dtype) continue;
    return InvalidArgument("input '", slot == 1 ? "Scale" : "Bias", "' is ", DescribeType(*vector),
                           ", expected ", columns, " elements of ", Name(dtype), " for 'X' ",
                           ToString(x));
  }
  return absl::OkStatus();
}

}  // namespace interp::nn
