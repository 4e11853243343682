// memcpy_h2d, memcpy_d2h: X -> Out, the same tensor in the memory of another place.
#pragma once

#include "core/op_def.h"

namespace interp {

// Definitions for any registry. On a device they enqueue a copy on the instruction's stream,
// between whatever places X and Out have; on the host (in programs that were saved for an
// accelerator) they copy at once. What has no value (the result of a branch that did not run) gives
// none. (Paddle: memcpy_h2d_op.cc, memcpy_d2h_op.cc.)
OpDef MemcpyHostToDevice();
OpDef MemcpyDeviceToHost();

}  // namespace interp
