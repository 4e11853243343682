#include "core/storage/lasting_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "core/storage/aligned_memory.h"
#include "core/storage/asan_poison.h"
#include "core/storage/pool.h"

namespace interp {
namespace {

constexpr size_t kFirstSpan = size_t{1} << 20;
constexpr size_t kSpan = size_t{8} << 20;
constexpr size_t kHeap = kHugePageBytes;  // arrays of this size have huge pages of their own
constexpr size_t kWorthACall = size_t{64} << 10;  // to give back

// Takes the whole pages of a range that nobody uses any more out of memory.
void DropPages(char* begin, size_t bytes) {
  // The system would round a length up to a page of its own.
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = RoundUp(reinterpret_cast<uintptr_t>(begin), page);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(begin) + bytes) & ~(page - 1);
  // A failure costs memory until the span goes.
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace

LastingMemory::~LastingMemory() {
  for (const Span& span : spans_) Unmap(span);
}

absl::StatusOr<void*> LastingMemory::Take(size_t bytes) {
  if (bytes < kHeap) {
    const std::scoped_lock lock(mutex_);
    if (char* address = TakeFromLast(RoundUp(bytes, kBufferAlignment))) {
      INTERP_UNPOISON(address, bytes);
      return address;
    }
  }
  return MakeHostMemory(HostMemory::kOrdinary)->Take(bytes);
}

// Null where the system gives no more address space.
char* LastingMemory::TakeFromLast(size_t bytes) {
  if (spans_.empty() || spans_.back().bytes - spans_.back().used < bytes) {
    const bool first = spans_.empty() && bytes <= kFirstSpan;
    const Span span = Map(first ? kFirstSpan : kSpan, /*huge_pages=*/!first);
    if (span.begin == nullptr) return nullptr;
    spans_.push_back(span);
  }
  Span& span = spans_.back();
  char* const address = span.begin + span.used;
  span.used += bytes;
  ++span.live;
  return address;
}

void LastingMemory::Give(void* address, size_t bytes) {
  char* const begin = static_cast<char*>(address);
  Span gone;
  {
    const std::scoped_lock lock(mutex_);
    const auto span = std::find_if(spans_.begin(), spans_.end(), [&](const Span& s) {
      return s.begin <= begin && begin < s.begin + s.bytes;
    });
    if (span != spans_.end()) {
      INTERP_POISON(begin, RoundUp(bytes, kBufferAlignment));
      if (--span->live > 0) {
        if (bytes >= kWorthACall) DropPages(begin, bytes);
        return;
      }
      gone = *span;
      spans_.erase(span);
    }
  }
  if (gone.begin != nullptr) return Unmap(gone);
  MakeHostMemory(HostMemory::kOrdinary)->Give(address, bytes);
}

size_t LastingMemory::span_bytes() const {
  const std::scoped_lock lock(mutex_);
  size_t bytes = 0;
  for (const Span& span : spans_) bytes += span.bytes;
  return bytes;
}

// Without memory where the system refuses.
LastingMemory::Span LastingMemory::Map(size_t bytes, bool huge_pages) {
  const size_t spare = huge_pages ? kHugePageBytes : 0;  // to begin with a whole huge page
  void* const mapped = mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, /*offset=*/0);
  if (mapped == MAP_FAILED) return {};
  char* begin = static_cast<char*>(mapped);
  if (huge_pages) {
    const size_t before = RoundUp(reinterpret_cast<uintptr_t>(begin), kHugePageBytes) -
                          reinterpret_cast<uintptr_t>(begin);
    if (before > 0) munmap(begin, before);
    if (before < spare) munmap(begin + before + bytes, spare - before);
    begin += before;
#ifdef MADV_HUGEPAGE
    madvise(begin, bytes, MADV_HUGEPAGE);  // a refusal changes nothing
#endif
  }
  INTERP_POISON(begin, bytes);
  return {.begin = begin, .bytes = bytes};
}

void LastingMemory::Unmap(const Span& span) {
  INTERP_UNPOISON(span.begin, span.bytes);
  munmap(span.begin, span.bytes);
}

Allocator& LastingAllocator() {
  static auto& allocator = *new std::shared_ptr<Pool>(*Pool::Create(
      std::make_shared<LastingMemory>(), {.kind = PoolKind::kNaive, .name = "lasting"}));
  return *allocator;
}

}  // namespace interp
