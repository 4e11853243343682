// Long because splitting, joining, handing on and giving back share one lock and its invariants.
#include "core/device/stream_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/device/device_memory.h"

namespace interp {
namespace {

// A block is split when that much would be left over; at least Device::alignment().
constexpr size_t kLeastRest = 512;
constexpr int kNobody = -1;  // the home of memory that no stream has used

// An event that stands for use of a free block's memory. `order` grows with every record, so that
// of two on one stream the later stands for both.
struct PendingUse {
  std::unique_ptr<DeviceEvent> event;
  int stream = 0;
  uint64_t order = 0;
};

struct StreamBlock;

// The smallest block that fits, and of those the one of the lowest address.
struct BySize {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard asks for it
  bool operator()(const StreamBlock* a, const StreamBlock* b) const;
  bool operator()(const StreamBlock* a, size_t bytes) const;
};
using FreeBlocks = std::set<StreamBlock*, BySize>;

// A range of device memory, and the header of the buffer in it. The blocks of one AllocateRaw form
// a list by address.
struct StreamBlock : Buffer {
  size_t block_bytes = 0;
  int home = kNobody;  // Stream::index of the stream whose work may use the memory
  bool free = false;
  StreamBlock* previous = nullptr;
  StreamBlock* next = nullptr;
  std::atomic<uint64_t> used_on{0};  // bits of the streams of RecordUse; its order does not matter,
                                     // as the last reference's drop comes after all
  std::vector<PendingUse> uses;      // of a free block: those that the home is not ordered after
  FreeBlocks::node_type node;        // of a block in use: where to link it without allocation
};

bool BySize::operator()(const StreamBlock* a, const StreamBlock* b) const {
  return a->block_bytes != b->block_bytes ? a->block_bytes < b->block_bytes : a->data < b->data;
}
bool BySize::operator()(const StreamBlock* a, size_t bytes) const { return a->block_bytes < bytes; }

PoolLimits LimitsOf(const Device& device, const StreamPoolOptions& options) {
  const size_t capacity = device.capacity_bytes();
  return {.in_use_bytes =
              options.limit_bytes == 0 ? capacity : std::min(options.limit_bytes, capacity)};
}

// Small devices are shared by several pools, so that none may take much of one for little.
size_t ChunkBytes(const Device& device, const StreamPoolOptions& options) {
  constexpr size_t kLeastChunks = 16;
  const size_t most = LimitsOf(device, options).in_use_bytes / kLeastChunks;
  return std::min(options.chunk_bytes, most / device.alignment() * device.alignment());
}

class Pool;

class StreamAllocator final : public Allocator {
 public:
  StreamAllocator(Pool& pool, int stream) : pool_(pool), stream_(stream) {}
  absl::StatusOr<BufferRef> Allocate(size_t size_bytes) override;
  MemoryStats stats() const override;
  void ResetPeak() override;
  bool belongs_to(const Pool& pool) const { return &pool_ == &pool; }

 private:
  void Free(Buffer* buffer) override;

  Pool& pool_;
  const int stream_;
};

class Pool final : public StreamPool {
 public:
  Pool(Device& device, const StreamPoolOptions& options)
      : device_(device),
        memory_(device),
        options_(options),
        alignment_(device.alignment()),
        chunk_bytes_(ChunkBytes(device, options)),
        ledger_(memory_.name(), device.place(), LimitsOf(device, options)) {}
  ~Pool() override;

  Allocator& ForStream(Stream& stream) override;
  void RecordUse(const Buffer& buffer, Stream& stream) override;
  MemoryStats stats() const override;
  PoolStats pool_stats() const override;
  void ResetPeak() override;
  size_t Trim() override;

  absl::StatusOr<BufferRef> Allocate(size_t size_bytes, int stream);
  void Free(StreamBlock* block);
  // The owner is gone; die now or with the last buffer.
  void Orphan();

