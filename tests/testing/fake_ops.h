// A registry of op definitions without kernels, so that tests of passes and plans depend on no
// kernel: the slots, pairs and flags of some well-known ops, nothing else.
#pragma once

#include "core/op_def.h"

namespace interp::testing {

const OpRegistry& FakeOps();

}  // namespace interp::testing
