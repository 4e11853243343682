#include "core/buffer.h"

#include <memory>

#include "core/storage/pool.h"

namespace interp {
namespace {

uint64_t NextSerial() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

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
  static auto& allocator =
      *new std::shared_ptr<Pool>(Pool::OnHost({.kind = PoolKind::kNaive, .name = "system"}));
  return *allocator;
}

}  // namespace interp
