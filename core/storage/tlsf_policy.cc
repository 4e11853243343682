// Two-level segregated fit (Masmano et al., "TLSF: a new dynamic memory allocator for real-time
// systems", ECRTS 2004): free blocks hang in lists by size class, 16 classes per power of two; a
// bitmap finds the first class that fits; blocks are split on allocation and merged with free
// neighbours on release. Both take constant time and touch no source once the pool has grown. Lists
// are last-in first-out, so a buffer freed a moment ago, still in cache, is handed out next.
#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "core/storage/asan_poison.h"
#include "core/storage/block_policy.h"
#include "core/storage/pool.h"

namespace interp {
namespace {

constexpr size_t kUnit = kBufferAlignment;  // sizes and addresses are multiples of this
constexpr int kSubBits = 4;                 // 16 classes per power of two
constexpr int kSubClasses = 1 << kSubBits;
constexpr int kLevels = 48;

// A header unit followed by the block's bytes.
struct TlsfBlock : PoolBlock {
  uint32_t units = 0;       // size of the bytes behind the header, in kUnit
  uint32_t prev_units = 0;  // of the block before in the chunk; 0 at the chunk's start
  bool free = false;
  bool last = false;  // in its chunk
};
static_assert(sizeof(TlsfBlock) <= kUnit);
// A chunk for the largest block, which is a class larger than asked for, fits into 32 bits, too.
constexpr size_t kMaxUnits = (size_t{1} << 32) / 17 * 16 - 4;

// Links of a free block, kept in its bytes (every block has at least one unit).
struct FreeLinks {
  TlsfBlock* prev;
  TlsfBlock* next;
};

char* Bytes(TlsfBlock* block) { return reinterpret_cast<char*>(block) + kUnit; }
FreeLinks& Links(TlsfBlock* block) { return *reinterpret_cast<FreeLinks*>(Bytes(block)); }
TlsfBlock* Next(TlsfBlock* block) {
  return block->last ? nullptr : reinterpret_cast<TlsfBlock*>(Bytes(block) + block->units * kUnit);
}
TlsfBlock* Previous(TlsfBlock* block) {
  if (block->prev_units == 0) return nullptr;
  return reinterpret_cast<TlsfBlock*>(reinterpret_cast<char*>(block) -
                                      (block->prev_units + 1ull) * kUnit);
}

size_t UnitsFor(size_t size_bytes) {
  return std::max<size_t>(1, size_bytes / kUnit + (size_bytes % kUnit != 0));
}

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

void Absorb(TlsfBlock* block, TlsfBlock* next) {
  block->units += next->units + 1;
  block->last = next->last;
  if (TlsfBlock* after = Next(block)) after->prev_units = block->units;
}

class TlsfPolicy final : public BlockPolicy {
 public:
  TlsfPolicy(size_t min_chunk_bytes, size_t granularity)
      : min_chunk_bytes_(std::min(min_chunk_bytes / kUnit, kMaxUnits) * kUnit),
        granularity_(granularity) {}

  size_t SourceBytes(size_t size_bytes, bool frugal) const override {
    const size_t units = UnitsFor(size_bytes);
    if (units > kMaxUnits) return 0;
    // Without thrift a block one class up, which serves any later search for this size.
    const size_t spare = frugal || SearchClass(units).level == 0 ? 0 : units >> kSubBits;
    const size_t needed = (units + spare + (frugal ? 1 : 2)) * kUnit;
    const size_t bytes = frugal ? needed : std::max(needed, min_chunk_bytes_);
    return (bytes + granularity_ - 1) / granularity_ * granularity_;
  }

  PoolBlock* Find(size_t size_bytes) override {
    const size_t units = UnitsFor(size_bytes);
    if (units > kMaxUnits) return nullptr;
    SizeClass c = SearchClass(units);
    if (c.level >= kLevels) return nullptr;
    uint32_t subs = sub_bitmap_[c.level] & (~0u << c.sub);
    if (subs == 0) {
      const uint64_t levels = level_bitmap_ & (~uint64_t{1} << c.level);
      if (levels == 0) return nullptr;
      c.level = std::countr_zero(levels);
      subs = sub_bitmap_[c.level];
    }
    TlsfBlock* block = heads_[c.level][std::countr_zero(subs)];
    Unlink(block);
    return Use(block, size_bytes);
  }

  PoolBlock* Adopt(const MemoryRange& range, size_t size_bytes) override {
    chunks_.push_back(range);
    return Use(NewBlock(range.address, range.bytes / kUnit - 1, 0, /*last=*/true), size_bytes);
  }

  MemoryRange Put(PoolBlock* put, bool direct) override {
    auto* block = static_cast<TlsfBlock*>(put);
    INTERP_UNPOISON(Bytes(block), sizeof(FreeLinks));
    block = Merge(block);
    Link(block);
    if (!direct || block->prev_units != 0 || !block->last) return {};
    const auto chunk = std::find_if(chunks_.begin(), chunks_.end(), [block](const MemoryRange& c) {
      return c.address == static_cast<void*>(block);
    });
    const MemoryRange range = *chunk;
    Forget(range);
    *chunk = chunks_.back();
    chunks_.pop_back();
    return range;
  }

