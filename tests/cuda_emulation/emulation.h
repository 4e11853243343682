// Machine: a computer with emulated GPUs, for tests.
//
// While one lives, the calls of <cuda_runtime.h> that is beside this file act on it; without one
// they answer as a computer without a driver does. Streams and events stand on the executors of the
// simulated device (core/device/sim_executor.h), so work runs when its stream's turn comes, in an
// order that the seed gives; nothing but events orders two streams, the null stream included. One
// kernel or copy runs at a time on all GPUs together. Memory of a GPU cannot be touched while none
// runs.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/device/sim_device.h"
#include "tests/cuda_emulation/finding.h"

namespace interp::cuda_emulation {

// Whether accesses of kernels are checked; not in builds with a sanitizer, which would see the same
// instrumentation.
#ifdef INTERP_CUDA_SHADOW
inline constexpr bool kShadow = true;
#else
inline constexpr bool kShadow = false;
#endif

struct Options {
  int devices = 1;  // 0: a driver and no GPU
  // The order of streams, blocks and threads.
  uint64_t seed = 0;
  SimOptions::Execution execution = SimOptions::Execution::kInterleaved;
  int64_t max_delay_ns = 0;                  // before kernels and copies, with kThreads
  size_t capacity_bytes = size_t{64} << 20;  // of each device
};

// Thread-safety: all methods from any thread.
class Machine {
 public:
  // FailedPrecondition while another one lives; InvalidArgument for more than kMaxDevices GPUs.
  static absl::StatusOr<std::unique_ptr<Machine>> Start(const Options& options);
  // Ends what is left of streams, events and memory.
  virtual ~Machine() = default;

  // The `nth` call of `name` from now on (1: the next) returns `error` and does nothing. Launches
  // have the name "cudaLaunchKernel". After an error that a GPU does not survive, such as
  // cudaErrorLaunchFailure, the device of the call is lost.
  virtual void FailCall(const std::string& name, int nth, cudaError_t error) = 0;

  // How often each function was called since the start or ResetCalls.
  virtual std::map<std::string, int64_t> calls() const = 0;
  int64_t calls(const std::string& name) const;
  virtual void ResetCalls() = 0;
  // How many of the asynchronous copies were from or to memory that is not pinned, and so were not
  // asynchronous. Counted with the calls.
  virtual int64_t pageable_copies() const = 0;

  // What kernels and copies that ran so far did wrong; forgotten then. Waits for nothing.
  virtual std::vector<Finding> TakeFindings() = 0;
};

}  // namespace interp::cuda_emulation