 private:
  struct OwnStream {
    const char* const name;
    const bool timed;  // Device::CreateUntimedStream
    std::unique_ptr<Stream> stream = nullptr;
    bool failed = false;
  };

  Stream& stream(int index) const { return *streams_[index].load(std::memory_order_acquire); }

  Stream* StandInFor(Stream& peer);

  // What follows REQUIRES that mutex_ is held.
  BufferRef HandOut(StreamBlock* block, size_t size_bytes, int stream);
  absl::StatusOr<StreamBlock*> Take(size_t bytes, int stream, std::unique_lock<std::mutex>& lock);
  StreamBlock* TakeOwn(size_t bytes, int stream, bool idle);
  StreamBlock* TakeUnused(size_t bytes, int stream);
  StreamBlock* TakeFresh(const MemoryRange& range, size_t bytes, int stream);
  StreamBlock* TakeFromOther(size_t bytes, int stream);
  void Claim(StreamBlock* block, size_t bytes, int stream);
  void SplitOff(StreamBlock* block, size_t bytes);
  void AwaitUses(StreamBlock* block, int stream);
  void NoteUses(StreamBlock* block);
  void Poison(StreamBlock* block);
  Stream* Open(OwnStream& own);
  void AddUse(StreamBlock* block, Stream& stream);
  std::optional<PendingUse> RecordNow(Stream& stream);
  void Link(StreamBlock* block);
  void Unlink(StreamBlock* block);
  StreamBlock* Merge(StreamBlock* block);
  void Absorb(StreamBlock* block, StreamBlock* next);
  FreeBlocks& FreeBlocksOf(int home) { return home == kNobody ? unused_ : free_[home]; }
  std::vector<StreamBlock*> TakeIdleRanges(std::vector<PendingUse>& uses);
  void JoinRange(StreamBlock* first, std::vector<PendingUse>& uses, uint64_t& homes);

  // A range of the device; what follows does not.
  absl::StatusOr<MemoryRange> Grow(size_t bytes);

  Device& device_;
  DeviceMemory memory_;
  const StreamPoolOptions options_;
  const size_t alignment_;
  const size_t chunk_bytes_;
  std::array<std::atomic<Stream*>, kMaxStreams> streams_ = {};  // by index; those met so far

