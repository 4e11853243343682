// Long work in pieces, so that its temporary memory has a bound.
#pragma once

#include <algorithm>
#include <cstdint>

namespace interp::cuda {

// Most bytes of temporary memory that a row takes for what it could also do in pieces. It holds
// enough to keep a GPU busy. Under emulation small tests are to have several pieces.
#ifdef INTERP_CUDA_EMULATION
inline constexpr int64_t kMostPieceBytes = int64_t{4} << 10;
#else
inline constexpr int64_t kMostPieceBytes = int64_t{64} << 20;
#endif

// How many of `count` parts, of which each takes `bytes` > 0, are in memory at a time: at least 1.
inline int64_t PartsAtOnce(int64_t count, int64_t bytes) {
  return std::clamp<int64_t>(kMostPieceBytes / bytes, 1, std::max<int64_t>(count, 1));
}

}  // namespace interp::cuda
