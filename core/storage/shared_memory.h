// SharedMemory: POSIX shared memory segments, which processes open by name.
//
//   auto made = SharedMemory::Create(bytes, "weights");          // in one process
//   auto seen = SharedMemory::Open("weights", Access::kRead);    // in another
//   BufferRef buffer = ToBuffer(*std::move(seen));
//
// A segment lives while a process has it mapped, and its name with it: the last to let go removes
// it. Who holds one is told by a lock of the kernel's (flock, shared), not by a count in the
// segment or by process numbers: it goes with the process however that ends, holds across fork as
// the mapping does, and means the same to containers that number processes differently. A segment
// whose lock can be had exclusively is an orphan; ReapOrphanedSharedMemory removes those.
//
// Trust: only the same user can open a segment (mode 0600). What its header says is checked against
// the file's size before anything is mapped. Nothing protects from a process of that user that
// shortens the file later: reading beyond its end is a SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "core/buffer.h"
#include "core/status.h"
#include "core/storage/memory_source.h"

namespace interp {

enum class Access { kRead, kReadWrite };

// One mapping of a segment. Thread-safety: as an int; the bytes are nobody's business here.
class SharedMemory {
 public:
  // A new segment, zeroed, mapped for writing. Without a name it gets one that is free. All of its
  // memory is there at once, so that no write can fail later.
  // Errors: AlreadyExists, InvalidArgument for a name that is not made of 1 to 200 letters, digits,
  // '-', '_' and '.', ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Create(size_t size_bytes,
                                                              absl::string_view name = "");
  // Errors: NotFound; FailedPrecondition for what is not, or not yet, a segment of ours; DataLoss
  // for a header that does not fit the file.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Open(absl::string_view name, Access access);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  const std::string& name() const { return name_; }
  void* data() const { return data_; }  // aligned to pages
  size_t size_bytes() const { return size_bytes_; }
  bool writable() const { return writable_; }

 private:
  SharedMemory(std::string name, int file) : name_(std::move(name)), file_(file) {}
  absl::Status Map(size_t size_bytes, bool writable);

  const std::string name_;
  const int file_;  // holds the lock
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
  size_t mapped_bytes_ = 0;
  bool writable_ = false;
  bool removes_ = false;  // the name, when it is the last; not what was never opened
};

// A buffer over the mapping, which goes with the last reference.
BufferRef ToBuffer(std::unique_ptr<SharedMemory> memory);

struct ReapedSegments {
  int count = 0;
  uint64_t bytes = 0;
};
// Removes the segments of this user that no process has mapped: those of processes that were
// killed. Each process does so by itself when it first creates a segment, and when there is no room
// for one. Never fails; what cannot be looked at is left alone.
ReapedSegments ReapOrphanedSharedMemory();

// Segments as a source for pools: a tensor in such memory can be opened by another process without
// a copy.
class SharedMemorySource final : public MemorySource {
 public:
  std::string name() const override { return "shared"; }
  size_t granularity() const override;
  absl::StatusOr<void*> Take(size_t bytes) override;
  void Give(void* address, size_t bytes) override;

  // Where another process finds the byte at `address`: the segment's name and the offset in its
  // data. The segment lives as long as the pool keeps it: hold a reference of the buffer until the
  // other process has opened it. NotFound for memory of another source.
  struct Location {
    std::string segment;
    size_t offset_bytes = 0;
  };
  absl::StatusOr<Location> Locate(const void* address) const;

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<const void*, std::unique_ptr<SharedMemory>> segments_
      ABSL_GUARDED_BY(mutex_);  // by address
};

}  // namespace interp
