// A few numbers of the host in memory of a GPU; number_lists.h takes any number of them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/types/span.h"
#include "core/status.h"

namespace interp::cuda {

// Arguments of a launch take 4 KiB on any GPU.
inline constexpr int64_t kNumbersPerLaunch = 480;

// Writes `numbers` to memory of the device. They travel by value, as arguments of launches, so the
// host waits for nothing and `numbers` may change at once. Enqueued on `stream`.
absl::Status StoreByValue(absl::Span<const int64_t> numbers, int64_t* to, cudaStream_t stream);

}  // namespace interp::cuda
