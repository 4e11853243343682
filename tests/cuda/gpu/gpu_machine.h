// The machine that tests of CUDA run on: this computer with its GPUs. The emulated one is
// tests/cuda_emulation/include/gpu_machine.h; the include path decides.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/device/sim_device.h"
#include "core/status.h"

namespace interp::cuda_test {

// Of what a test asks an emulated machine for, GPUs have their number alone: the order of their
// work is their own, so the rest is not looked at.
struct MachineOptions {
  int devices = 1;
  uint64_t seed = 0;
  SimOptions::Execution execution = SimOptions::Execution::kInterleaved;
  int64_t max_delay_ns = 0;
};

struct Finding {
  std::string text;
};

// Thread-safety: all methods from any thread.
class Machine {
 public:
  // NotFound where there are fewer GPUs, or none that can be used.
  static absl::StatusOr<std::unique_ptr<Machine>> Start(const MachineOptions& options) {
    int count = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
      return NotFound("no GPU can be used: ", cudaGetErrorString(error), " (",
                      cudaGetErrorName(error), ")");
    }
    if (count < options.devices) {
      return NotFound("there are ", count, " GPUs, the test is for ", options.devices);
    }
    return std::make_unique<Machine>();
  }

  // The error that work of the current device left, if any; forgotten then where the device
  // survives it. Waits for nothing. compute-sanitizer tells more.
  std::vector<Finding> TakeFindings() {
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return {};
    return {{std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error)}};
  }
};

}  // namespace interp::cuda_test
