#include <algorithm>
#include <cstddef>

#include "core/engine/engine_core.h"
#include "core/engine/tracker.h"
#include "core/steady_clock.h"

namespace interp::engine {
namespace {

// Records a worker keeps before it sends them home.
constexpr int kRecordsKept = 32;
// Looks at its queue before an idle worker sleeps, some 20 us: waking it takes longer.
constexpr int kSpinsBeforeSleep = 2000;

// The record and its first access.
void Prefetch(const Record& record) {
  __builtin_prefetch(&record);
  __builtin_prefetch(reinterpret_cast<const std::byte*>(&record) + 64);
}

absl::Status StatusOf(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    return absl::InternalError(e.what());
  } catch (...) {
    return absl::InternalError("threw something that is no std::exception");
  }
}

}  // namespace

ThreadState& ThisThread() {
  // Found without a call: it is wanted several times per operation, and small enough for the room
  // that the loader keeps for libraries loaded late.
  [[gnu::tls_model("initial-exec")]] static thread_local constinit ThreadState state;
  return state;
}

Completion::~Completion() {
  // While an exception passes, that exception is the error: see EngineCore::Call.
  if (record_ == nullptr || core_->IsUnwinding(*record_)) return;
  (void)Done(absl::InternalError("was given up: its completion was dropped"));
}

RunContext Completion::context() const { return core_->ContextOf(*record_); }
RunContext RunningOperation::context() const { return core_.ContextOf(record_); }

absl::Status Completion::Start() { return core_->StartAsync(*record_); }

absl::Status Completion::Done(absl::Status status) {
  Record* const record = std::exchange(record_, nullptr);
  if (record == nullptr) {
    return absl::FailedPreconditionError("the operation has been completed before");
  }
  core_->FinishAsync(*record, std::move(status));
  return absl::OkStatus();
}

RunContext EngineCore::ContextOf(const Record& record) {
  RunContext context;
  const Worker* const worker = ThisThread().worker;
  if (worker != nullptr && worker->core == this) context.worker = worker->number;
  if (record.stream >= 0) {
    context.place = policy_.places[1 + record.stream / kStreamsPerDevice];
    context.stream = streams_[record.stream].get();
    context.work = order_.WorkOf(record);
  }
  return context;
}

ErrorRef EngineCore::InheritedError(Record& record) const {
  // Variables are not looked at while nothing has ever failed: the usual case.
  if ((record.flags & kRunsOnErrors) != 0 || failed_.load(std::memory_order_relaxed) == 0) {
    return {};
  }
  const Access* const accesses = record.accesses();
  for (int i = 0; i < record.num_accesses; ++i) {
    if (accesses[i].kind != AccessKind::kWrite && accesses[i].var->error) {
      return accesses[i].var->error;
    }
  }
  return {};
}

ErrorRef EngineCore::Prepare(Record& record) {
  if (ErrorRef error = InheritedError(record)) return error;
  if (record.stream >= 0) order_.Begin(record);
  // An asynchronous operation says itself when it starts.
  if (record.table->async || order_.num_streams() == 0) return {};
  ErrorRef error = order_.Before(record);
  return (record.flags & kRunsOnErrors) != 0 ? ErrorRef() : error;
}

absl::Status EngineCore::StartAsync(Record& record) {
  const ErrorRef error = order_.Before(record);
  return error && (record.flags & kRunsOnErrors) == 0 ? ToStatus(*error) : absl::OkStatus();
}

ErrorRef EngineCore::OwnError(const Record& record, absl::Status status,
                              std::exception_ptr exception) {
  if (exception != nullptr) status = StatusOf(exception);
  return NewError(std::move(status), std::move(exception), record.name, record.number);
}

ErrorRef EngineCore::NewError(absl::Status status, std::exception_ptr exception, const char* name,
                              uint64_t number) {
  failed_.fetch_add(1, std::memory_order_relaxed);
  ErrorRef error = ErrorRef::Make(std::move(status), std::move(exception), name, number);
  std::lock_guard<std::mutex> lock(errors_mutex_);
  errors_.push_back(error);
  return error;
}

// Runs the function; the error it returns or throws.
ErrorRef EngineCore::Call(Record& record) {
  RunningOperation running(*this, record);
  try {
    absl::Status status = record.table->run(record.callable, running);
    return status.ok() ? ErrorRef() : OwnError(record, std::move(status), nullptr);
  } catch (...) {
    return OwnError(record, {}, std::current_exception());
  }
}

