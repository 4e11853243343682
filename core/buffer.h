// Buffer: reference-counted raw memory, and the allocators that hand it out.
//
// Every buffer has a small header. Allocators put it right before the bytes, so that a buffer costs
// one allocation; memory that is only borrowed (a mapped file, the caller's array) gets a header of
// its own from `BorrowBuffer`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/place.h"
#include "core/status.h"

namespace interp {

class Allocator;

// Alignment of every buffer an allocator hands out: a cache line, and oneDNN's preference.
inline constexpr size_t kBufferAlignment = 64;

// Header of a block of memory. Only allocators and BufferRef touch it.
struct Buffer {
  std::atomic<int32_t> refs{0};
  bool writable = true;  // false: memory of a mapped file or of the caller; never an output
  // Memory of a mapped file that nobody writes to: elements lie as the file has them, aligned or
  // not, and who has read them may drop their pages (core/constant_elements.h).
  bool in_file = false;
  Place place = {};  // of `data`; the header itself is the host's
  void* data = nullptr;
  size_t size_bytes = 0;  // what was asked for
  Allocator* owner = nullptr;
  // Tells this allocation from earlier ones at the same address.
  uint64_t serial = 0;
};

// Shared ownership of a Buffer. Copies may be made and dropped on any thread (the count is atomic:
// the last drop synchronises with all earlier ones); one BufferRef object is not for concurrent
// use.
class BufferRef {
 public:
  BufferRef() = default;
  // Takes a new reference.
  explicit BufferRef(Buffer* buffer) : buffer_(buffer) {
    if (buffer_ != nullptr) buffer_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  // Takes the first reference of a buffer that nobody else knows.
  static BufferRef First(Buffer* buffer) {
    buffer->refs.store(1, std::memory_order_relaxed);
    BufferRef ref;
    ref.buffer_ = buffer;
    return ref;
  }
  BufferRef(const BufferRef& other) : BufferRef(other.buffer_) {}
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef() { reset(); }

  void reset() {
    if (Buffer* buffer = std::exchange(buffer_, nullptr)) Drop(buffer);
  }
  Buffer* get() const { return buffer_; }
  Buffer* operator->() const { return buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }
  // True when no other reference exists, so that the bytes may be overwritten.
  bool unique() const {
    return buffer_ != nullptr && buffer_->refs.load(std::memory_order_acquire) == 1;
  }

 private:
  static void Drop(Buffer* buffer);
  Buffer* buffer_ = nullptr;
};

// The size that statistics and limits count: at least one unit, for empty buffers are blocks, too.
// 0 for a size so large that it cannot be rounded.
constexpr size_t CountedBytes(size_t size_bytes) {
  const size_t rest = size_bytes % kBufferAlignment;
  if (rest != 0) return size_bytes - rest + kBufferAlignment;  // 0 when it overflows
  return size_bytes == 0 ? kBufferAlignment : size_bytes;
}

// What an allocator has handed out. Bytes are as requested, rounded up to kBufferAlignment.
struct MemoryStats {
  size_t current_bytes = 0;        // handed out now
  size_t peak_bytes = 0;           // most ever handed out at once since ResetPeak
  size_t peak_variable_bytes = 0;  // the same without workspace; pools of hosts alone count it
  size_t reserved_bytes = 0;       // held from the system, headers and free blocks included
  int64_t allocations = 0;         // calls of Allocate that succeeded
};

// Thread-safety: all methods may be called from any thread. Must outlive its buffers.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // A writable buffer of `size_bytes` (0 is allowed), aligned to kBufferAlignment, with undefined
  // content. Errors: ResourceExhausted when the limit or the system's memory is reached.
  virtual absl::StatusOr<BufferRef> Allocate(size_t size_bytes) = 0;
  virtual MemoryStats stats() const = 0;
  // Makes the peaks equal to what is handed out now.
  virtual void ResetPeak() = 0;
  // So many bytes more (or fewer) of what is handed out from here on are workspace.
  virtual void NoteWorkspace(std::ptrdiff_t /*bytes*/) {}

 private:
  friend class BufferRef;
  // Takes back a buffer whose last reference went away.
  virtual void Free(Buffer* buffer) = 0;
};

// Wraps memory owned by somebody else; `on_release` (may be empty) runs when the last reference
// goes. With `writable` false nobody writes into it: an op that would work in place copies instead.
BufferRef BorrowBuffer(void* data, size_t size_bytes, bool writable,
                       std::function<void()> on_release = nullptr);

// One aligned system allocation per buffer, no pooling, no limit. Lives for ever.
Allocator& SystemAllocator();

}  // namespace interp
