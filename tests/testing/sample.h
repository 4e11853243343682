// How much of a long test is run, and which random cases.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

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

// As many seeds from 1 on, or from INTERP_TEST_SEED on where that is set: cases that nobody has run
// yet.
inline std::vector<uint64_t> Seeds(uint64_t count) {
  const char* const first = std::getenv("INTERP_TEST_SEED");
  std::vector<uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), first == nullptr ? 1 : std::stoull(first));
  return seeds;
}

}  // namespace interp::testing
