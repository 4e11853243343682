// What pow and its gradient have in common: the factor.
#pragma once

#include "core/op_def.h"
#include "kernels/util/arithmetic.h"

namespace interp {

struct PowAttrs {
  float factor;
  static PowAttrs Read(AttrReader& attrs) { return {attrs.Float("factor", 1.0f)}; }
};

// InvalidArgument when FactorTensor in slot `slot` has not one element.
inline absl::Status CheckFactor(const OpContext& ctx, int slot) {
  const Tensor* factor = ctx.optional_input(slot);
  if (factor == nullptr || factor->numel() == 1) return absl::OkStatus();
  return InvalidArgument("input 'FactorTensor' is ", DescribeType(*factor),
                         ", expected one element");
}

// The tensor wins over the attribute.
template <typename T>
ComputeType<T> FactorOf(const OpContext& ctx, int slot) {
  using C = ComputeType<T>;
  const Tensor* tensor = ctx.optional_input(slot);
  return tensor != nullptr ? static_cast<C>(*tensor->data<T>())
                           : Convert<C>(ctx.attrs<PowAttrs>().factor);
}

}  // namespace interp
