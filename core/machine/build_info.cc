#include "core/machine/build_info.h"

#include <dlfcn.h>

namespace interp {
namespace {

absl::string_view LevelOfCode() {
#if defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
  return "x86-64-v4";
#elif defined(__AVX2__) && defined(__FMA__) && defined(__BMI2__)
  return "x86-64-v3";
#elif defined(__SSE4_2__) && defined(__POPCNT__)
  return "x86-64-v2";
#elif defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

}  // namespace

const BuildInfo& GetBuildInfo() {
  static const BuildInfo kInfo = {.version = INTERP_VERSION,
                                  .level = LevelOfCode(),
                                  .compiler = INTERP_COMPILER,
                                  .build = INTERP_BUILD,
                                  .libraries = INTERP_LIBRARIES,
                                  .kernels = INTERP_WITH_KERNELS != 0};
  return kInfo;
}

std::string LibraryPath() {
  Dl_info found;
  if (dladdr(reinterpret_cast<const void*>(&GetBuildInfo), &found) == 0) return "";
  return found.dli_fname == nullptr ? "" : found.dli_fname;
}

}  // namespace interp
