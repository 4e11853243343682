#include <cstddef>

#include "core/engine/engine_core.h"
#include "core/engine/event_count.h"

namespace interp::engine {
namespace {

// The record and its first access.
void Prefetch(const Record& record) {
  __builtin_prefetch(&record);
  __builtin_prefetch(reinterpret_cast<const std::byte*>(&record) + 64);
}

}  // namespace

void EngineCore::WorkerLoop(Worker& worker) {
  ThisThread().worker = &worker;
  WorkerGroup& group = *worker.group;
  Record* record = nullptr;
  while (true) {
    if (record == nullptr) record = NextFor(worker);
    if (record == nullptr) break;
    if (record->next != nullptr) Prefetch(*record->next);
    RecordList ready = Sort(Run(*record), &group);
    if (group.spec.own) ready = LeaveToOthers(ready);
    if (worker.stands_in && StandIns::IsSurplus(group)) {
      if (!ready.empty()) Enqueue(group, ready);
      record = nullptr;
    } else {
      record = Take(group, ready);
    }
  }
  ReturnKept(worker);
  ThisThread().worker = nullptr;
}

// Only the naive policy has operations of no queue; they run here where no other thread can be had.
// What remains are those of the thread's own queue.
RecordList EngineCore::LeaveToOthers(RecordList ready) {
  RecordList own;
  RecordList others;
  while (Record* record = ready.TakeFirst()) (record->queue < 0 ? others : own).Append(*record);
  if (!others.empty() && !stand_ins_.RunBacklog(others)) RunBacklog(others);
  return own;
}

// Leaves `ready` in the queue and takes the best of it, unless the group is stopped.
Record* EngineCore::Take(WorkerGroup& group, RecordList ready) {
  Record* const record = group.ready.Exchange(ready);
  if (record == nullptr) return nullptr;
  // Whatever was pushed after a stop is seen together with the stop.
  if (group.stop.load(std::memory_order_relaxed)) {
    group.ready.PutBack(*record);
    return nullptr;
  }
  WakeAnother(group);
  return record;
}

// What this thread leaves in the queue may be for another to run at once.
void EngineCore::WakeAnother(WorkerGroup& group) {
  const bool lent = group.waiting.load(std::memory_order_relaxed) > 0;
  if ((group.spec.num_threads == 1 && !lent) || !group.ready.has_more()) return;
  if (group.idle.has_waiters()) {
    group.idle.NotifyOne();
  } else if (lent) {
    stand_ins_.SendIfLacking(group);
  }
}

// The next operation, null when the thread is to end or to leave its group. Blocks.
Record* EngineCore::NextFor(Worker& worker) {
  WorkerGroup& group = *worker.group;
  ReturnKept(worker);
  done_.NotifyAll();
  if (held_up_now_.load() > 0) room_.NotifyAll();
  while (!group.stop.load()) {
    if (worker.stands_in && stand_ins_.Leaves(worker, /*has_work=*/true)) return nullptr;
    if (Record* record = Take(group, {})) return record;
    SpinUntilWork(worker);
    if (!group.ready.seems_empty()) continue;
    if (!worker.stands_in) {
      SleepUntilWork(worker);
    } else if (stand_ins_.Leaves(worker, /*has_work=*/false)) {
      return nullptr;
    }
  }
  if (worker.stands_in) (void)stand_ins_.Leaves(worker, /*has_work=*/false);
  return nullptr;
}

void EngineCore::SpinUntilWork(const Worker& worker) {
  WorkerGroup& group = *worker.group;
  // One thread of a group looks out; the others would only take its time.
  if (group.spinning.fetch_add(1) == 0) {
    for (int i = 0; i < kSpinsBeforeSleep && group.ready.seems_empty() && !group.stop.load(); ++i) {
      if (worker.stands_in && StandIns::IsSurplus(group)) break;
      CpuPause();
    }
  }
  group.spinning.fetch_sub(1);
}

void EngineCore::SleepUntilWork(Worker& worker) {
  WorkerGroup& group = *worker.group;
  const uint32_t epoch = group.idle.Prepare();
  if (group.ready.seems_empty() && !group.stop.load()) {
    group.idle.Wait(epoch);
  } else {
    group.idle.Cancel();
  }
}

}  // namespace interp::engine