RecordList EngineCore::Run(Record& record) {
  // The completion writes all of them, one after the other.
  for (int i = 0; i < record.num_accesses; ++i) __builtin_prefetch(record.accesses()[i].var, 1);
  ThreadState& thread = ThisThread();
  const bool async = record.table->async;
  ThreadState::Frame frame{this, &record, async ? std::uncaught_exceptions() : 0, false,
                           thread.frames};
  thread.frames = &frame;
  record.holders.store(async ? 2 : 1, std::memory_order_relaxed);
  EngineObserver* const observer = observer_.load(std::memory_order_relaxed);
  const int64_t start_ns = observer != nullptr ? SteadyNowNs() : 0;
  ErrorRef error = Prepare(record);
  const bool skipped = static_cast<bool>(error);
  if (!skipped) error = Call(record);
  if (observer != nullptr) Observe(*observer, record, skipped, start_ns);
  thread.frames = frame.outer;
  RecordList ready;
  if (!async || skipped) {
    ready = Complete(record, error, skipped);
    Free(record);
    return ready;
  }
  // It threw with its completion in hand, or before that; else the error comes too late for its
  // variables, and only WaitForAll tells of it.
  if (error && frame.abandoned) {
    ready = Complete(record, error, /*skipped=*/false);
    record.holders.store(1, std::memory_order_relaxed);
  }
  if (record.holders.fetch_sub(1, std::memory_order_acq_rel) == 1) Free(record);
  return ready;
}

bool EngineCore::IsUnwinding(const Record& record) const {
  ThreadState::Frame* const frame = ThisThread().frames;
  if (frame == nullptr || frame->record != &record || frame->core != this ||
      std::uncaught_exceptions() <= frame->exceptions) {
    return false;
  }
  frame->abandoned = true;
  return true;
}

void EngineCore::Observe(EngineObserver& observer, const Record& record, bool skipped,
                         int64_t start_ns) {
  const Worker* const worker = ThisThread().worker;
  const bool of_this = worker != nullptr && worker->core == this;
  const Place place =
      record.stream < 0 ? Place{} : policy_.places[1 + record.stream / kStreamsPerDevice];
  observer.OnOperation({.name = record.name,
                        .number = record.number,
                        .queue = of_this ? worker->group->number : -1,
                        .worker = of_this ? worker->index : ThisThread().home,
                        .skipped = skipped,
                        .place = place},
                       start_ns, SteadyNowNs());
}

RecordList EngineCore::Complete(Record& record, const ErrorRef& error, bool skipped) {
  if (skipped) {
    skipped_.fetch_add(1, std::memory_order_relaxed);
  } else if (record.stream >= 0) {
    // It may have enqueued without having said that it starts.
    if ((record.flags & kOrdered) == 0) (void)order_.Before(record);
    order_.After(record);
  } else if ((record.flags & kOrdered) != 0) {
    order_.AfterHost(record);
  }
  RecordList ready;
  Access* const accesses = record.accesses();
  if ((record.flags & kDeletes) != 0) {
    Var& var = *accesses[0].var;
    std::unique_lock<SpinLock> lock(var.lock);
    ReleaseLocked(accesses[0], nullptr, ready);
    RetireVariable(var, std::move(lock));
    return ready;
  }
  for (int i = 0; i < record.num_accesses; ++i) {
    Access& access = accesses[i];
    // Success makes good what is overwritten, and leaves what is updated as it was.
    const bool set = error || access.kind == AccessKind::kWrite;
    Release(access, set ? &error : nullptr, ready);
  }
  return ready;
}

void EngineCore::RetireVariable(Var& var, std::unique_lock<SpinLock> lock) {
  StreamOrder::Forget(var);
  if (var.error) {
    var.error = {};
    var.spoilt.store(false, std::memory_order_relaxed);
  }
  const bool named = std::exchange(var.named, false);
  lock.unlock();
  if (named) {
    std::lock_guard<std::mutex> names_lock(names_mutex_);
    names_.erase(&var);
  }
  homes_[var.home].vars.Give(&var, &var);
}

void EngineCore::FinishAsync(Record& record, absl::Status status) {
  ErrorRef error;
  if (!status.ok()) error = OwnError(record, std::move(status), nullptr);
  const RecordList ready = Complete(record, error, /*skipped=*/false);
  const bool last = record.holders.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (last) Free(record);
  Dispatch(ready);
}

void EngineCore::Free(Record& record) {
  record.table->destroy(record.callable);
  Worker* const worker = ThisThread().worker;
  const bool of_this = worker != nullptr && worker->core == this;
  if ((record.flags & kFromHeap) != 0) {
    ::operator delete(&record);
  } else if ((record.flags & kLarge) != 0) {
    homes_[record.home].large_records.Give(&record, &record);
  } else if (!of_this) {
    homes_[record.home].records.Give(&record, &record);
  } else {
    if (worker->freed > 0 &&
        (worker->freed == kRecordsKept || worker->freed_last->home != record.home)) {
      GiveBack(*worker);
    }
    record.next = worker->freed_first;
    worker->freed_first = &record;
    if (worker->freed++ == 0) worker->freed_last = &record;
  }
  CountCompletion();
}

void EngineCore::GiveBack(Worker& worker) {
  if (worker.freed == 0) return;
  homes_[worker.freed_last->home].records.Give(worker.freed_first, worker.freed_last);
  worker.freed_first = worker.freed_last = nullptr;
  worker.freed = 0;
}

