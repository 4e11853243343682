// RandomNumbers: what a kernel that draws random numbers is given.
#pragma once

#include <cuda_runtime.h>

#include "core/resource/random_stream.h"
#include "core/status.h"

namespace interp {
class KernelContext;
}

namespace interp::cuda {

struct RandomNumbers {
  RandomStream stream = RandomStream(RandomState{}, /*op=*/0);
  // In memory of the GPU, of a launch that is repeated with other numbers: wins over `stream`.
  const RandomStream* address = nullptr;

  // What to draw from in this run.
  __device__ RandomStream OfRun() const { return address == nullptr ? stream : *address; }
};

// Those of a row's op in this run, and of every run that repeats the launch in a graph, which is
// why rows do not ask `ctx` itself. REQUIRES: OpDef::random.
absl::StatusOr<RandomNumbers> RandomNumbersOf(const KernelContext& ctx);

}  // namespace interp::cuda
