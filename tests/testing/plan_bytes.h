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

// Makes size and checksum in the header of a plan file right again: of one without packed
// constants, or where `packed`, which leaves a size that is possible as it is. REQUIRES:
// bytes.size() >= kPlanHeaderBytes.
inline void SealPlan(std::string& bytes, bool packed = false) {
  uint64_t size = bytes.size() - kPlanHeaderBytes;
  uint64_t said = 0;
  std::memcpy(&said, bytes.data() + kPlanSizeOffset, sizeof(said));
  if (packed && said < size) size = said;
  const uint64_t checksum = XXH64(bytes.data() + kPlanHeaderBytes, size, /*seed=*/1);
  std::memcpy(bytes.data() + kPlanSizeOffset, &size, sizeof(size));
  std::memcpy(bytes.data() + kPlanChecksumOffset, &checksum, sizeof(checksum));
}

}  // namespace interp::testing
