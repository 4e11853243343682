#include "core/machine/processor.h"

#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

// Compilers learnt its name late.
bool ProcessorHasBf16Tiles() {
  constexpr unsigned kFeatures = 7;
  constexpr unsigned kAmxBf16 = 1U << 22;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(kFeatures, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAmxBf16) != 0;
}

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

int64_t L2CacheBytes() {
  static const int64_t kBytes = [] {
#ifdef _SC_LEVEL2_CACHE_SIZE
    const int64_t told = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (told > 0) return told;
#endif
    return int64_t{1} << 20;
  }();
  return kBytes;
}

}  // namespace interp