  std::mutex trim_mutex_;     // held while memory goes back to the device; taken before mutex_
  mutable std::mutex mutex_;  // guards what follows
  PoolLedger ledger_;
  size_t free_bytes_ = 0;
  int64_t live_ = 0;  // buffers
  bool orphaned_ = false;
  uint64_t record_order_ = 0;
  std::array<std::unique_ptr<StreamAllocator>, kMaxStreams> allocators_;
  std::array<FreeBlocks, kMaxStreams> free_;          // by home
  FreeBlocks unused_;                                 // whose home is nobody
  std::vector<std::unique_ptr<DeviceEvent>> events_;  // not in use
  // Poisons what several streams have used.
  OwnStream janitor_{.name = "janitor", .timed = false};
  // Is behind all copies that other devices make of this one's memory. One for all of them: memory
  // that was freed after the copy of a slow peer waits for that, too.
  OwnStream peers_{.name = "peers", .timed = true};
};

absl::StatusOr<BufferRef> StreamAllocator::Allocate(size_t size_bytes) {
  return pool_.Allocate(size_bytes, stream_);
}
MemoryStats StreamAllocator::stats() const { return pool_.stats(); }
void StreamAllocator::ResetPeak() { pool_.ResetPeak(); }
void StreamAllocator::Free(Buffer* buffer) { pool_.Free(static_cast<StreamBlock*>(buffer)); }

Pool::~Pool() { Trim(); }

Allocator& Pool::ForStream(Stream& stream) {
  INTERP_CHECK(stream.place() == device_.place());
  const int index = stream.index();
  streams_[index].store(&stream, std::memory_order_release);
  std::lock_guard<std::mutex> guard(mutex_);
  if (allocators_[index] == nullptr) {
    allocators_[index] = std::make_unique<StreamAllocator>(*this, index);
  }
  return *allocators_[index];
}

void Pool::RecordUse(const Buffer& buffer, Stream& stream) {
  const bool of_peer = stream.place() != device_.place();
  const Stream* const stand_in = of_peer ? StandInFor(stream) : nullptr;
  const auto* owner = dynamic_cast<const StreamAllocator*>(buffer.owner);
  if (owner == nullptr || !owner->belongs_to(*this) || (of_peer && stand_in == nullptr)) return;
  auto& block =
      const_cast<StreamBlock&>(static_cast<const StreamBlock&>(buffer));  // the count is ours
  const int index = of_peer ? stand_in->index() : stream.index();
  if (index == block.home) return;
  if (!of_peer) streams_[index].store(&stream, std::memory_order_release);
  block.used_on.fetch_or(uint64_t{1} << index, std::memory_order_relaxed);
}

// Puts the work of another device's stream so far before that of a stream of this one, which then
// stands for it: the device knows of it. Nobody can be told of an error, so what cannot be waited
// for on the device is waited for here; then the result is null.
Stream* Pool::StandInFor(Stream& peer) {
  Stream* stand_in = nullptr;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    stand_in = Open(peers_);
  }
  absl::Status ordered = ResourceExhausted("no stream for the copies of peers");
  if (stand_in != nullptr) {
    const absl::StatusOr<std::unique_ptr<DeviceEvent>> copied = interp::RecordNow(peer);
    ordered = copied.status();
    if (ordered.ok()) ordered = stand_in->Wait(**copied);
  }
  if (ordered.ok()) return stand_in;
  peer.Synchronize().IgnoreError();
  return nullptr;
}

MemoryStats Pool::stats() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return ledger_.memory();
}

PoolStats Pool::pool_stats() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return ledger_.Snapshot("stream", free_bytes_);
}

void Pool::ResetPeak() {
  std::lock_guard<std::mutex> guard(mutex_);
  ledger_.ResetPeak();
}

absl::StatusOr<BufferRef> Pool::Allocate(size_t size_bytes, int stream) {
  const bool refused = options_.fail != nullptr && options_.fail(size_bytes);
  const size_t bytes = CountedBytes(size_bytes);
  for (bool trimmed = false;; trimmed = true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (refused || bytes == 0) return ledger_.OverLimit(size_bytes);
      INTERP_RETURN_IF_ERROR(ledger_.CheckOut(size_bytes, bytes));
      if (trimmed) ++ledger_.retries;
      const size_t block_bytes = (bytes + alignment_ - 1) / alignment_ * alignment_;
      const absl::StatusOr<StreamBlock*> block = Take(block_bytes, stream, lock);
      if (block.ok()) return HandOut(*block, size_bytes, stream);
      ledger_.CheckIn(bytes);
      if (trimmed || !options_.trims_when_short) {
        return ledger_.SourceIsShort(block.status(), free_bytes_);
      }
    }
    Trim();
  }
}

BufferRef Pool::HandOut(StreamBlock* block, size_t size_bytes, int stream) {
  ++live_;
  ledger_.NotePeak();
  block->owner = allocators_[stream].get();
  block->size_bytes = size_bytes;
  block->serial = ledger_.NextSerial();
  return BufferRef::First(block);
}

// The error is the device's.
absl::StatusOr<StreamBlock*> Pool::Take(size_t bytes, int stream,
                                        std::unique_lock<std::mutex>& lock) {
  if (StreamBlock* block = TakeOwn(bytes, stream, /*idle=*/true)) return block;
  if (StreamBlock* block = TakeUnused(bytes, stream)) return block;
  lock.unlock();  // others need not wait for the device
  const absl::StatusOr<MemoryRange> range = Grow(bytes);
  lock.lock();
  if (range.ok()) return TakeFresh(*range, bytes, stream);
  if (StreamBlock* block = TakeUnused(bytes, stream)) return block;  // of another's growth
  if (StreamBlock* block = TakeOwn(bytes, stream, /*idle=*/false)) return block;
  if (StreamBlock* block = TakeFromOther(bytes, stream)) return block;
  return range.status();
}

