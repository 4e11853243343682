// Collectives as calls of NCCL.
#pragma once

#include <cuda_runtime.h>

#include "core/comm/collectives.h"
#include "core/device/cuda/nccl_library.h"
#include "core/status.h"

namespace interp::cuda {

// One rank of a communicator, and where it enqueues.
struct NcclPlace {
  ncclComm_t comm = nullptr;
  int size = 1;
  cudaStream_t stream = nullptr;
};

// Unimplemented for what NCCL does not compute: values of 16-bit integers, bools and complex
// numbers made one.
absl::Status CheckNcclCall(const CommCall& call);

// Enqueues the call: kAllReduce, kReduce, kBroadcast, kAllGather without `counts`, kReduceScatter
// or kAllToAll, the latter not in place. REQUIRES: CheckNcclCall, more than no elements.
ncclResult_t StartNcclCall(const NcclLibrary& nccl, const CommCall& call, const NcclPlace& place);

}  // namespace interp::cuda