// The last step of an operation: when the counts of pushes and completions agree, nobody touches
// what operations hold any more.
void EngineCore::CountCompletion() {
  Worker* const worker = ThisThread().worker;
  if (worker == nullptr || worker->core != this) {
    MyHome().completed.fetch_add(1);
    if (done_.has_waiters()) done_.NotifyAll();
    if (held_up_now_.load(std::memory_order_relaxed) > 0) room_.NotifyAll();
    return;
  }
  const uint64_t completed = worker->completed.load(std::memory_order_relaxed) + 1;
  worker->completed.store(completed, std::memory_order_release);
  // Whoever waits for the end is told when this worker finds no more work. For those who wait for
  // room a look now and then will do, for the same reason.
  if (held_up_now_.load(std::memory_order_relaxed) > 0 &&
      completed % static_cast<uint64_t>(room_step_) == 0) {
    room_.NotifyAll();
  }
}

void EngineCore::Enqueue(WorkerGroup& group, RecordList records) {
  group.ready.Put(records);
  if (!group.started.load(std::memory_order_acquire)) EnsureStarted(group);
  if (group.idle.has_waiters()) group.idle.NotifyOne();
  if (helping_.load() > 0) waits_.NotifyAll();
}

RecordList EngineCore::Sort(RecordList ready, const WorkerGroup* mine) {
  RecordList left;
  while (Record* record = ready.TakeFirst()) {
    if (record->kind == RecordKind::kWaiter) {
      // The waiter may be gone as soon as it sees this.
      reinterpret_cast<Waiter*>(record)->granted.store(true);
      waits_.NotifyAll();
    } else if (record->queue < 0 || (mine != nullptr && record->queue == mine->number)) {
      left.Append(*record);
    } else {
      // Neighbours of one queue go there together.
      RecordList same;
      const int8_t queue = record->queue;
      same.Append(*record);
      while (!ready.empty() && ready.first->kind == RecordKind::kOperation &&
             ready.first->queue == queue) {
        same.Append(*ready.TakeFirst());
      }
      Enqueue(*groups_[queue], same);
    }
  }
  return left;
}

void EngineCore::Dispatch(RecordList ready) {
  RecordList here = Sort(ready, nullptr);
  if (here.empty()) return;
  ThreadState& thread = ThisThread();
  // A loop below on this stack takes them: chains of operations do not deepen the stack.
  if (thread.backlog != nullptr && thread.backlog_core == this) {
    thread.backlog->Append(here);
  } else {
    RunBacklog(here);
  }
}

void EngineCore::RunHere(Record& record) {
  RecordList list;
  list.Append(record);
  RunBacklog(list);
}

void EngineCore::RunBacklog(RecordList list) {
  ThreadState& thread = ThisThread();
  RecordList* const outer = std::exchange(thread.backlog, &list);
  const EngineCore* const outer_core = std::exchange(thread.backlog_core, this);
  while (Record* record = list.TakeFirst()) list.Append(Sort(Run(*record), nullptr));
  thread.backlog = outer;
  thread.backlog_core = outer_core;
}

void EngineCore::WorkerLoop(Worker& worker) {
  ThisThread().worker = &worker;
  ReadyQueue& queue = worker.group->ready;
  Record* record = nullptr;
  while (true) {
    if (record == nullptr) record = NextFor(worker);
    if (record == nullptr) break;
    if (record->next != nullptr) Prefetch(*record->next);
    record = queue.Exchange(Sort(Run(*record), worker.group));
    if (record != nullptr) WakeAnother(*worker.group);
  }
  GiveBack(worker);
  ThisThread().worker = nullptr;
}

// What this thread leaves in the queue may be somebody else's to run at once.
void EngineCore::WakeAnother(WorkerGroup& group) {
  if (group.spec.num_threads == 1 || !group.ready.has_more()) return;
  if (group.idle.has_waiters()) group.idle.NotifyOne();
  if (helping_.load() > 0) waits_.NotifyAll();
}

// The next operation, null when the threads are to end. Blocks.
Record* EngineCore::NextFor(Worker& worker) {
  WorkerGroup& group = *worker.group;
  GiveBack(worker);
  done_.NotifyAll();
  if (held_up_now_.load() > 0) room_.NotifyAll();
  while (!group.stop.load()) {
    if (Record* record = group.ready.Take()) {
      WakeAnother(group);
      return record;
    }
    // One thread of a group looks out; the others would only take its time.
    if (group.spinning.fetch_add(1) == 0) {
      for (int i = 0; i < kSpinsBeforeSleep && group.ready.seems_empty() && !group.stop.load();
           ++i) {
        CpuPause();
      }
    }
    group.spinning.fetch_sub(1);
    if (group.ready.seems_empty()) SleepUntilWork(worker);
  }
  return nullptr;
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
