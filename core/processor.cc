#include "core/processor.h"

namespace interp {

#if defined(__x86_64__)

absl::string_view ProcessorLevel() {
  // The features that tell processors of one level from those below it; no processor was sold with
  // these alone.
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : v2 ? "x86-64-v2" : "x86-64";
}

bool ProcessorHasBf16Products() { return __builtin_cpu_supports("avx512bf16"); }

bool ProcessorHasBf16Tiles() { return __builtin_cpu_supports("amx-bf16"); }

bool ProcessorHasInt8Products() { return __builtin_cpu_supports("avx512vnni"); }

#else

absl::string_view ProcessorLevel() {
#if defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

bool ProcessorHasBf16Products() { return false; }
bool ProcessorHasBf16Tiles() { return false; }
bool ProcessorHasInt8Products() { return false; }

#endif

}  // namespace interp
