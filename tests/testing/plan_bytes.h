// Plan files changed by hand.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <string>

namespace interp::testing {

inline constexpr size_t kPlanHeaderBytes = 32;
inline constexpr size_t kPlanSizeOffset = 16;
inline constexpr size_t kPlanChecksumOffset = 24;

// Makes size and checksum in the header of a plan file right again.
// REQUIRES: bytes.size() >= kPlanHeaderBytes.
inline void SealPlan(std::string& bytes) {
  const uint64_t size = bytes.size() - kPlanHeaderBytes;
  const uint64_t checksum = XXH64(bytes.data() + kPlanHeaderBytes, size, /*seed=*/1);
  std::memcpy(bytes.data() + kPlanSizeOffset, &size, sizeof(size));
  std::memcpy(bytes.data() + kPlanChecksumOffset, &checksum, sizeof(checksum));
}

}  // namespace interp::testing
