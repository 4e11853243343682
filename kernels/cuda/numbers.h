// Numbers of the host, such as the offsets of a LoD, in memory of a GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/types/span.h"
#include "core/status.h"

namespace interp::cuda {

// Writes `numbers` to memory of the device. They travel by value, as arguments of launches, one
// launch for 480 of them, so the host waits for nothing and `numbers` may change at once. Enqueued
// on `stream`.
absl::Status StoreNumbers(absl::Span<const int64_t> numbers, int64_t* to, cudaStream_t stream);

}  // namespace interp::cuda
