// Constants in other forms than their own: on a device, in another layout or dtype.
#pragma once

#include "core/op_def.h"
#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/plan/plan.h"
#include "interpreter/run/device_set.h"

namespace interp {

// A variable among those of all blocks.
struct BlockVar {
  int32_t block = 0;
  VarId var = -1;
};

// The value of `var`, a variable with PlanVar::copy_of, made of that constant's value: once for all
// clones, which share it by way of `shared`. Layout and dtype are changed on the host, by the ops
// `transfer_layout` and `cast`. `devices` may be null for plans without. Errors: those of the ops
// and of the allocators.
absl::StatusOr<Tensor> ConvertedConstant(BlockVar at, const PlanVar& var, const Tensor& constant,
                                         DeviceSet* devices, const OpRegistry& ops,
                                         SharedConstants& shared);

}  // namespace interp
