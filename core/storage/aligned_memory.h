// Memory of the system for buffers and packed weights.
#pragma once

#include <cstddef>

namespace interp {

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