// With `idle` only memory that the stream need not wait for.
StreamBlock* Pool::TakeOwn(size_t bytes, int stream, bool idle) {
  constexpr int kMostLooks = 8;  // more cost more time than the memory is worth
  const auto passed = [](const PendingUse& use) { return use.event->Passed(); };
  auto it = free_[stream].lower_bound(bytes);
  for (int looks = 0; it != free_[stream].end() && looks < kMostLooks; ++it, ++looks) {
    StreamBlock* const block = *it;
    if (idle && !std::all_of(block->uses.begin(), block->uses.end(), passed)) continue;
    Claim(block, bytes, stream);
    return block;
  }
  return nullptr;
}

StreamBlock* Pool::TakeUnused(size_t bytes, int stream) {
  const auto it = unused_.lower_bound(bytes);
  if (it == unused_.end()) return nullptr;
  StreamBlock* const block = *it;
  Claim(block, bytes, stream);
  return block;
}

absl::StatusOr<MemoryRange> Pool::Grow(size_t bytes) {
  if (bytes < chunk_bytes_) {
    const absl::StatusOr<void*> chunk = memory_.Take(chunk_bytes_);
    if (chunk.ok()) return MemoryRange{*chunk, chunk_bytes_};
  }
  INTERP_ASSIGN_OR_RETURN(void* const address, memory_.Take(bytes));
  return MemoryRange{address, bytes};
}

StreamBlock* Pool::TakeFresh(const MemoryRange& range, size_t bytes, int stream) {
  auto* block = new StreamBlock;
  block->data = range.address;
  block->place = device_.place();
  block->block_bytes = range.bytes;
  if (range.bytes - bytes >= kLeastRest) SplitOff(block, bytes);
  block->home = stream;
  ledger_.Reserve(range.bytes);
  ++ledger_.misses;
  return block;
}

StreamBlock* Pool::TakeFromOther(size_t bytes, int stream) {
  StreamBlock* best = nullptr;
  for (const FreeBlocks& blocks : free_) {
    const auto it = blocks.lower_bound(bytes);
    if (it != blocks.end() && (best == nullptr || BySize()(*it, best))) best = *it;
  }
  if (best != nullptr) Claim(best, bytes, stream);
  return best;
}

// Makes a free block the property of `stream`, whose later work may use it.
void Pool::Claim(StreamBlock* block, size_t bytes, int stream) {
  Unlink(block);
  ++ledger_.hits;
  const bool splits = block->block_bytes - bytes >= kLeastRest;
  if (block->home == kNobody) {
    if (splits) SplitOff(block, bytes);
    block->home = stream;
    return;
  }
  // All of the home's work so far: what was freed before may be used there still.
  if (block->home != stream) AddUse(block, this->stream(block->home));
  AwaitUses(block, stream);
  block->home = stream;
  if (splits) SplitOff(block, bytes);
}

// Cuts off what is behind `bytes`. Its uses, too, have been awaited by the block's home.
void Pool::SplitOff(StreamBlock* block, size_t bytes) {
  auto* rest = new StreamBlock;
  rest->data = static_cast<char*>(block->data) + bytes;
  rest->place = block->place;
  rest->block_bytes = block->block_bytes - bytes;
  rest->home = block->home;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->previous = rest;
  block->next = rest;
  block->block_bytes = bytes;
  Link(rest);
}

