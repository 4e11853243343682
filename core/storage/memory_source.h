// MemorySource: where the memory of pools comes from.
//
// A source knows nothing of buffers and keeps nothing back: it takes ranges from the system or a
// device and gives them back. Pools (pool.h) stand on a source and decide what is kept, split and
// handed on. What every pool must know of its source is here: where the memory lies, in which steps
// it comes, and whether work may still use what the host has let go of.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "core/buffer.h"
#include "core/place.h"
#include "core/status.h"

namespace interp {

// A range of memory from a source; empty: none.
struct MemoryRange {
  void* address = nullptr;
  size_t bytes = 0;
};

// Thread-safety: all methods from any thread.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // "host", "pinned", "shared", "sim:0"; for statistics and messages.
  virtual std::string name() const = 0;
  virtual Place place() const { return {}; }
  // Ranges are best a multiple of this: a power of two, at least kBufferAlignment.
  virtual size_t granularity() const { return kBufferAlignment; }

  // `bytes` bytes, aligned to kBufferAlignment. REQUIRES: bytes > 0.
  // Errors: ResourceExhausted when there is no more.
  virtual absl::StatusOr<void*> Take(size_t bytes) = 0;
  // REQUIRES: what Take(bytes) returned, and that nothing uses it any more.
  virtual void Give(void* address, size_t bytes) = 0;
  // Waits for all work that may use memory which the host has let go of. To be called before such
  // memory is given back or used anew; nothing to wait for on the host.
  virtual void Quiesce() {}
};

// What a host source is made of.
enum class HostMemory {
  kOrdinary,  // the system's heap
  kPinned,    // locked pages, which are never swapped out; what devices copy fastest
  kShared,    // segments that other processes can open, see SharedMemorySource
};
absl::string_view Name(HostMemory memory);
// InvalidArgument that lists the names for an unknown one.
absl::StatusOr<HostMemory> HostMemoryFromName(absl::string_view name);

// The heap has no state and is shared by all; the others are made anew. Pinned memory counts
// against RLIMIT_MEMLOCK; its pages and those of shared memory come in whole numbers, so that only
// pools which split what they take (PoolKind::kTlsf) use them well.
std::shared_ptr<MemorySource> MakeHostMemory(HostMemory memory);

}  // namespace interp
