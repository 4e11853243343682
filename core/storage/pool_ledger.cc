#include "core/storage/pool_ledger.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace interp {
namespace {

// Pools number their buffers without sharing a counter: above 2^40 stands the pool's own number.
uint64_t NextSerialBase() {
  static std::atomic<uint64_t> next_pool{1};
  return next_pool.fetch_add(1, std::memory_order_relaxed) << 40;
}

}  // namespace

PoolLedger::PoolLedger(std::string name, Place place, const PoolLimits& limits)
    : name_(std::move(name)),
      where_(place.on_host() ? "" : absl::StrCat(" on ", Name(place))),
      limits_(limits),
      serial_base_(NextSerialBase()) {}

absl::Status PoolLedger::CheckOut(size_t size_bytes, size_t counted) {
  const size_t limit = limits_.in_use_bytes;
  if (limit != 0 && (counted > limit || stats_.current_bytes > limit - counted)) {
    return OverLimit(size_bytes);
  }
  stats_.current_bytes += counted;
  return absl::OkStatus();
}

// Workspace is noted before it is handed out, and until after it is back.
size_t PoolLedger::VariableBytes() const {
  return stats_.current_bytes -
         std::min(stats_.current_bytes, static_cast<size_t>(workspace_bytes_));
}

void PoolLedger::NotePeak() {
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.current_bytes);
  stats_.peak_variable_bytes = std::max(stats_.peak_variable_bytes, VariableBytes());
}

void PoolLedger::ResetPeak() {
  stats_.peak_bytes = stats_.current_bytes;
  stats_.peak_variable_bytes = VariableBytes();
}

void PoolLedger::Reserve(size_t bytes) {
  stats_.reserved_bytes += bytes;
  peak_reserved_bytes_ = std::max(peak_reserved_bytes_, stats_.reserved_bytes);
}

size_t PoolLedger::ExcessFor(size_t bytes) const {
  const size_t limit = limits_.reserved_bytes;
  if (limit == 0) return 0;
  if (bytes > limit) return bytes;
  return stats_.reserved_bytes > limit - bytes ? stats_.reserved_bytes - (limit - bytes) : 0;
}

PoolStats PoolLedger::Snapshot(absl::string_view kind, size_t cached_bytes) const {
  return {.name = name_,
          .kind = std::string(kind),
          .memory = stats_,
          .cached_bytes = cached_bytes,
          .peak_reserved_bytes = peak_reserved_bytes_,
          .hits = hits,
          .misses = misses,
          .trims = trims,
          .retries = retries,
          .failures = failures};
}

absl::Status PoolLedger::OverLimit(size_t size_bytes) {
  ++failures;
  const std::string limit = limits_.in_use_bytes != 0
                                ? absl::StrCat("the limit is ", limits_.in_use_bytes)
                                : "there is no more";
  return ResourceExhausted("cannot allocate ", size_bytes, " bytes", where_, ": ",
                           stats_.current_bytes, " bytes are in use and ", limit);
}

absl::Status PoolLedger::OverReserve(size_t size_bytes) const {
  return ResourceExhausted("cannot allocate ", size_bytes, " bytes", where_, ": the pool may hold ",
                           limits_.reserved_bytes, " bytes at most");
}

absl::Status PoolLedger::SourceIsShort(const absl::Status& error, size_t cached_bytes) {
  ++failures;
  return absl::Status(error.code(), absl::StrCat(error.message(), "; this pool has handed out ",
                                                 stats_.current_bytes, " bytes and holds ",
                                                 cached_bytes, " free ones"));
}

}  // namespace interp
