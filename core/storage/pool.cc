#include "core/storage/pool.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/storage/aligned_memory.h"
#include "core/storage/block_policy.h"

namespace interp {
namespace {

constexpr absl::string_view kPoolNames[] = {"tlsf", "naive", "power_of_two", "linear", "exact"};
constexpr size_t kAll = std::numeric_limits<size_t>::max();
constexpr size_t kMostPopulated = size_t{64} << 20;  // more has huge pages and gains little

absl::Status Check(const MemorySource& source, const PoolOptions& options) {
  if (options.kind == PoolKind::kTlsf && !source.place().on_host()) {
    return InvalidArgument("a tlsf pool cannot stand on memory of ", Name(source.place()),
                           ", where the host cannot write its lists");
  }
  if ((options.page_bytes & (options.page_bytes - 1)) != 0 ||
      (options.cutoff_bytes & (options.cutoff_bytes - 1)) != 0) {
    return InvalidArgument("page and cut-off of a pool are ", options.page_bytes, " and ",
                           options.cutoff_bytes, " bytes, expected powers of two");
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view Name(PoolKind kind) { return kPoolNames[static_cast<int>(kind)]; }

absl::StatusOr<PoolKind> PoolKindFromName(absl::string_view name) {
  for (size_t i = 0; i < std::size(kPoolNames); ++i) {
    if (kPoolNames[i] == name) return static_cast<PoolKind>(i);
  }
  return InvalidArgument("no allocator is named '", name,
                         "'; there are tlsf, naive, power_of_two, linear and exact");
}

absl::StatusOr<std::shared_ptr<Pool>> Pool::Create(std::shared_ptr<MemorySource> source,
                                                   const PoolOptions& options) {
  INTERP_RETURN_IF_ERROR(Check(*source, options));
  const size_t granularity = source->granularity();
  std::unique_ptr<BlockPolicy> policy =
      options.kind == PoolKind::kTlsf
          ? MakeTlsfPolicy(options, granularity)
          : MakeSizeClassPolicy(options, granularity,
                                /*header_apart=*/!source->place().on_host());
  return std::shared_ptr<Pool>(new Pool(std::move(source), options, std::move(policy)),
                               [](Pool* pool) { pool->Orphan(); });
}

std::shared_ptr<Pool> Pool::OnHost(const PoolOptions& options) {
  absl::StatusOr<std::shared_ptr<Pool>> pool =
      Create(MakeHostMemory(HostMemory::kOrdinary), options);
  INTERP_CHECK(pool.ok());
  return *std::move(pool);
}

Pool::Pool(std::shared_ptr<MemorySource> source, const PoolOptions& options,
           std::unique_ptr<BlockPolicy> policy)
    : source_(std::move(source)),
      options_(options),
      waits_(!source_->place().on_host()),
      ledger_(options.name.empty() ? source_->name() : options.name, source_->place(),
              options.limits),
      policy_(std::move(policy)) {}

Pool::~Pool() { GiveIdle(kAll); }

absl::StatusOr<BufferRef> Pool::Allocate(size_t size_bytes) {
  const bool refused = options_.fail && options_.fail(size_bytes);
  const size_t counted = CountedBytes(size_bytes);
  {
    std::lock_guard<SpinLock> guard(lock_);
    if (refused || counted == 0) return ledger_.OverLimit(size_bytes);
    INTERP_RETURN_IF_ERROR(ledger_.CheckOut(size_bytes, counted));
    if (PoolBlock* block = policy_->Find(size_bytes)) {
      ++ledger_.hits;
      return HandOut(block, size_bytes);
    }
    ++ledger_.misses;
  }
  return AllocateFresh(size_bytes, counted);
}

absl::StatusOr<BufferRef> Pool::AllocateFresh(size_t size_bytes, size_t counted) {
  const absl::StatusOr<MemoryRange> range = TakeFromSource(size_bytes);
  // What was asked for is about to be written. A naive pool may get memory that has been used, and
  // would pay in every run.
  const bool populates = options_.kind != PoolKind::kNaive && source_->place().on_host();
  if (range.ok() && populates) PopulatePages(range->address, std::min(size_bytes, kMostPopulated));
  std::lock_guard<SpinLock> guard(lock_);
  if (range.ok()) return HandOut(policy_->Adopt(*range, size_bytes), size_bytes);
  // Somebody may have freed what is needed meanwhile.
  if (PoolBlock* block = policy_->Find(size_bytes)) return HandOut(block, size_bytes);
  ledger_.CheckIn(counted);
  return ledger_.SourceIsShort(range.status(), policy_->free_bytes());
}

// REQUIRES: lock_ is held.
BufferRef Pool::HandOut(Buffer* buffer, size_t size_bytes) {
  ++live_;
  ledger_.NotePeak();
  buffer->owner = this;
  buffer->place = source_->place();
  buffer->size_bytes = size_bytes;
  buffer->serial = ledger_.NextSerial();
  return BufferRef::First(buffer);
}

// Asks twice: the second time for no more than is needed, after free memory has gone back.
absl::StatusOr<MemoryRange> Pool::TakeFromSource(size_t size_bytes) {
  for (bool again = false;; again = true) {
    const size_t bytes = policy_->SourceBytes(size_bytes, /*frugal=*/again);
    if (bytes == 0) return ResourceExhausted("cannot allocate ", size_bytes, " bytes at once");
    if (!again) GiveOutgrown(bytes);
    const size_t excess = Reserve(bytes, again);
    absl::Status problem;
    if (excess == 0) {
      const absl::StatusOr<void*> address = source_->Take(bytes);
      if (address.ok()) return MemoryRange{*address, bytes};
      problem = address.status();
      std::lock_guard<SpinLock> guard(lock_);
      ledger_.Unreserve(bytes);
    } else {
      problem = ledger_.OverReserve(size_bytes);
    }
    if (again) return problem;
    GiveIdle(excess > 0 ? excess : kAll);
  }
}

// Returns what has to be given back first; nothing is reserved then.
size_t Pool::Reserve(size_t bytes, bool again) {
  std::lock_guard<SpinLock> guard(lock_);
  if (again) ++ledger_.retries;
  const size_t excess = ledger_.ExcessFor(bytes);
  if (excess == 0) ledger_.Reserve(bytes);
  return excess;
}

void Pool::Free(Buffer* buffer) {
  if (waits_) source_->Quiesce();
  auto* block = static_cast<PoolBlock*>(buffer);
  const size_t counted = CountedBytes(buffer->size_bytes);
  const bool direct = block->direct.load(std::memory_order_relaxed);
  MemoryRange given;
  bool last = false;
  {
    std::lock_guard<SpinLock> guard(lock_);
    ledger_.CheckIn(counted);
    given = policy_->Put(block, direct);
    ledger_.Unreserve(given.bytes);
    // Whoever has something to give back still needs the pool.
    if (given.bytes == 0) last = --live_ == 0 && orphaned_;
  }
  if (given.bytes > 0) {
    source_->Give(given.address, given.bytes);
    std::lock_guard<SpinLock> guard(lock_);
    last = --live_ == 0 && orphaned_;
  }
  if (last) delete this;
}

void Pool::FreeDirect(BufferRef buffer) {
  if (buffer && buffer->owner == this) {
    static_cast<PoolBlock*>(buffer.get())->direct.store(true, std::memory_order_relaxed);
  }
  buffer.reset();
}

size_t Pool::Trim(size_t keep_bytes) {
  size_t bytes = 0;
  {
    std::lock_guard<SpinLock> guard(lock_);
    const size_t held = ledger_.memory().reserved_bytes;
    bytes = keep_bytes == 0 ? kAll : held - std::min(held, keep_bytes);
  }
  return bytes == 0 ? 0 : GiveIdle(bytes);
}

// Gives free memory back, at least `bytes` if there is so much; returns how much.
size_t Pool::GiveIdle(size_t bytes) {
  return Give([&](std::vector<MemoryRange>& idle) { policy_->TakeIdle(bytes, idle); });
}

// Without this a pool would keep all the chunks it has ever grown by on its way to larger ones.
void Pool::GiveOutgrown(size_t bytes) {
  Give([&](std::vector<MemoryRange>& idle) { policy_->TakeOutgrown(bytes, idle); });
}

// Gives back the ranges that `take` takes from the policy.
template <typename Take>
size_t Pool::Give(const Take& take) {
  std::vector<MemoryRange> idle;
  size_t given = 0;
  {
    std::lock_guard<SpinLock> guard(lock_);
    take(idle);
    for (const MemoryRange& range : idle) given += range.bytes;
    if (given > 0) ++ledger_.trims;
    ledger_.Unreserve(given);
  }
  for (const MemoryRange& range : idle) source_->Give(range.address, range.bytes);
  return given;
}

MemoryStats Pool::stats() const {
  std::lock_guard<SpinLock> guard(lock_);
  return ledger_.memory();
}

PoolStats Pool::pool_stats() const {
  std::lock_guard<SpinLock> guard(lock_);
  return ledger_.Snapshot(Name(options_.kind), policy_->free_bytes());
}

void Pool::ResetPeak() {
  std::lock_guard<SpinLock> guard(lock_);
  ledger_.ResetPeak();
}

void Pool::NoteWorkspace(std::ptrdiff_t bytes) {
  const std::lock_guard lock(lock_);
  ledger_.NoteWorkspace(bytes);
}

void Pool::Orphan() {
  bool idle = false;
  {
    std::lock_guard<SpinLock> guard(lock_);
    orphaned_ = true;
    idle = live_ == 0;
  }
  if (idle) delete this;
}

}  // namespace interp
