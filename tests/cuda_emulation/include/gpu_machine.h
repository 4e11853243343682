// The machine that tests of CUDA run on: an emulated one. That of a computer with GPUs is
// tests/cuda/gpu/gpu_machine.h; the include path decides.
#pragma once

#include "tests/cuda_emulation/emulation.h"

namespace interp::cuda_test {

using cuda_emulation::Finding;
using cuda_emulation::Machine;
using MachineOptions = cuda_emulation::Options;

}  // namespace interp::cuda_test