void Pool::AwaitUses(StreamBlock* block, int stream) {
  for (PendingUse& use : block->uses) {
    // It fails for a lost device alone, on which nothing will use the memory.
    if (use.stream != stream) this->stream(stream).Wait(*use.event).IgnoreError();
    events_.push_back(std::move(use.event));
  }
  block->uses.clear();
}

void Pool::Free(StreamBlock* block) {
  bool last = false;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    ledger_.CheckIn(CountedBytes(block->size_bytes));
    NoteUses(block);
    Link(Merge(block));
    last = --live_ == 0 && orphaned_;
  }
  if (last) delete this;
}

void Pool::NoteUses(StreamBlock* block) {
  for (uint64_t left = block->used_on.exchange(0, std::memory_order_relaxed); left != 0;
       left &= left - 1) {
    AddUse(block, stream(std::countr_zero(left)));
  }
  if (options_.poison_freed) Poison(block);
}

// After the last use that is known of; later ones read poison. The fill itself is a use as well,
// but takes no simulated time.
void Pool::Poison(StreamBlock* block) {
  Stream& home = stream(block->home);
  if (block->uses.empty()) {
    return home.Fill(block->data, kPoison, block->block_bytes).IgnoreError();
  }
  Stream* const janitor = Open(janitor_);
  if (janitor == nullptr) return;
  if (std::optional<PendingUse> at_home = RecordNow(home)) {
    janitor->Wait(*at_home->event).IgnoreError();
    events_.push_back(std::move(at_home->event));
  }
  for (const PendingUse& use : block->uses) janitor->Wait(*use.event).IgnoreError();
  janitor->Fill(block->data, kPoison, block->block_bytes).IgnoreError();
  AddUse(block, *janitor);
}

// A stream of the pool's, made when it is first wanted; null when the device has no more streams.
Stream* Pool::Open(OwnStream& own) {
  if (own.stream == nullptr && !own.failed) {
    absl::StatusOr<std::unique_ptr<Stream>> made =
        own.timed ? device_.CreateStream(own.name, /*priority=*/0)
                  : device_.CreateUntimedStream(own.name);
    own.failed = !made.ok();
    if (made.ok()) {
      own.stream = *std::move(made);
      streams_[own.stream->index()].store(own.stream.get(), std::memory_order_release);
    }
  }
  return own.stream.get();
}

void Pool::AddUse(StreamBlock* block, Stream& stream) {
  if (std::optional<PendingUse> use = RecordNow(stream)) block->uses.push_back(*std::move(use));
}

// The work of the stream so far; nothing when none is left that could use memory. Memory comes back
// where nobody can be told of an error, so a device that has no more events is waited for instead.
std::optional<PendingUse> Pool::RecordNow(Stream& stream) {
  PendingUse use{.event = nullptr, .stream = stream.index(), .order = ++record_order_};
  if (events_.empty()) {
    absl::StatusOr<std::unique_ptr<DeviceEvent>> made = device_.CreateEvent();
    if (!made.ok()) {
      stream.Synchronize().IgnoreError();
      return std::nullopt;
    }
    use.event = *std::move(made);
  } else {
    use.event = std::move(events_.back());
    events_.pop_back();
  }
  if (!stream.Record(*use.event).ok()) {  // the device is lost
    stream.Synchronize().IgnoreError();
    return std::nullopt;
  }
  return use;
}

void Pool::Link(StreamBlock* block) {
  block->free = true;
  free_bytes_ += block->block_bytes;
  if (block->node.empty()) {
    FreeBlocksOf(block->home).insert(block);
  } else {
    FreeBlocksOf(block->home).insert(std::move(block->node));
  }
}

void Pool::Unlink(StreamBlock* block) {
  block->free = false;
  free_bytes_ -= block->block_bytes;
  block->node = FreeBlocksOf(block->home).extract(block);
}

