// Workspace: temporary memory for the length of one kernel.
//
//   INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(n * sizeof(float)));
//   float* const partial = work.data<float>();
//
// It comes from the pool that variables come from and goes back there when the Workspace goes, last
// in, first out: the next op or variable of that size gets memory that is still in cache, a run's
// peak counts it only while it is in use, and what the pool keeps for it is given back by
// InterpreterCore::TrimMemory. On a device's stream the pool's rules make that right for work in
// flight: who gets the memory next comes later in the order of the stream.
#pragma once

#include <cstddef>
#include <utility>

#include "core/buffer.h"
#include "core/status.h"

namespace interp {

class Workspace {
 public:
  // `size_bytes` bytes, aligned to kBufferAlignment, with undefined content; 0 is allowed.
  static absl::StatusOr<Workspace> Take(Allocator& allocator, size_t size_bytes) {
    Workspace work(allocator, static_cast<std::ptrdiff_t>(CountedBytes(size_bytes)));
    INTERP_ASSIGN_OR_RETURN(work.buffer_, allocator.Allocate(size_bytes));
    return work;
  }
  Workspace(Workspace&& other) noexcept
      : allocator_(std::exchange(other.allocator_, nullptr)),
        counted_(other.counted_),
        buffer_(std::move(other.buffer_)) {}
  Workspace& operator=(Workspace&& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(counted_, other.counted_);
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~Workspace() {
    buffer_.reset();
    if (allocator_ != nullptr) allocator_->NoteWorkspace(-counted_);
  }

  template <typename T = void>
  T* data() const {
    return static_cast<T*>(buffer_->data);
  }
  size_t size_bytes() const { return buffer_->size_bytes; }
  const BufferRef& buffer() const { return buffer_; }

 private:
  Workspace(Allocator& allocator, std::ptrdiff_t counted)
      : allocator_(&allocator), counted_(counted) {
    allocator.NoteWorkspace(counted);
  }

  Allocator* allocator_;
  std::ptrdiff_t counted_;
  BufferRef buffer_;
};

}  // namespace interp
