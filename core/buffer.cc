#include "core/buffer.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace interp {
namespace {

size_t RoundUp(size_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

uint64_t NextSerial() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

static_assert(sizeof(Buffer) <= kBufferAlignment, "the header fills one alignment unit");

class MallocAllocator final : public Allocator {
 public:
  absl::StatusOr<BufferRef> Allocate(size_t size_bytes) override {
    const size_t rounded = RoundUp(size_bytes);
    void* block = rounded < size_bytes
                      ? nullptr
                      : std::aligned_alloc(kBufferAlignment, kBufferAlignment + rounded);
    if (block == nullptr) {
      return ResourceExhausted("cannot allocate ", size_bytes, " bytes: the system has no more");
    }
    auto* buffer = new (block) Buffer;
    buffer->data = static_cast<char*>(block) + kBufferAlignment;
    buffer->size_bytes = size_bytes;
    buffer->owner = this;
    buffer->serial = NextSerial();
    const size_t now = current_.fetch_add(rounded, std::memory_order_relaxed) + rounded;
    size_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
    allocations_.fetch_add(1, std::memory_order_relaxed);
    return BufferRef::First(buffer);
  }

  MemoryStats stats() const override {
    const size_t now = current_.load();
    return {.current_bytes = now,
            .peak_bytes = peak_.load(),
            .reserved_bytes = now,
            .allocations = allocations_.load()};
  }

  void ResetPeak() override { peak_.store(current_.load()); }

 private:
  void Free(Buffer* buffer) override {
    current_.fetch_sub(RoundUp(buffer->size_bytes), std::memory_order_relaxed);
    std::free(buffer);
  }

  std::atomic<size_t> current_{0};
  std::atomic<size_t> peak_{0};
  std::atomic<int64_t> allocations_{0};
};

class BorrowedOwner final : public Allocator {
 public:
  struct Borrowed : Buffer {
    std::function<void()> on_release;
  };

  absl::StatusOr<BufferRef> Allocate(size_t) override {
    return absl::InternalError("borrowed memory cannot be allocated");
  }
  MemoryStats stats() const override { return {}; }
  void ResetPeak() override {}

 private:
  void Free(Buffer* buffer) override {
    auto* borrowed = static_cast<Borrowed*>(buffer);
    if (borrowed->on_release) borrowed->on_release();
    delete borrowed;
  }
};

}  // namespace

void BufferRef::Drop(Buffer* buffer) {
  // acquire: the thread that frees must see the writes of all who dropped before. Who holds the
  // only reference has nobody to race with, and saves the read-modify-write.
  if (buffer->refs.load(std::memory_order_acquire) == 1 ||
      buffer->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    buffer->owner->Free(buffer);
  }
}

BufferRef BorrowBuffer(void* data, size_t size_bytes, bool writable,
                       std::function<void()> on_release) {
  static auto& owner = *new BorrowedOwner;
  auto* buffer = new BorrowedOwner::Borrowed;
  buffer->on_release = std::move(on_release);
  buffer->writable = writable;
  buffer->data = data;
  buffer->size_bytes = size_bytes;
  buffer->owner = &owner;
  buffer->serial = NextSerial();
  return BufferRef::First(buffer);
}

Allocator& SystemAllocator() {
  static auto& allocator = *new MallocAllocator;
  return allocator;
}

}  // namespace interp
