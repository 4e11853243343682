// LastingMemory: where many arrays lie that last as long as a model: parameters, and what kernels
// make of them.
//
// Most are too small for a huge page of their own, and the first touch of each page of 4 KiB costs
// a virtual machine microseconds: a quarter of a first run. So they lie one behind the other in
// spans of address space that ask for huge pages. Within a span nothing is handed out twice: what
// is given back goes to the system page by page, and a span, of 8 MiB, with the last of it.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "core/buffer.h"
#include "core/storage/memory_source.h"

namespace interp {

class LastingMemory final : public MemorySource {
 public:
  ~LastingMemory() override;
  std::string name() const override { return "lasting"; }
  // The first MiB has ordinary pages, so that small models stay small. Beyond it less than one
  // huge page is taken in vain. Arrays of 2 MiB and more, and all where the system gives no address
  // space, are of the heap.
  absl::StatusOr<void*> Take(size_t bytes) override;
  void Give(void* address, size_t bytes) override;

  // Address space of spans, for tests.
  size_t span_bytes() const;

 private:
  struct Span {
    char* begin = nullptr;
    size_t bytes = 0;
    size_t used = 0;  // from `begin` on
    size_t live = 0;  // arrays
  };

  static Span Map(size_t bytes, bool huge_pages);
  static void Unmap(const Span& span);
  char* TakeFromLast(size_t bytes);  // REQUIRES: mutex_ is held.

  mutable std::mutex mutex_;
  std::vector<Span> spans_;  // guarded by mutex_; arrays are taken from the last one
};

// On LastingMemory, with statistics of its own and without a limit. Lives for ever.
Allocator& LastingAllocator();

}  // namespace interp
