#include "core/host_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define INTERP_POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define INTERP_UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define INTERP_POISON(p, n) ((void)(p), (void)(n))
#define INTERP_UNPOISON(p, n) ((void)(p), (void)(n))
#endif

namespace interp {
namespace {

constexpr size_t kUnit = kBufferAlignment;  // sizes and addresses are multiples of this
constexpr int kSubBits = 4;                 // 16 classes per power of two
constexpr int kSubClasses = 1 << kSubBits;
constexpr int kLevels = 48;

// A block is a header unit followed by its bytes. The buffer is the header's first part.
struct Block {
  Buffer buffer;
  uint32_t units;       // size of the bytes behind the header, in kUnit
  uint32_t prev_units;  // of the block before in the chunk; 0 at the chunk's start
  bool free;
  bool last;  // in its chunk
};
static_assert(sizeof(Block) <= kUnit);
// A chunk for the largest block, which is a class larger than asked for, fits into 32 bits, too.
constexpr size_t kMaxUnits = (size_t{1} << 32) / 17 * 16 - 4;

// Links of a free block, kept in its bytes (every block has at least one unit).
struct FreeLinks {
  Block* prev;
  Block* next;
};

char* Bytes(Block* block) { return reinterpret_cast<char*>(block) + kUnit; }
FreeLinks& Links(Block* block) { return *reinterpret_cast<FreeLinks*>(Bytes(block)); }
Block* Next(Block* block) {
  return block->last ? nullptr : reinterpret_cast<Block*>(Bytes(block) + block->units * kUnit);
}
Block* Previous(Block* block) {
  if (block->prev_units == 0) return nullptr;
  return reinterpret_cast<Block*>(reinterpret_cast<char*>(block) -
                                  (block->prev_units + 1ull) * kUnit);
}

size_t UnitsFor(size_t size_bytes) {
  return std::max<size_t>(1, size_bytes / kUnit + (size_bytes % kUnit != 0));
}

class SpinLock {
 public:
  void lock() {
    int spins = 0;
    while (locked_.exchange(true, std::memory_order_acquire)) {
      if (++spins > 64) std::this_thread::yield();
    }
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

struct SizeClass {
  int level;
  int sub;
};

// The class whose blocks have at least `units` rounded down: where a free block is filed.
SizeClass ClassOf(size_t units) {
  if (units < kSubClasses) return {0, static_cast<int>(units)};
  const int log2 = std::bit_width(units) - 1;
  return {log2 - kSubBits + 1, static_cast<int>((units >> (log2 - kSubBits)) - kSubClasses)};
}

// The least class all of whose blocks hold `units`: where a search starts.
SizeClass SearchClass(size_t units) {
  if (units < kSubClasses) return {0, static_cast<int>(units)};
  const int log2 = std::bit_width(units) - 1;
  return ClassOf(units + (size_t{1} << (log2 - kSubBits)) - 1);
}

class Pool final : public HostPool {
 public:
  explicit Pool(const HostPoolOptions& options) : options_(options) {}

  ~Pool() override {
    for (const Chunk& chunk : chunks_) {
      INTERP_UNPOISON(chunk.memory, chunk.size_bytes);
      std::free(chunk.memory);
    }
  }

  absl::StatusOr<BufferRef> Allocate(size_t size_bytes) override {
    const size_t units = UnitsFor(size_bytes);
    const bool refused = options_.fail && options_.fail(size_bytes);
    std::lock_guard<SpinLock> guard(lock_);
    if (refused || units > kMaxUnits ||
        (options_.limit_bytes != 0 &&
         stats_.current_bytes + units * kUnit > options_.limit_bytes)) {
      return OverLimit(size_bytes);
    }
    Block* block = TakeFree(units);
    if (block == nullptr) {
      if (!Grow(units)) return OverLimit(size_bytes);
      block = TakeFree(units);
    }
    stats_.current_bytes += units * kUnit;  // not block->units: what is left over stays ours
    stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.current_bytes);
    block->buffer.serial = static_cast<uint64_t>(++stats_.allocations);
    block->buffer.size_bytes = size_bytes;
    INTERP_UNPOISON(Bytes(block), size_bytes);
    return BufferRef::First(&block->buffer);
  }

  MemoryStats stats() const override {
    std::lock_guard<SpinLock> guard(lock_);
    return stats_;
  }

  void ResetPeak() override {
    std::lock_guard<SpinLock> guard(lock_);
    stats_.peak_bytes = stats_.current_bytes;
  }

  size_t Trim() override {
    std::lock_guard<SpinLock> guard(lock_);
    size_t returned = 0;
    std::erase_if(chunks_, [&](const Chunk& chunk) {
      auto* block = static_cast<Block*>(chunk.memory);
      if (!block->free || !block->last) return false;
      Unlink(block);
      returned += chunk.size_bytes;
      INTERP_UNPOISON(chunk.memory, chunk.size_bytes);
      std::free(chunk.memory);
      return true;
    });
    stats_.reserved_bytes -= returned;
    return returned;
  }

  // The owner is gone; die now or with the last buffer.
  void Orphan() {
    bool idle = false;
    {
      std::lock_guard<SpinLock> guard(lock_);
      orphaned_ = true;
      idle = stats_.current_bytes == 0;
    }
    if (idle) delete this;
  }

 private:
  struct Chunk {
    void* memory;
    size_t size_bytes;
  };

  void Free(Buffer* buffer) override {
    bool last = false;
    {
      std::lock_guard<SpinLock> guard(lock_);
      auto* block = reinterpret_cast<Block*>(buffer);
      stats_.current_bytes -= UnitsFor(buffer->size_bytes) * kUnit;
      INTERP_UNPOISON(Bytes(block), sizeof(FreeLinks));
      Link(Merge(block));
      last = orphaned_ && stats_.current_bytes == 0;
    }
    if (last) delete this;
  }

  absl::Status OverLimit(size_t size_bytes) const {
    if (options_.limit_bytes == 0) {
      return ResourceExhausted("cannot allocate ", size_bytes, " bytes: the system has no more (",
                               stats_.current_bytes, " bytes are in use)");
    }
    return ResourceExhausted("cannot allocate ", size_bytes, " bytes: ", stats_.current_bytes,
                             " bytes are in use and the limit is ", options_.limit_bytes);
  }

  // Unlinks a free block of at least `units`, cuts off what is too much, marks it used.
  Block* TakeFree(size_t units) {
    SizeClass c = SearchClass(units);
    if (c.level >= kLevels) return nullptr;
    uint32_t subs = sub_bitmap_[c.level] & (~0u << c.sub);
    if (subs == 0) {
      const uint64_t levels = level_bitmap_ & (~uint64_t{1} << c.level);
      if (levels == 0) return nullptr;
      c.level = std::countr_zero(levels);
      subs = sub_bitmap_[c.level];
    }
    Block* block = heads_[c.level][std::countr_zero(subs)];
    Unlink(block);
    block->free = false;
    if (block->units > units + 1) Split(block, units);
    return block;
  }

  void Split(Block* block, size_t units) {
    const uint32_t rest_units = block->units - static_cast<uint32_t>(units) - 1;
    const bool last = block->last;
    block->units = static_cast<uint32_t>(units);
    block->last = false;
    char* at = Bytes(block) + units * kUnit;
    INTERP_UNPOISON(at, kUnit + sizeof(FreeLinks));
    Block* rest = NewBlock(at, rest_units, block->units, last);
    if (Block* next = Next(rest)) next->prev_units = rest_units;
    Link(rest);
  }

  Block* NewBlock(void* at, size_t units, uint32_t prev_units, bool last) {
    auto* block = new (at) Block{};
    block->buffer.owner = this;
    block->buffer.data = Bytes(block);
    block->units = static_cast<uint32_t>(units);
    block->prev_units = prev_units;
    block->last = last;
    return block;
  }

  // Joins a block with its free neighbours, which leave their lists.
  Block* Merge(Block* block) {
    if (Block* next = Next(block); next != nullptr && next->free) {
      Unlink(next);
      Absorb(block, next);
    }
    if (Block* previous = Previous(block); previous != nullptr && previous->free) {
      Unlink(previous);
      Absorb(previous, block);
      block = previous;
    }
    return block;
  }

  static void Absorb(Block* block, Block* next) {
    block->units += next->units + 1;
    block->last = next->last;
    if (Block* after = Next(block)) after->prev_units = block->units;
  }

  void Link(Block* block) {
    const SizeClass c = ClassOf(block->units);
    Block*& head = heads_[c.level][c.sub];
    block->free = true;
    INTERP_POISON(Bytes(block), block->units * kUnit);
    INTERP_UNPOISON(Bytes(block), sizeof(FreeLinks));
    Links(block) = {nullptr, head};
    if (head != nullptr) Links(head).prev = block;
    head = block;
    sub_bitmap_[c.level] |= 1u << c.sub;
    level_bitmap_ |= uint64_t{1} << c.level;
  }

  void Unlink(Block* block) {
    const SizeClass c = ClassOf(block->units);
    const FreeLinks links = Links(block);
    if (links.next != nullptr) Links(links.next).prev = links.prev;
    if (links.prev != nullptr) {
      Links(links.prev).next = links.next;
    } else {
      heads_[c.level][c.sub] = links.next;
      if (links.next == nullptr) sub_bitmap_[c.level] &= ~(1u << c.sub);
      if (sub_bitmap_[c.level] == 0) level_bitmap_ &= ~(uint64_t{1} << c.level);
    }
  }

  bool Grow(size_t units) {
    const SizeClass c = SearchClass(units);  // a block one class up surely serves the search
    const size_t needed = (units + (c.level > 0 ? units >> kSubBits : 0) + 2) * kUnit;
    const size_t least = std::min(options_.min_chunk_bytes / kUnit, kMaxUnits) * kUnit;
    const size_t chunk_bytes = std::max(needed, least);
    void* memory = std::aligned_alloc(kUnit, chunk_bytes);
    if (memory == nullptr) return false;
    chunks_.push_back({memory, chunk_bytes});
    stats_.reserved_bytes += chunk_bytes;
    Link(NewBlock(memory, chunk_bytes / kUnit - 1, 0, /*last=*/true));
    return true;
  }

  const HostPoolOptions options_;
  mutable SpinLock lock_;  // guards everything below
  MemoryStats stats_;
  bool orphaned_ = false;
  std::vector<Chunk> chunks_;
  uint64_t level_bitmap_ = 0;
  uint32_t sub_bitmap_[kLevels] = {};
  Block* heads_[kLevels][kSubClasses] = {};
};

}  // namespace

std::shared_ptr<HostPool> HostPool::Create(const HostPoolOptions& options) {
  return std::shared_ptr<HostPool>(new Pool(options),
                                   [](HostPool* pool) { static_cast<Pool*>(pool)->Orphan(); });
}

}  // namespace interp
