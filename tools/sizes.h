// Numbers as people write them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/status.h"

namespace interp {

// "512", "64K", "1.5G" (powers of 1024, an optional "B" or "iB" behind) -> bytes.
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);
// 1536 -> "1.50 KiB"
std::string FormatBytes(uint64_t bytes);

// 1, "epoch" -> "1 epoch"; 2, "fetch" -> "2 fetches".
std::string Counted(int64_t count, absl::string_view noun);

// "250ms", "2.5s", "1m" or plain seconds. Always positive.
absl::StatusOr<std::chrono::nanoseconds> ParseDuration(absl::string_view text);

// "1x3x224x224" -> dims; an empty text is rank 0.
absl::StatusOr<std::vector<int64_t>> ParseDims(absl::string_view text);

}  // namespace interp
