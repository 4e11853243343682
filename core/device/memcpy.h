// memcpy_h2d, memcpy_d2h, memcpy_p2p: X -> Out, the same tensor in the memory of another place.
#pragma once

#include "core/op_def.h"

namespace interp {

// Definitions for any registry. On a device they enqueue a copy on the instruction's stream,
// between whatever places X and Out have; on the host (in programs that were saved for an
// accelerator) they copy at once. What has no value (the result of a branch that did not run) gives
// none. memcpy_p2p copies from one device to another of its kind and has no row for the host.
// (Paddle: memcpy_h2d_op.cc, memcpy_d2h_op.cc.)
OpDef MemcpyHostToDevice();
OpDef MemcpyDeviceToHost();
OpDef MemcpyPeerToPeer();

}  // namespace interp
