// What clip and its gradient have in common: the bounds.
#pragma once

#include <limits>

#include "core/op_def.h"
#include "kernels/util/arithmetic.h"

namespace interp {

struct ClipAttrs {
  double min, max;
  static ClipAttrs Read(AttrReader& attrs) {
    return {attrs.Double("min", std::numeric_limits<float>::lowest()),
            attrs.Double("max", std::numeric_limits<float>::max())};
  }
};

// Slots of the tensors Min and Max, which win over the attributes.
struct BoundSlots {
  int min, max;
};

// InvalidArgument when one of the tensors has not one element.
inline absl::Status CheckBounds(const OpContext& ctx, BoundSlots slots) {
  for (const int slot : {slots.min, slots.max}) {
    const Tensor* bound = ctx.optional_input(slot);
    if (bound == nullptr || bound->numel() == 1) continue;
    return InvalidArgument("input '", slot == slots.min ? "Min" : "Max", "' is ",
                           DescribeType(*bound), ", expected one element");
  }
  return absl::OkStatus();
}

template <typename C>
struct Bounds {
  C min, max;
};

// Of an op on tensors of T.
template <typename T>
Bounds<ComputeType<T>> BoundsOf(const OpContext& ctx, BoundSlots slots) {
  using C = ComputeType<T>;
  const auto bound = [&](int slot, double attr) {
    const Tensor* tensor = ctx.optional_input(slot);
    return tensor != nullptr ? static_cast<C>(*tensor->data<T>()) : Saturate<C>(attr);
  };
  const ClipAttrs& attrs = ctx.attrs<ClipAttrs>();
  return {bound(slots.min, attrs.min), bound(slots.max, attrs.max)};
}

}  // namespace interp
