// What the CUDA runtime says, as a status.
#pragma once

#include <cuda_runtime.h>

#include "core/status.h"

namespace interp::cuda {

// `what` was tried: "cannot launch a kernel". ResourceExhausted where memory is short, else
// Internal. The runtime forgets the error, which a later launch would be blamed for.
absl::Status ToStatus(cudaError_t error, absl::string_view what);

// cudaEventQuery, after which the runtime knows of no error: that an event has not happened is one
// to it, and somebody else's next launch would be blamed for it.
cudaError_t QueryEvent(cudaEvent_t event);

// Whether nothing runs on a GPU any more after such an error, as the context of the process is
// lost (CUDA Runtime API, "Data types used by CUDA Runtime", cudaError).
bool LosesDevice(cudaError_t error);

}  // namespace interp::cuda
