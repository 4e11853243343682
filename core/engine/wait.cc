#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/engine/engine_core.h"
#include "core/engine/tracker.h"

namespace interp::engine {
namespace {

using Clock = EventCount::Clock;

// Looks before a waiting thread sleeps, some 20 us.
constexpr int kSpinsBeforeSleep = 2000;
// Entries of a chain or a queue that are shown.
constexpr int kMaxShown = 20;

Clock::time_point DeadlineOf(std::chrono::nanoseconds timeout) {
  const Clock::time_point now = Clock::now();
  return timeout >= Clock::time_point::max() - now ? Clock::time_point::max() : now + timeout;
}

absl::string_view Name(AccessKind kind) {
  constexpr absl::string_view kNames[] = {"read", "write", "update"};
  return kNames[static_cast<int>(kind)];
}

std::string NameOf(const Record& record) {
  return record.kind == RecordKind::kWaiter
             ? "a thread that waits"
             : absl::StrCat(NumberText(record.number), " '", record.name, "'");
}

std::string StateOf(const Record& record) {
  const int32_t blocked = record.blocked.load(std::memory_order_relaxed);
  if (blocked > 0) return absl::StrCat("blocked by ", blocked);
  return record.holders.load(std::memory_order_relaxed) > 0 ? "running" : "ready";
}

}  // namespace

std::string NumberText(uint64_t number) {
  const uint64_t home = number % kNumHomes;
  return home == 0 ? absl::StrCat("#", number / kNumHomes)
                   : absl::StrCat("#", number / kNumHomes, ".", home);
}

std::string EngineCore::NameOf(const Var& var) const {
  std::lock_guard<std::mutex> lock(names_mutex_);
  const auto at = names_.find(&var);
  return at == names_.end() ? "variable" : absl::StrCat("variable '", at->second, "'");
}

std::string EngineCore::DescribeQueue(const Var& var) const {
  std::string text;
  int granted = 0;
  int waiting = 0;
  for (const Access* a = var.first; a != nullptr; a = a->next) {
    ++(a->granted ? granted : waiting);
    if (granted + waiting > kMaxShown) continue;
    Record& record = const_cast<Access*>(a)->record();
    absl::StrAppend(&text, "\n  ", engine::NameOf(record), " ", Name(a->kind), ", ",
                    a->granted ? "granted" : "waiting");
    if (record.kind == RecordKind::kOperation) absl::StrAppend(&text, "; ", StateOf(record));
  }
  if (granted + waiting > kMaxShown) {
    absl::StrAppend(&text, "\n  and ", granted + waiting - kMaxShown, " more");
  }
  return absl::StrCat(": version ", var.version.load(std::memory_order_relaxed), ", ", granted,
                      " granted, ", waiting, " waiting",
                      var.error ? absl::StrCat(", spoilt by ", ToStatus(*var.error).message()) : "",
                      text, "\n");
}

std::string EngineCore::Describe(Variable variable) {
  if (variable.var == nullptr) return "no variable\n";
  const std::string name = NameOf(*variable.var);
  std::lock_guard<SpinLock> guard(variable.var->lock);
  if (variable.var->generation != variable.generation) return "a deleted variable\n";
  return name + DescribeQueue(*variable.var);
}

template <typename Visit>
void EngineCore::FollowChain(Waiter& waiter, const Visit& visit) {
  Var* var = waiter.access.var;
  uint64_t behind = 0;  // the operation whose way is followed; 0: the waiter
  // Each step goes to an operation that was pushed earlier.
  while (var != nullptr) {
    std::vector<Var*> next;
    {
      std::lock_guard<SpinLock> guard(var->lock);
      // Stuck here is whoever has an access that is not granted.
      const Access* stuck = var->waiting;
      while (stuck != nullptr &&
             (behind == 0 ? stuck != &waiter.access
                          : const_cast<Access*>(stuck)->record().number != behind)) {
        stuck = stuck->next;
      }
      if (stuck == nullptr) {
        var = nullptr;
      } else {
        Record& front = var->first->record();
        visit(*var, front);
        if (front.kind == RecordKind::kWaiter ||
            front.blocked.load(std::memory_order_acquire) == 0) {
          return;
        }
        behind = front.number;
        for (int i = 0; i < front.num_accesses; ++i) next.push_back(front.accesses()[i].var);
      }
    }
    if (next.empty()) return;
    // The variable that operation is stuck in; it may have moved on since.
    var = nullptr;
    for (Var* candidate : next) {
      std::lock_guard<SpinLock> guard(candidate->lock);
      for (const Access* a = candidate->waiting; a != nullptr && var == nullptr; a = a->next) {
        Record& record = const_cast<Access*>(a)->record();
        if (record.kind == RecordKind::kOperation && record.number == behind) var = candidate;
      }
      if (var != nullptr) break;
    }
  }
}

std::string EngineCore::ChainText(Waiter& waiter) {
  struct Link {
    const Var* var;
    std::string operation;
  };
  std::vector<Link> links;
  int more = 0;
  FollowChain(waiter, [&](const Var& var, const Record& record) {
    if (links.size() < kMaxShown) {
      links.push_back({&var, absl::StrCat(engine::NameOf(record), ", which is ", StateOf(record))});
    } else {
      ++more;
    }
  });
  std::string text;
  for (const Link& link : links) {
    absl::StrAppend(&text, "\n  ", NameOf(*link.var), " is held by ", link.operation);
  }
  if (more > 0) absl::StrAppend(&text, "\n  and ", more, " more");
  return text;
}

void EngineCore::FlushBatches() {
  for (Batch* batch = ThisThread().batch; batch != nullptr; batch = batch->outer_) batch->Flush();
}

bool EngineCore::HelpOnce(Waiter& waiter, Worker* worker, absl::Status& status) {
  Record* claimed = nullptr;
  FollowChain(waiter, [&](const Var&, Record& record) {
    if (record.kind == RecordKind::kWaiter || record.blocked.load() > 0) return;
    for (const ThreadState::Frame* f = ThisThread().frames; f != nullptr; f = f->outer) {
      if (f->core != this || f->record != &record) continue;
      status = absl::FailedPreconditionError(
          absl::StrCat("operation ", engine::NameOf(record), " waits for itself"));
      return;
    }
    // The record is ours alone once it is out of the queue.
    if (worker != nullptr && record.queue == worker->group->number &&
        worker->group->ready.TakeThis(&record)) {
      claimed = &record;
    }
  });
  if (claimed == nullptr) return false;
  helped_.fetch_add(1, std::memory_order_relaxed);
  Dispatch(Run(*claimed));
  return true;
}

absl::Status EngineCore::Block(Waiter& waiter, Clock::time_point deadline) {
  const ThreadState& thread = ThisThread();
  Worker* const worker =
      thread.worker != nullptr && thread.worker->core == this ? thread.worker : nullptr;
  const bool inside = thread.frames != nullptr;
  const auto granted = [&] { return waiter.granted.load(); };
  absl::Status status;
  for (int spins = 0; !inside && !granted() && spins < kSpinsBeforeSleep; ++spins) CpuPause();
  while (!granted()) {
    if (inside && HelpOnce(waiter, worker, status)) continue;
    // Without threads what is left in queues does not run.
    if (!running_.load() && !inside)
      status = absl::FailedPreconditionError("the engine is stopped");
    if (Clock::now() >= deadline) status = absl::DeadlineExceededError("");
    if (!status.ok()) return status;
    if (worker != nullptr) helping_.fetch_add(1);
    const uint32_t epoch = waits_.Prepare();
    // A last look, for work too, now that this thread is known to wait.
    if (!granted() && !(inside && HelpOnce(waiter, worker, status)) && status.ok()) {
      waits_.Wait(epoch, deadline);
    } else {
      waits_.Cancel();
    }
    if (worker != nullptr) helping_.fetch_sub(1);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status EngineCore::Wait(Variable variable, AccessKind kind,
                              std::chrono::nanoseconds timeout) {
  Var* const var = variable.var;
  if (var == nullptr) return InvalidArgument("the variable waited for was never made");
  const auto deleted = [] { return InvalidArgument("the variable waited for was deleted"); };
  ErrorRef error;
  const auto told = [&]() -> absl::Status {
    if (!error) return absl::OkStatus();
    error->reported.store(true, std::memory_order_relaxed);
    return ToStatus(*error);
  };
  FlushBatches();
  // Whatever touches queues from outside does so under the lock of its home: see BeforeFork.
  std::unique_lock<SpinLock> home(MyHome().lock);
  {
    std::lock_guard<SpinLock> guard(var->lock);
    if (var->generation != variable.generation) return deleted();
    error = var->error;
    const bool free = kind == AccessKind::kRead ? var->pending_writes == 0 : var->first == nullptr;
    if (free && var->order.load(std::memory_order_acquire) == nullptr) return told();
  }
  Waiter waiter;
  waiter.record.num_accesses = 1;
  waiter.access.var = var;
  waiter.access.generation = variable.generation;
  waiter.access.kind = kind;
  const int32_t blocked = AppendAll(waiter.record);
  home.unlock();
  if (blocked == kStale) return deleted();
  const Clock::time_point deadline = DeadlineOf(timeout);
  absl::Status status = blocked == 0 ? absl::OkStatus() : Block(waiter, deadline);
  ErrorRef device_error;
  const bool device_done =
      !status.ok() || order_.WaitOnHost(*var, kind == AccessKind::kWrite, deadline, device_error);
  if (!device_done || absl::IsDeadlineExceeded(status)) {
    status = absl::DeadlineExceededError(absl::StrFormat(
        "%s is not ready after %.3f s:%s", NameOf(*var),
        std::chrono::duration<double>(timeout).count(),
        device_done ? ChainText(waiter) : " the work that a device was given on it is not done"));
  }
  RecordList ready;
  bool granted = false;
  home.lock();
  {
    std::lock_guard<SpinLock> guard(var->lock);
    error = var->error ? var->error : device_error;
    granted = waiter.access.granted;
    RemoveLocked(waiter.access, ready);
  }
  home.unlock();
  // Whoever granted it is about to say so, to this stack.
  while (blocked > 0 && granted && !waiter.granted.load()) std::this_thread::yield();
  Dispatch(ready);
  return status.ok() ? told() : status;
}

std::vector<ErrorRef> EngineCore::TakeErrors() {
  std::vector<ErrorRef> errors;
  {
    std::lock_guard<std::mutex> lock(errors_mutex_);
    errors.swap(errors_);
  }
  std::erase_if(errors, [](const ErrorRef& e) { return e->reported.exchange(true); });
  return errors;
}

absl::Status EngineCore::WaitForAll(std::chrono::nanoseconds timeout) {
  for (const ThreadState::Frame* f = ThisThread().frames; f != nullptr; f = f->outer) {
    if (f->core == this) {
      return absl::FailedPreconditionError("an operation waits for all operations: for itself");
    }
  }
  FlushBatches();
  const Clock::time_point deadline = DeadlineOf(timeout);
  for (int spins = 0; InFlight() > 0; ++spins) {
    if (spins < kSpinsBeforeSleep / 16) {
      for (int i = 0; i < 16; ++i) CpuPause();
      continue;
    }
    if (!running_.load()) return absl::FailedPreconditionError("the engine is stopped");
    if (Clock::now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(InFlight(), " operations are in flight still"));
    }
    const uint32_t epoch = done_.Prepare();
    if (InFlight() > 0) {
      done_.Wait(epoch, deadline);
    } else {
      done_.Cancel();
    }
  }
  if (!order_.Synchronize(deadline)) {
    return absl::DeadlineExceededError("the work that devices were given is not done");
  }
  const std::vector<ErrorRef> errors = TakeErrors();
  if (errors.empty()) return absl::OkStatus();
  const absl::Status first = ToStatus(*errors[0]);
  if (errors.size() == 1) return first;
  std::string text = absl::StrCat(errors.size(), " operations failed: ", first.message());
  for (size_t i = 1; i < errors.size(); ++i) {
    if (i == kMaxShown) {
      absl::StrAppend(&text, "; and ", errors.size() - i, " more");
      break;
    }
    absl::StrAppend(&text, "; ", ToStatus(*errors[i]).message());
  }
  return absl::Status(first.code(), text);
}

}  // namespace interp::engine
