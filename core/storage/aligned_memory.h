// Memory of the system for buffers and packed weights.
#pragma once

#include <cstddef>

namespace interp {

// The least multiple of `unit`, a power of two, that is not below `bytes`. REQUIRES: it fits into a
// size_t.
constexpr size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) & ~(unit - 1); }

// What Linux gives on request instead of 512 usual pages.
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Uninitialised memory of at least `bytes`, aligned to kBufferAlignment; std::free gives it back.
// Large ranges ask for huge pages, where Linux gives them on request: kernels that walk large
// images lose a tenth of their time to page walks without, and a first run half of its page faults.
// Null when the system has no more. Thread-safe.
void* AllocateAligned(size_t bytes);

// Makes the whole pages of a range that is about to be written present at once, which takes half
// the time of a page fault each. Values stay. Does nothing for small ranges, nor where the system
// cannot. Thread-safe.
void PopulatePages(void* memory, size_t bytes);

}  // namespace interp
