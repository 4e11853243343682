#include "core/engine/ready_queue.h"

#include <algorithm>
#include <mutex>

namespace interp::engine {
namespace {

// Operations made ready by workers do not keep those of the inbox waiting longer than this many.
constexpr uint32_t kTakenBeforeInbox = 64;
// Empty levels are dropped beyond this many.
constexpr size_t kMaxIdleLevels = 64;

}  // namespace

void ReadyQueue::Put(RecordList records) {
  if (records.empty()) return;
  // The inbox is a stack: turned round when it is emptied, so it is turned round here, too.
  Record* newest = nullptr;
  Record* oldest = nullptr;
  bool urgent = false;
  while (Record* record = records.TakeFirst()) {
    urgent |= record->priority > 0;
    record->next = newest;
    newest = record;
    if (oldest == nullptr) oldest = record;
  }
  Record* head = inbox_.load(std::memory_order_relaxed);
  do {
    oldest->next = head;
  } while (!inbox_.compare_exchange_weak(head, newest, std::memory_order_seq_cst,
                                         std::memory_order_relaxed));
  if (urgent) urgent_.store(true, std::memory_order_release);
}

ReadyQueue::Level& ReadyQueue::LevelOf(int32_t priority) {
  const auto at =
      std::lower_bound(levels_.begin(), levels_.end(), priority,
                       [](const Level& level, int32_t value) { return level.priority > value; });
  const size_t index = at - levels_.begin();
  if (at == levels_.end() || at->priority != priority) {
    levels_.insert(at, {priority, {}});
    if (best_ >= index) ++best_;
  }
  best_ = std::min(best_, index);
  return levels_[index];
}

void ReadyQueue::Insert(RecordList records) {
  int64_t added = 0;
  while (Record* record = records.TakeFirst()) {
    if (best_ < levels_.size() && levels_[best_].priority == record->priority) {
      levels_[best_].records.Append(*record);
    } else {
      LevelOf(record->priority).records.Append(*record);
    }
    ++added;
  }
  size_.store(size_.load(std::memory_order_relaxed) + added, std::memory_order_relaxed);
}

void ReadyQueue::EmptyInbox() {
  taken_ = 0;
  if (urgent_.load(std::memory_order_relaxed)) urgent_.store(false, std::memory_order_relaxed);
  Record* newest = inbox_.exchange(nullptr, std::memory_order_acquire);
  RecordList records;
  if (newest != nullptr) records.last = newest;
  while (newest != nullptr) {
    Record* const older = newest->next;
    newest->next = records.first;
    records.first = newest;
    newest = older;
  }
  Insert(records);
}

bool ReadyQueue::InboxMayBeBetter() {
  return best_ == levels_.size() || ++taken_ >= kTakenBeforeInbox || levels_[best_].priority < 0 ||
         urgent_.load(std::memory_order_acquire);
}

Record* ReadyQueue::Exchange(RecordList ready) {
  std::lock_guard<SpinLock> guard(lock_);
  Insert(ready);
  const auto skip_empty = [this] {
    while (best_ < levels_.size() && levels_[best_].records.empty()) ++best_;
  };
  skip_empty();
  if (InboxMayBeBetter() && inbox_.load(std::memory_order_relaxed) != nullptr) {
    EmptyInbox();
    skip_empty();
  }
  if (best_ == levels_.size()) {
    if (levels_.size() > kMaxIdleLevels) levels_.clear();
    best_ = levels_.size();
    return nullptr;
  }
  size_.store(size_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  return levels_[best_].records.TakeFirst();
}

void ReadyQueue::PutBack(Record& record) {
  std::lock_guard<SpinLock> guard(lock_);
  LevelOf(record.priority).records.Prepend(record);
  size_.fetch_add(1);
}

}  // namespace interp::engine
