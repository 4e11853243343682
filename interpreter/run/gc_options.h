// GcOptions: when a run gives back the memory of variables that nothing reads any more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace interp {

// kFast: by the thread that ends the last use. kEvent: a thread of its own waits for the devices
// first.
enum class GcPolicy : int8_t { kFast, kEvent };

struct GcOptions {
  GcPolicy policy = GcPolicy::kFast;
  size_t threshold_bytes = 0;  // 0 and 1: give each buffer back at once
};

}  // namespace interp
