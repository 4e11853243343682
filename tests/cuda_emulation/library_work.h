// LibraryWork: what a call of a library for GPUs, such as cuBLASLt, does when its stream's turn
// comes. The emulated libraries compute on the host; streams, shadow and faults see their work as
// they see kernels and copies.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/device/sim_executor.h"

namespace interp::cuda_emulation {

struct LibraryWork {
  // Memory of a device that is read or written as a whole; without bytes it may be null.
  struct Range {
    const void* address = nullptr;
    size_t bytes = 0;
    bool write = false;
  };

  std::string name;  // of the call: "cublasLtMatmul"
  std::vector<Range> ranges = {};
  // Gets where the host finds each of the ranges.
  std::function<void(absl::Span<char* const>)> run = {};
};

// Counts a call on the machine that lives: the error that was asked for, or that of a lost device;
// cudaErrorInsufficientDriver without a machine.
cudaError_t EnterLibrary(const std::string& name);
// A finding if a handle of a library that `call` ends has another device than the current one, or a
// stream that is gone; null: of none. Nothing without a machine.
void LeaveLibrary(const std::string& call, int device, cudaStream_t stream);
// The device that such a call acts on. REQUIRES: a machine lives.
int LibraryDevice();

// Enqueues work for a call that has entered.
cudaError_t EnqueueLibraryWork(LibraryWork work, cudaStream_t stream);
// The same, and the stream waits behind the work until somebody finishes the point that `give`
// gets, before the work can run. No graph holds it.
cudaError_t EnqueueHeldLibraryWork(
    LibraryWork work, cudaStream_t stream,
    const std::function<void(const std::shared_ptr<SimPoint>&)>& give);

}  // namespace interp::cuda_emulation
