// How much of a long test is run.
#pragma once

#include <cstdlib>

namespace interp::testing {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// `sample` with sanitizers, which take ten times as long, and where INTERP_TEST_SAMPLE is set, as
// .ci/run sets it; else `all`.
template <typename Count>
Count SampleOf(Count sample, Count all) {
  static const bool kSampled = kSanitized || std::getenv("INTERP_TEST_SAMPLE") != nullptr;
  return kSampled ? sample : all;
}

}  // namespace interp::testing
