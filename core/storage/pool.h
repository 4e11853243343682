// Pool: the allocator of everything but what runs compute on devices (StreamPool).
//
// A pool stands on a MemorySource and keeps what it took for later allocations. Which blocks it
// keeps and how it finds them is its kind:
//
//   tlsf          chunks of at least 1 MiB, split and joined (two-level segregated fit): least
//                 memory, constant time; only where the host can write, as it keeps its lists in
//                 the blocks
//   naive         nothing is kept: each allocation is one of the source
//   power_of_two  blocks of a power of two bytes, above the cut-off of its multiples
//   linear        blocks of whole pages, above the cut-off of its multiples
//   exact         blocks of the very size asked for; best where sizes repeat exactly
//
// The last three are handed out for sizes that round alike and never split or joined, so nothing
// fragments but every size has its own blocks.
//
// When the source is short, or more than limits allow would be held, the pool gives back what it
// keeps and asks once more. When the last shared_ptr goes while buffers are out, pool and source
// live on until the last of them is released.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/spin_lock.h"
#include "core/buffer.h"
#include "core/storage/memory_source.h"
#include "core/storage/pool_ledger.h"

namespace interp {

enum class PoolKind { kTlsf, kNaive, kPowerOfTwo, kLinear, kExact };
absl::string_view Name(PoolKind kind);
// InvalidArgument that lists the names for an unknown one.
absl::StatusOr<PoolKind> PoolKindFromName(absl::string_view name);

struct PoolOptions {
  PoolKind kind = PoolKind::kTlsf;
  std::string name = {};  // in statistics; empty: the source's
  PoolLimits limits = {};
  // tlsf: least size of a chunk taken from the source. 1 MiB: small programs stay small.
  size_t min_chunk_bytes = 1 << 20;
  // power_of_two, linear: the smallest block, and for linear what small sizes are multiples of; a
  // power of two. 0: a cache line for power_of_two, 4096 for linear.
  size_t page_bytes = 0;
  // power_of_two, linear: what sizes above it are multiples of; a power of two. 0: 16 MiB for
  // power_of_two, 2 MiB for linear.
  size_t cutoff_bytes = 0;
  // Tests: called before each allocation; true makes it fail as if memory were short.
  std::function<bool(size_t bytes)> fail = nullptr;
};

class BlockPolicy;

// Thread-safety: all methods from any thread (one short spin lock; the source is called without).
class Pool final : public Allocator {
 public:
  // InvalidArgument for options that make no sense, such as tlsf where the host cannot write.
  static absl::StatusOr<std::shared_ptr<Pool>> Create(std::shared_ptr<MemorySource> source,
                                                      const PoolOptions& options = {});
  // On the system's heap, where no options are wrong but sizes that are no powers of two.
  static std::shared_ptr<Pool> OnHost(const PoolOptions& options = {});

  absl::StatusOr<BufferRef> Allocate(size_t size_bytes) override;
  // Lets go of `buffer`, whose memory goes back to the source, not to the pool, when the last
  // reference is dropped; with tlsf when nothing else lives in its chunk. A buffer of somebody else
  // is just dropped.
  void FreeDirect(BufferRef buffer);
  // Gives free memory back to the source until no more than `keep_bytes` are held, as far as that
  // is possible; returns how much.
  size_t Trim(size_t keep_bytes = 0);

  MemoryStats stats() const override;
  void ResetPeak() override;
  void NoteWorkspace(std::ptrdiff_t bytes) override;
  PoolStats pool_stats() const;
  MemorySource& source() const { return *source_; }

 private:
  Pool(std::shared_ptr<MemorySource> source, const PoolOptions& options,
       std::unique_ptr<BlockPolicy> policy);
  ~Pool() override;
  void Free(Buffer* buffer) override;
  // The owner is gone; die now or with the last buffer.
  void Orphan();
  absl::StatusOr<BufferRef> AllocateFresh(size_t size_bytes, size_t counted);
  absl::StatusOr<MemoryRange> TakeFromSource(size_t size_bytes);
  size_t Reserve(size_t bytes, bool again);
  BufferRef HandOut(Buffer* buffer, size_t size_bytes);
  size_t GiveIdle(size_t bytes);
  void GiveOutgrown(size_t bytes);
  template <typename Take>
  size_t Give(const Take& take);

  const std::shared_ptr<MemorySource> source_;
  const PoolOptions options_;
  const bool waits_;  // the source's work may outlast references

  mutable SpinLock lock_;  // guards what follows
  PoolLedger ledger_;
  std::unique_ptr<BlockPolicy> policy_;
  int64_t live_ = 0;  // buffers
  bool orphaned_ = false;
};

}  // namespace interp