  void TakeIdle(size_t bytes, std::vector<MemoryRange>& idle) override {
    size_t found = 0;
    TakeChunks(idle, [&](const MemoryRange& chunk) {
      if (found >= bytes) return false;
      found += chunk.bytes;
      return true;
    });
  }

  void TakeOutgrown(size_t bytes, std::vector<MemoryRange>& idle) override {
    TakeChunks(idle, [left = bytes](const MemoryRange& chunk) mutable {
      if (chunk.bytes > left) return false;
      left -= chunk.bytes;
      return true;
    });
  }

  size_t free_bytes() const override { return free_units_ * kUnit; }

 private:
  // Makes an unlinked block one for `size_bytes`; what is too much is cut off.
  PoolBlock* Use(TlsfBlock* block, size_t size_bytes) {
    const size_t units = UnitsFor(size_bytes);
    block->free = false;
    block->direct.store(false, std::memory_order_relaxed);
    if (block->units > units + 1) Split(block, units);
    INTERP_UNPOISON(Bytes(block), size_bytes);
    return block;
  }

  void Split(TlsfBlock* block, size_t units) {
    const uint32_t rest_units = block->units - static_cast<uint32_t>(units) - 1;
    const bool last = block->last;
    block->units = static_cast<uint32_t>(units);
    block->last = false;
    char* at = Bytes(block) + units * kUnit;
    INTERP_UNPOISON(at, kUnit + sizeof(FreeLinks));
    TlsfBlock* rest = NewBlock(at, rest_units, block->units, last);
    if (TlsfBlock* next = Next(rest)) next->prev_units = rest_units;
    Link(rest);
  }

  static TlsfBlock* NewBlock(void* at, size_t units, uint32_t prev_units, bool last) {
    auto* block = new (at) TlsfBlock;
    block->data = Bytes(block);
    block->units = static_cast<uint32_t>(units);
    block->prev_units = prev_units;
    block->last = last;
    return block;
  }

  // Joins a block with its free neighbours, which leave their lists.
  TlsfBlock* Merge(TlsfBlock* block) {
    if (TlsfBlock* next = Next(block); next != nullptr && next->free) {
      Unlink(next);
      Absorb(block, next);
    }
    if (TlsfBlock* previous = Previous(block); previous != nullptr && previous->free) {
      Unlink(previous);
      Absorb(previous, block);
      block = previous;
    }
    return block;
  }

  // Moves the idle chunks that are wanted.
  template <typename Wanted>
  void TakeChunks(std::vector<MemoryRange>& idle, Wanted wanted) {
    std::erase_if(chunks_, [&](const MemoryRange& chunk) {
      const auto* block = static_cast<TlsfBlock*>(chunk.address);
      if (!block->free || !block->last || !wanted(chunk)) return false;
      Forget(chunk);
      idle.push_back(chunk);
      return true;
    });
  }

  // Unlinks the only block of a chunk, which is to go.
  void Forget(const MemoryRange& chunk) {
    Unlink(static_cast<TlsfBlock*>(chunk.address));
    INTERP_UNPOISON(chunk.address, chunk.bytes);
  }

  void Link(TlsfBlock* block) {
    const SizeClass c = ClassOf(block->units);
    TlsfBlock*& head = heads_[c.level][c.sub];
    block->free = true;
    free_units_ += block->units;
    INTERP_POISON(Bytes(block), block->units * kUnit);
    INTERP_UNPOISON(Bytes(block), sizeof(FreeLinks));
    Links(block) = {nullptr, head};
    if (head != nullptr) Links(head).prev = block;
    head = block;
    sub_bitmap_[c.level] |= 1u << c.sub;
    level_bitmap_ |= uint64_t{1} << c.level;
  }

  void Unlink(TlsfBlock* block) {
    const SizeClass c = ClassOf(block->units);
    const FreeLinks links = Links(block);
    free_units_ -= block->units;
    if (links.next != nullptr) Links(links.next).prev = links.prev;
    if (links.prev != nullptr) {
      Links(links.prev).next = links.next;
    } else {
      heads_[c.level][c.sub] = links.next;
      if (links.next == nullptr) sub_bitmap_[c.level] &= ~(1u << c.sub);
      if (sub_bitmap_[c.level] == 0) level_bitmap_ &= ~(uint64_t{1} << c.level);
    }
  }

  const size_t min_chunk_bytes_;
  const size_t granularity_;
  std::vector<MemoryRange> chunks_;
  size_t free_units_ = 0;
  uint64_t level_bitmap_ = 0;
  uint32_t sub_bitmap_[kLevels] = {};
  TlsfBlock* heads_[kLevels][kSubClasses] = {};
};

}  // namespace

std::unique_ptr<BlockPolicy> MakeTlsfPolicy(const PoolOptions& options, size_t granularity) {
  return std::make_unique<TlsfPolicy>(options.min_chunk_bytes, granularity);
}

}  // namespace interp
