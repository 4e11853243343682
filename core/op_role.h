// OpRole: what part of training an op is.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/program.h"

namespace interp {

// Values of attribute `op_role`, as in Paddle's op_proto_maker.h.
enum OpRole : int32_t {
  kForwardRole = 0,
  kBackwardRole = 1,
  kOptimizeRole = 2,
  kLearningRateRole = 16,
  kLossRole = 256,  // a bit: the op that makes the loss, or the first of its gradient
};

// The attribute that names the device of an op, as Paddle's device_guard writes it: gpu:1.
inline constexpr absl::string_view kDeviceAttr = "op_device";

// The attribute's value; kForwardRole for an op without.
int32_t RoleOf(const Op& op);
// Whether the op updates parameters or computes the rate for it: no part of a micro-batch.
bool IsUpdate(const Op& op);
// Whether the op computes gradients.
bool IsBackward(const Op& op);

void SetRole(Op& op, int32_t role);

}  // namespace interp