// Joins a block with its free neighbours of the same home, which leave their list.
StreamBlock* Pool::Merge(StreamBlock* block) {
  const auto joins = [block](const StreamBlock* other) {
    return other != nullptr && other->free && other->home == block->home;
  };
  if (StreamBlock* next = block->next; joins(next)) {
    Unlink(next);
    Absorb(block, next);
  }
  if (StreamBlock* previous = block->previous; joins(previous)) {
    Unlink(previous);
    Absorb(previous, block);
    return previous;
  }
  return block;
}

void Pool::Absorb(StreamBlock* block, StreamBlock* next) {
  block->block_bytes += next->block_bytes;
  block->next = next->next;
  if (block->next != nullptr) block->next->previous = block;
  for (PendingUse& use : next->uses) {
    const auto same = std::find_if(block->uses.begin(), block->uses.end(),
                                   [&](const PendingUse& u) { return u.stream == use.stream; });
    if (same == block->uses.end()) {
      block->uses.push_back(std::move(use));
      continue;
    }
    if (same->order < use.order) std::swap(*same, use);
    events_.push_back(std::move(use.event));
  }
  delete next;
}

size_t Pool::Trim() {
  // One at a time: who comes second finds the memory that the first has given back.
  std::lock_guard<std::mutex> trim_guard(trim_mutex_);
  std::vector<StreamBlock*> idle;
  std::vector<PendingUse> uses;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    idle = TakeIdleRanges(uses);
  }
  if (idle.empty()) return 0;
  // Without mutex_: whoever frees meanwhile need not wait. Nothing uses memory of a lost device.
  for (const PendingUse& use : uses) use.event->Synchronize().IgnoreError();
  size_t returned = 0;
  for (StreamBlock* block : idle) {
    memory_.Give(block->data, block->block_bytes);
    returned += block->block_bytes;
    delete block;
  }
  std::lock_guard<std::mutex> guard(mutex_);
  for (PendingUse& use : uses) events_.push_back(std::move(use.event));
  ledger_.Unreserve(returned);
  ++ledger_.trims;
  return returned;
}

// Unlinks the ranges of the device that are free from end to end, each joined to one block, and
// adds to `uses` what has to be waited for before they go.
std::vector<StreamBlock*> Pool::TakeIdleRanges(std::vector<PendingUse>& uses) {
  std::vector<StreamBlock*> firsts;
  const auto find = [&firsts](const FreeBlocks& blocks) {
    for (StreamBlock* block : blocks) {
      if (block->previous != nullptr) continue;
      const StreamBlock* last = block;
      while (last != nullptr && last->free) last = last->next;
      if (last == nullptr) firsts.push_back(block);
    }
  };
  find(unused_);
  for (const FreeBlocks& blocks : free_) find(blocks);
  uint64_t homes = 0;  // bits
  for (StreamBlock* block : firsts) JoinRange(block, uses, homes);
  for (; homes != 0; homes &= homes - 1) {
    if (std::optional<PendingUse> use = RecordNow(stream(std::countr_zero(homes)))) {
      uses.push_back(*std::move(use));
    }
  }
  return firsts;
}

void Pool::JoinRange(StreamBlock* first, std::vector<PendingUse>& uses, uint64_t& homes) {
  for (StreamBlock* block = first; block != nullptr; block = first->next) {
    Unlink(block);
    if (block->home != kNobody) homes |= uint64_t{1} << block->home;
    for (PendingUse& use : block->uses) uses.push_back(std::move(use));
    block->uses.clear();
    if (block != first) Absorb(first, block);
  }
}

void Pool::Orphan() {
  bool idle = false;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    orphaned_ = true;
    idle = live_ == 0;
  }
  if (idle) delete this;
}

}  // namespace

std::shared_ptr<StreamPool> StreamPool::Create(Device& device, const StreamPoolOptions& options) {
  return std::shared_ptr<StreamPool>(new Pool(device, options),
                                     [](StreamPool* pool) { static_cast<Pool*>(pool)->Orphan(); });
}

}  // namespace interp
