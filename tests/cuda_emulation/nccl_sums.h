// Values of several ranks made one, as the emulated NCCL does it.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <string>
#include <vector>

namespace interp::cuda_emulation {

size_t ElementBytes(ncclDataType_t type);

// parts[first] op parts[first + 1] op ..., around the ranks, rounded after each step: in an order
// of its own, as NCCL has, which no result is to depend on but by rounding.
std::string ReduceRanks(ncclDataType_t type, ncclRedOp_t operation,
                        const std::vector<std::string>& parts, size_t first);

}  // namespace interp::cuda_emulation
