// kSlow: for tests that have to do less where everything takes longer.
#pragma once

namespace interp::testing {

// Sanitizers take ten times as long.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSlow = true;
#else
inline constexpr bool kSlow = false;
#endif

}  // namespace interp::testing
