// HostPool: the pooled allocator of one interpreter core.
//
// Two-level segregated fit (TLSF; Masmano et al., "TLSF: a new dynamic memory allocator for
// real-time systems", ECRTS 2004): free blocks hang in lists by size class, 16 classes per power of
// two; a bitmap finds the first class that fits; blocks are split on allocation and merged with
// free neighbours on release. Both take constant time and touch no system allocator once the pool
// has grown. Lists are last-in first-out, so a buffer freed a moment ago, still in cache, is handed
// out next. Memory comes from the system in chunks and goes back when the pool is trimmed or dies.
#pragma once

#include <functional>
#include <memory>

#include "core/buffer.h"

namespace interp {

struct HostPoolOptions {
  // Most bytes handed out at once (MemoryStats::current_bytes); 0: no limit.
  size_t limit_bytes = 0;
  // Least size of a chunk taken from the system. 1 MiB: small programs stay small.
  size_t min_chunk_bytes = 1 << 20;
  // Tests: called before each allocation; true makes it fail as if memory were short.
  std::function<bool(size_t bytes)> fail = nullptr;
};

// Thread-safety: all methods from any thread (one short spin lock).
class HostPool : public Allocator {
 public:
  // Buffers keep the pool's memory alive: when the last shared_ptr goes while buffers are out, the
  // pool lives on until the last of them is released.
  static std::shared_ptr<HostPool> Create(const HostPoolOptions& options = {});

  // Gives chunks without live buffers back to the system; returns how many bytes.
  virtual size_t Trim() = 0;
};

}  // namespace interp
