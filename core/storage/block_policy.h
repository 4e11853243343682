// BlockPolicy: which blocks a Pool keeps and how it finds them again.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/buffer.h"
#include "core/storage/memory_source.h"

namespace interp {

struct PoolOptions;

// Headers lie right before the bytes where the host can write, elsewhere apart.
struct PoolBlock : Buffer {
  // The memory goes to the source when the last reference drops. That drop comes after all stores.
  std::atomic<bool> direct{false};
};

// Thread-safety: SourceBytes from any thread; all else under the pool's lock.
class BlockPolicy {
 public:
  virtual ~BlockPolicy() = default;

  // What to take from the source for a block of `size_bytes`, 0 when no block can be as large. With
  // `frugal` no more than that block needs.
  virtual size_t SourceBytes(size_t size_bytes, bool frugal) const = 0;
  // A free block for `size_bytes`, free no more; null when there is none. `data` is set.
  virtual PoolBlock* Find(size_t size_bytes) = 0;
  // Cuts a block for `size_bytes` from a range of SourceBytes(size_bytes, ...); the rest is free.
  virtual PoolBlock* Adopt(const MemoryRange& range, size_t size_bytes) = 0;
  // Takes a block back. Returns the range that is to go to the source now, mostly none: with
  // `direct` the block's own, if nothing else lives in it.
  virtual MemoryRange Put(PoolBlock* block, bool direct) = 0;
  // Forgets free ranges until `bytes` have come together and adds them to `idle`.
  virtual void TakeIdle(size_t bytes, std::vector<MemoryRange>& idle) = 0;
  // The same for ranges that are of no use for a block that needs `bytes` from the source, no more
  // than those bytes together: the new range can serve what they served.
  virtual void TakeOutgrown(size_t bytes, std::vector<MemoryRange>& idle) = 0;
  virtual size_t free_bytes() const = 0;
};

// REQUIRES: the host can write the memory.
std::unique_ptr<BlockPolicy> MakeTlsfPolicy(const PoolOptions& options, size_t granularity);
// All kinds but tlsf. With `header_apart` the memory is never touched.
std::unique_ptr<BlockPolicy> MakeSizeClassPolicy(const PoolOptions& options, size_t granularity,
                                                 bool header_apart);

}  // namespace interp
