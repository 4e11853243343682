// PoolLedger: what every pool counts, the limits it keeps and the words it refuses with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/buffer.h"
#include "core/place.h"
#include "core/status.h"

namespace interp {

struct PoolStats {
  std::string name;         // of the pool: "host", "sim:0"
  std::string kind;         // Name(PoolKind), or "stream"
  MemoryStats memory = {};  // what is handed out, and what is held for it
  size_t cached_bytes = 0;  // free, ready to be handed out again
  size_t peak_reserved_bytes = 0;
  int64_t hits = 0;      // allocations served from what the pool held
  int64_t misses = 0;    // those that went to the source
  int64_t trims = 0;     // times that memory went back to the source
  int64_t retries = 0;   // times that the source was short and asked again after a trim
  int64_t failures = 0;  // allocations refused
};

// Limits on MemoryStats::current_bytes and on what is held from the source; 0: none.
struct PoolLimits {
  size_t in_use_bytes = 0;
  size_t reserved_bytes = 0;
};

// Thread-safety: none; a pool calls it under its lock.
class PoolLedger {
 public:
  PoolLedger(std::string name, Place place, const PoolLimits& limits);

  // One more buffer of `counted` bytes, or an error: over the limit. The serial of a buffer differs
  // from that of every other in the process.
  absl::Status CheckOut(size_t size_bytes, size_t counted);
  void CheckIn(size_t counted) { stats_.current_bytes -= counted; }
  uint64_t NextSerial() { return serial_base_ + static_cast<uint64_t>(++stats_.allocations); }
  // Of an allocation that has succeeded.
  void NotePeak();

  // What has to be given back to the source before `bytes` more may be held.
  size_t ExcessFor(size_t bytes) const;
  void Reserve(size_t bytes);
  void Unreserve(size_t bytes) { stats_.reserved_bytes -= bytes; }

  const MemoryStats& memory() const { return stats_; }
  void ResetPeak();
  void NoteWorkspace(std::ptrdiff_t bytes) { workspace_bytes_ += bytes; }
  int64_t hits = 0, misses = 0, trims = 0, retries = 0, failures = 0;
  PoolStats Snapshot(absl::string_view kind, size_t cached_bytes) const;

  // "cannot allocate 64 bytes on sim:0: 128 bytes are in use and the limit is 128"
  absl::Status OverLimit(size_t size_bytes);
  // "cannot allocate 64 bytes on sim:0: the pool may hold 1024 bytes at most"
  absl::Status OverReserve(size_t size_bytes) const;
  // One of the last, or the source's error, with what this pool has to do with it: there may be
  // other pools beside it.
  absl::Status SourceIsShort(const absl::Status& error, size_t cached_bytes);

 private:
  const std::string name_;
  const std::string where_;  // " on sim:0"
  const PoolLimits limits_;
  const uint64_t serial_base_;
  size_t VariableBytes() const;

  MemoryStats stats_;
  std::ptrdiff_t workspace_bytes_ = 0;  // of stats_.current_bytes
  size_t peak_reserved_bytes_ = 0;
};

}  // namespace interp
