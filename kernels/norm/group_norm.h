// group_norm and instance_norm: attributes and shapes, for both directions.
#pragma once

#include <algorithm>

#include "core/attr_reader.h"
#include "core/op_context.h"
#include "kernels/conv/image.h"

namespace interp::nn {

struct GroupNormAttrs {
  float epsilon = 1e-5F;
  int64_t groups = 0;  // 0: one per channel
  bool channels_last_dims = false;
  bool instance = false;  // Mean and Variance are vectors, Variance is 1 / sqrt(variance + epsilon)
};

inline GroupNormAttrs ReadGroupNorm(AttrReader& reader) {
  GroupNormAttrs attrs;
  attrs.epsilon = reader.Float("epsilon", 1e-5F);
  attrs.groups = reader.Int("groups", 1);
  if (attrs.groups < 1) reader.Fail(absl::StrCat("attribute 'groups' is ", attrs.groups));
  attrs.channels_last_dims = HasChannelsLastDims(reader.String("data_layout", "NCHW"));
  return attrs;
}

inline GroupNormAttrs ReadInstanceNorm(AttrReader& reader) {
  GroupNormAttrs attrs;
  attrs.epsilon = reader.Float("epsilon", 1e-5F);
  attrs.instance = true;
  return attrs;
}

// The sizes of one case.
struct GroupSizes {
  int64_t channels = 0;
  int64_t groups = 0;
  Shape statistics;  // of Mean and Variance
};

// Checks X and the vectors with one element a channel, which are the inputs [1, end).
inline absl::StatusOr<GroupSizes> ResolveGroups(const OpContext& ctx, int end) {
  const auto& attrs = ctx.attrs<GroupNormAttrs>();
  const Shape& x = ctx.input(0).shape;
  if (x.rank() < 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected at least 2 dims");
  }
  const int64_t channels = attrs.channels_last_dims ? x.back() : x[1];
  const int64_t groups = attrs.groups == 0 ? channels : attrs.groups;
  if (groups > channels || channels % std::max<int64_t>(groups, 1) != 0) {
    return InvalidArgument("attribute 'groups' is ", groups, " for ", channels, " channels of 'X' ",
                           ToString(x));
  }
  constexpr absl::string_view kNames[] = {"X", "Scale", "Bias"};
  for (int slot = 1; slot < end; ++slot) {
    const Tensor* vector = ctx.optional_input(slot);
    if (vector == nullptr || vector->numel() == channels) continue;
    return InvalidArgument("input '", kNames[slot], "' is ", DescribeType(*vector), ", expected [",
                           channels, "]");
  }
  return GroupSizes{channels, groups,
                    attrs.instance ? Shape{x[0] * channels} : Shape{x[0], groups}};
}

}  // namespace interp::nn
