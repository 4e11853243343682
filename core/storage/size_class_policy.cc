// Pools whose blocks are never split or joined: a free block waits for a size that rounds to its
// own. Naive ones keep none.
#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/storage/aligned_memory.h"
#include "core/storage/asan_poison.h"
#include "core/storage/block_policy.h"
#include "core/storage/pool.h"

namespace interp {
namespace {

constexpr size_t kPage = kBufferAlignment;
constexpr size_t kMostBytes = size_t{1} << 62;  // rounds and grows by a header without overflow

struct PagedBlock : PoolBlock {
  PagedBlock* next = nullptr;  // free blocks of the same class, last in first out
  size_t class_bytes = 0;      // size of the bytes
};
static_assert(sizeof(PagedBlock) <= kPage);

// How sizes are rounded: to one of `page` up to the cut-off, or to powers of two from it on; above
// the cut-off to its multiples.
struct Rounding {
  size_t page_bytes = kPage;
  size_t cutoff_bytes = 0;  // 0: no other rounding above
  bool powers = false;

  // REQUIRES: bytes <= kMostBytes.
  size_t operator()(size_t bytes) const {
    bytes = std::max<size_t>(bytes, 1);
    if (cutoff_bytes != 0 && bytes > cutoff_bytes) return RoundUp(bytes, cutoff_bytes);
    return powers ? std::max(page_bytes, std::bit_ceil(bytes)) : RoundUp(bytes, page_bytes);
  }
};

Rounding RoundingOf(const PoolOptions& options) {
  const auto or_default = [](size_t value, size_t otherwise) {
    return value == 0 ? otherwise : std::max(value, kPage);
  };
  switch (options.kind) {
    case PoolKind::kPowerOfTwo:
      return {.page_bytes = or_default(options.page_bytes, kPage),
              .cutoff_bytes = or_default(options.cutoff_bytes, size_t{16} << 20),
              .powers = true};
    case PoolKind::kLinear:
      return {.page_bytes = or_default(options.page_bytes, 4096),
              .cutoff_bytes = or_default(options.cutoff_bytes, size_t{2} << 20)};
    default:
      return {};
  }
}

class SizeClassPolicy final : public BlockPolicy {
 public:
  SizeClassPolicy(const PoolOptions& options, size_t granularity, bool header_apart)
      : rounding_(RoundingOf(options)),
        keeps_(options.kind != PoolKind::kNaive),
        granularity_(granularity),
        header_bytes_(header_apart ? 0 : kPage) {}

  size_t SourceBytes(size_t size_bytes, bool /*frugal*/) const override {
    if (size_bytes > kMostBytes) return 0;
    return RangeBytes(rounding_(size_bytes));
  }

  PoolBlock* Find(size_t size_bytes) override {
    if (!keeps_ || size_bytes > kMostBytes) return nullptr;
    const auto it = free_.find(rounding_(size_bytes));
    if (it == free_.end() || it->second == nullptr) return nullptr;
    PagedBlock* const block = std::exchange(it->second, it->second->next);
    free_bytes_ -= block->class_bytes;
    return Use(block, size_bytes);
  }

  PoolBlock* Adopt(const MemoryRange& range, size_t size_bytes) override {
    PagedBlock* block = nullptr;
    if (header_bytes_ == 0) {
      block = new PagedBlock;
    } else {
      block = new (range.address) PagedBlock;
    }
    block->data = static_cast<char*>(range.address) + header_bytes_;
    block->class_bytes = rounding_(size_bytes);
    Poison(block);
    return Use(block, size_bytes);
  }

  MemoryRange Put(PoolBlock* put, bool direct) override {
    auto* block = static_cast<PagedBlock*>(put);
    if (direct || !keeps_) return Remove(block);
    Poison(block);
    PagedBlock*& head = free_[block->class_bytes];
    block->next = std::exchange(head, block);
    free_bytes_ += block->class_bytes;
    return {};
  }

  // The largest first: few calls bring much, and large blocks are the likeliest to lie idle.
  void TakeIdle(size_t bytes, std::vector<MemoryRange>& idle) override {
    std::vector<size_t> classes;
    for (const auto& [class_bytes, head] : free_) classes.push_back(class_bytes);
    std::sort(classes.rbegin(), classes.rend());
    size_t found = 0;
    for (const size_t class_bytes : classes) {
      PagedBlock*& head = free_[class_bytes];
      while (head != nullptr && found < bytes) {
        PagedBlock* const block = std::exchange(head, head->next);
        free_bytes_ -= class_bytes;
        idle.push_back(Remove(block));
        found += idle.back().bytes;
      }
      if (head == nullptr) free_.erase(class_bytes);
    }
  }

  // Every block has its use.
  void TakeOutgrown(size_t, std::vector<MemoryRange>&) override {}

  size_t free_bytes() const override { return free_bytes_; }

 private:
  size_t RangeBytes(size_t class_bytes) const {
    return RoundUp(header_bytes_ + class_bytes, granularity_);
  }

  static PoolBlock* Use(PagedBlock* block, size_t size_bytes) {
    block->direct.store(false, std::memory_order_relaxed);
    INTERP_UNPOISON(block->data, size_bytes);
    return block;
  }

  void Poison(PagedBlock* block) const {
    if (header_bytes_ != 0) INTERP_POISON(block->data, block->class_bytes);
  }

  // What the block was made of; the block is no more.
  MemoryRange Remove(PagedBlock* block) {
    MemoryRange range{static_cast<char*>(block->data) - header_bytes_,
                      RangeBytes(block->class_bytes)};
    if (header_bytes_ == 0) {
      delete block;
    } else {
      INTERP_UNPOISON(range.address, range.bytes);
    }
    return range;
  }

  const Rounding rounding_;
  const bool keeps_;
  const size_t granularity_;
  const size_t header_bytes_;  // 0: headers lie apart
  absl::flat_hash_map<size_t, PagedBlock*>
      free_;  // by class; an entry stays when its list is empty
  size_t free_bytes_ = 0;
};

}  // namespace

std::unique_ptr<BlockPolicy> MakeSizeClassPolicy(const PoolOptions& options, size_t granularity,
                                                 bool header_apart) {
  return std::make_unique<SizeClassPolicy>(options, granularity, header_apart);
}

}  // namespace interp
