// AllocateAligned: memory of the system for buffers and packed weights.
#pragma once

#include <cstddef>

namespace interp {

// Uninitialised memory of at least `bytes`, aligned to kBufferAlignment; std::free gives it back.
// Large ranges ask for huge pages, where Linux gives them on request: kernels that walk large
// images lose a tenth of their time to page walks without, and a first run half of its page faults.
// Null when the system has no more. Thread-safe.
void* AllocateAligned(size_t bytes);

}  // namespace interp
