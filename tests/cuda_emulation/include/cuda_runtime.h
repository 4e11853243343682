// The part of CUDA that interp uses, for a C++ compiler: found before the real <cuda_runtime.h>, it
// lets `.cu` files and the host code around them compile and run where there is no GPU.
//
// Names, values and meanings are those of the CUDA Runtime API and the CUDA C++ Programming Guide.
// Shared memory has no keyword here: kernels declare it by the macros of kernels/cuda/launch.h.
#pragma once

#define INTERP_CUDA_EMULATION 1

#include "tests/cuda_emulation/device_code.h"
#include "tests/cuda_emulation/runtime_api.h"
