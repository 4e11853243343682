#include <algorithm>
#include <cstddef>
#include <memory>

#include "core/base/catching.h"
#include "core/base/steady_clock.h"
#include "core/engine/engine_core.h"
#include "core/engine/tracker.h"

namespace interp::engine {
namespace {

// Records a worker keeps before it sends them home.
constexpr int kRecordsKept = 32;

absl::Status StatusOf(const std::exception_ptr& exception) {
  return Catching([&]() -> absl::Status { std::rethrow_exception(exception); });
}

absl::Status Dropped() { return absl::InternalError("was given up: its completion was dropped"); }

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
  (void)Done(Dropped());
}

RunContext Completion::context() const { return core_->ContextOf(*record_); }
RunContext RunningOperation::context() const { return core_.ContextOf(record_); }

absl::Status Completion::Start() { return core_->StartAsync(*record_); }

absl::Status Completion::Done(absl::Status status) {
  Record* const record = std::exchange(record_, nullptr);
  if (record == nullptr) {
    return absl::FailedPreconditionError("the operation has been completed before");
  }
  core_->CompleteAsync(*record, std::move(status));
  return absl::OkStatus();
}

RunContext EngineCore::ContextOf(const Record& record) {
  RunContext context;
  if (const Worker* const worker = MyWorker()) context.worker = worker->number;
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
  if ((record.flags & kIgnoresDevices) != 0) return {};
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
  errors_.Add(error);
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
  RecordList ready;
  if (!async || skipped) {
    ready = Complete(record, error, skipped);
    End(record, ready);
  } else {
    // It threw with its completion in hand, or before that; else the error comes too late for its
    // variables, and only WaitForAll tells of it. An exception that ended the completion may have
    // been caught by the function.
    if (frame.abandoned) {
      if (!error) error = OwnError(record, Dropped(), nullptr);
      ready = Complete(record, error, /*skipped=*/false);
      record.holders.store(1, std::memory_order_relaxed);
    }
    if (record.holders.fetch_sub(1, std::memory_order_acq_rel) == 1) End(record, ready);
  }
  thread.frames = frame.outer;
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
  const Worker* const worker = MyWorker();
  const Place place =
      record.stream < 0 ? Place{} : policy_.places[1 + record.stream / kStreamsPerDevice];
  observer.OnOperation({.name = record.name,
                        .number = record.number,
                        .queue = worker != nullptr ? worker->group->number : -1,
                        .worker = worker != nullptr ? worker->index : ThisThread().home,
                        .skipped = skipped,
                        .place = place},
                       start_ns, SteadyNowNs());
}

RecordList EngineCore::Complete(Record& record, const ErrorRef& error, bool skipped) {
  if (skipped) {
    skipped_.fetch_add(1, std::memory_order_relaxed);
    if ((record.flags & kBegun) != 0) order_.Skip(record);
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
    Release(accesses[0], nullptr, ready);
    (void)Retire(var, std::unique_lock<SpinLock>(var.lock));
    return ready;
  }
  for (int i = 0; i < record.num_accesses; ++i) {
    Access& access = accesses[i];
    // Success clears the error of what is overwritten, and leaves that of what is updated.
    const bool set = error || access.kind == AccessKind::kWrite;
    Release(access, set ? &error : nullptr, ready);
  }
  return ready;
}

ErrorRef EngineCore::Retire(Var& var, std::unique_lock<SpinLock> lock) {
  ErrorRef error = std::exchange(var.error, {});
  if (error) var.spoilt.store(false, std::memory_order_relaxed);
  const bool named = std::exchange(var.named, false);
  lock.unlock();
  order_.Forget(var);
  if (named) {
    std::lock_guard<std::mutex> names_lock(names_mutex_);
    names_.erase(&var);
  }
  homes_[var.home].vars.Return(&var, &var);
  return error;
}

void EngineCore::CompleteAsync(Record& record, absl::Status status) {
  // The engine may be destroyed as soon as this is undone.
  std::atomic<int64_t>* const completing = MyWorker() == nullptr ? &MyHome().completing : nullptr;
  if (completing != nullptr) completing->fetch_add(1, std::memory_order_relaxed);
  ErrorRef error;
  if (!status.ok()) error = OwnError(record, std::move(status), nullptr);
  RecordList ready = Complete(record, error, /*skipped=*/false);
  if (IsVisitor()) {
    ready = Sort(ready, nullptr);
    ready = LeaveToOthers(ready);
  }
  if (record.holders.fetch_sub(1, std::memory_order_acq_rel) == 1) End(record, ready);
  Dispatch(ready);
  error = {};
  if (completing != nullptr) completing->fetch_sub(1, std::memory_order_release);
}

void EngineCore::End(Record& record, RecordList& ready) {
  const CallableTable& table = *record.table;
  if (Drop(table, record.callable)) {
    // It may wait for whatever this operation has let go.
    Dispatch(std::exchange(ready, {}));
    table.destroy(record.callable);
  }
  Return(record);
  CountCompletion();
}

void EngineCore::Return(Record& record) {
  Home& home = homes_[record.home];
  Worker* const worker = MyWorker();
  if ((record.flags & kFromHeap) != 0) {
    ::operator delete(&record);
  } else if ((record.flags & kLarge) != 0) {
    home.large_records.Return(&record, &record);
  } else if (worker == nullptr) {
    home.records.Return(&record, &record);
  } else {
    if (worker->num_returning > 0 &&
        (worker->num_returning == kRecordsKept || worker->returning.last->home != record.home)) {
      ReturnKept(*worker);
    }
    worker->returning.Append(record);
    ++worker->num_returning;
  }
}

void EngineCore::ReturnKept(Worker& worker) {
  if (worker.num_returning == 0) return;
  const RecordList list = std::exchange(worker.returning, {});
  homes_[list.last->home].records.Return(list.first, list.last);
  worker.num_returning = 0;
}

// The last step of an operation: when the counts of pushes and completions agree, nobody touches
// what operations hold any more.
void EngineCore::CountCompletion() {
  Worker* const worker = MyWorker();
  if (worker == nullptr) {
    MyHome().completed.fetch_add(1);
    if (done_.has_waiters()) done_.NotifyAll();
    if (held_up_now_.load(std::memory_order_relaxed) > 0) room_.NotifyAll();
    return;
  }
  const uint64_t completed = worker->completed.load(std::memory_order_relaxed) + 1;
  worker->completed.store(completed, std::memory_order_release);
  // Threads that wait for the end are told when this worker finds no more work. Threads that wait
  // for room are told now and then, too.
  if (held_up_now_.load(std::memory_order_relaxed) > 0 &&
      completed % static_cast<uint64_t>(room_step_) == 0) {
    room_.NotifyAll();
  }
}

void EngineCore::Enqueue(WorkerGroup& group, RecordList records) {
  group.ready.Put(records);
  if (!group.started.load(std::memory_order_acquire)) EnsureStarted(group);
  if (group.idle.has_waiters()) {
    group.idle.NotifyOne();
  } else {
    stand_ins_.SendIfLacking(group);
  }
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
      const int16_t queue = record->queue;
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
  const Worker* const worker = MyWorker();
  if (worker != nullptr && worker->group->spec.own) here = LeaveToOthers(here);
  if (here.empty()) return;
  ThreadState& thread = ThisThread();
  // A loop below on this stack takes them: chains of operations do not deepen the stack.
  if (thread.backlog != nullptr && thread.backlog->core == this) {
    thread.backlog->list.Append(here);
  } else {
    RunBacklog(here);
  }
}

void EngineCore::RunBacklog(RecordList list) {
  ThreadState& thread = ThisThread();
  ThreadState::Backlog backlog{this, list, thread.backlog};
  thread.backlog = &backlog;
  while (Record* record = backlog.list.TakeFirst()) {
    const RecordList ready = Sort(Run(*record), nullptr);
    backlog.list.Append(ready);
  }
  thread.backlog = backlog.outer;
}

bool EngineCore::IsVisitor() const {
  const ThreadState::Backlog* const backlog = ThisThread().backlog;
  return MyWorker() == nullptr && (backlog == nullptr || backlog->core != this);
}

void EngineCore::HandOverBacklogs() {
  for (ThreadState::Backlog* b = ThisThread().backlog; b != nullptr; b = b->outer) {
    const RecordList list = std::exchange(b->list, {});
    if (!list.empty() && !b->core->stand_ins_.RunBacklog(list)) b->core->RunBacklog(list);
  }
}

bool EngineCore::Inside() const {
  for (const ThreadState::Frame* f = ThisThread().frames; f != nullptr; f = f->outer) {
    if (f->core == this) return true;
  }
  return false;
}

}  // namespace interp::engine
