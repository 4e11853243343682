// SlotPool: fixed-size slots that one thread at a time takes and any thread returns.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace interp::engine {

// `Next` is a pointer to the member that links free slots; kBytes a multiple of kAlignment. Memory
// is never unmapped before the pool goes. Taking needs the caller's lock; giving needs none: given
// slots are stacked aside by compare-and-swap and taken over all at once, so a slot cannot come
// back between two looks at the stack (no ABA).
template <typename T, auto Next, size_t kBytes>
class SlotPool {
 public:
  static constexpr size_t kAlignment = 64;
  static_assert(kBytes % kAlignment == 0 && sizeof(T) <= kBytes);

  SlotPool() = default;
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;
  // Destroys all slots, returned or not.
  ~SlotPool() {
    for (const auto& chunk : chunks_) {
      for (size_t i = 0; i < kSlotsPerChunk; ++i) {
        std::launder(reinterpret_cast<T*>(chunk[i].bytes))->~T();
      }
    }
  }

  // A slot that holds a T: a new one, or one that was returned, as it was.
  T* Take() {
    if (--takes_before_look_ <= 0 || free_ == nullptr) LookForReturned();
    if (free_ == nullptr) Grow();
    T* slot = free_;
    free_ = slot->*Next;
    if (free_ != nullptr) PrefetchStart(*free_);
    return slot;
  }
  // Returns slots linked by Next from `first` to `last`.
  void Return(T* first, T* last) {
    T* head = returned_.load(std::memory_order_relaxed);
    do {
      last->*Next = head;
    } while (!returned_.compare_exchange_weak(head, first, std::memory_order_release,
                                              std::memory_order_relaxed));
  }

 private:
  struct alignas(kAlignment) Slot {
    std::byte bytes[kBytes];
  };
  static constexpr size_t kSlotsPerChunk = 64;

  // Of the slot that is next: it is in the cache of the thread that returned it.
  static void PrefetchStart(T& slot) {
    constexpr size_t kStart = kBytes < 192 ? kBytes : 192;
    for (size_t i = 0; i < kStart; i += 64) {
      __builtin_prefetch(reinterpret_cast<const std::byte*>(&slot) + i, 1);
    }
  }

  // Slots that were returned just now are used first: they are in a cache, and those in use are
  // few.
  void LookForReturned() {
    takes_before_look_ = kTakesBetweenLooks;
    T* const returned = returned_.load(std::memory_order_relaxed) == nullptr
                            ? nullptr
                            : returned_.exchange(nullptr, std::memory_order_acquire);
    if (returned != nullptr) {
      if (free_ != nullptr) set_aside_.push_back(free_);
      free_ = returned;
    } else if (free_ == nullptr && !set_aside_.empty()) {
      free_ = set_aside_.back();
      set_aside_.pop_back();
    }
  }

  void Grow() {
    chunks_.push_back(std::make_unique<Slot[]>(kSlotsPerChunk));
    Slot* const chunk = chunks_.back().get();
    for (size_t i = kSlotsPerChunk; i-- > 0;) {
      T* const slot = new (chunk[i].bytes) T;
      slot->*Next = free_;
      free_ = slot;
    }
  }

  static constexpr int kTakesBetweenLooks = 64;

  T* free_ = nullptr;
  std::vector<T*> set_aside_;  // other lists of free slots
  int takes_before_look_ = kTakesBetweenLooks;
  std::vector<std::unique_ptr<Slot[]>> chunks_;
  // Apart from what the taking thread writes all the time.
  alignas(64) std::atomic<T*> returned_{nullptr};
};

}  // namespace interp::engine
