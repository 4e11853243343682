#include "core/storage/aligned_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/buffer.h"

namespace interp {

void* AllocateAligned(size_t bytes) {
  const size_t alignment = bytes < kHugePageBytes ? kBufferAlignment : kHugePageBytes;
  const size_t units = std::max<size_t>(1, (bytes + kBufferAlignment - 1) / kBufferAlignment);
  const size_t rounded = units * kBufferAlignment;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, rounded) != 0) return nullptr;
    // Whole huge pages alone, so that no more is used than asked for. A refusal changes nothing.
#ifdef MADV_HUGEPAGE
  const size_t whole = rounded / kHugePageBytes * kHugePageBytes;
  if (whole > 0) madvise(memory, whole, MADV_HUGEPAGE);
#endif
  return memory;
}

void PopulatePages([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  constexpr size_t kWorthACall = size_t{32} << 10;
  constexpr uintptr_t kPage = 4096;  // where pages are larger the call is refused
  if (bytes < kWorthACall) return;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (begin + kPage - 1) / kPage * kPage;
  const uintptr_t end = (begin + bytes) / kPage * kPage;
  madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE);
#endif
}

}  // namespace interp
