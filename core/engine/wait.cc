#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/base/steady_clock.h"
#include "core/engine/engine_core.h"
#include "core/engine/event_count.h"
#include "core/engine/tracker.h"

namespace interp::engine {
namespace {

using Clock = EventCount::Clock;

// Errors that are spelled out.
constexpr int kMaxErrorsShown = 20;
// A wait inside an operation that takes longer looks for a cycle. Whatever closes a cycle, the last
// of its waits to look sees all of it, as each is known before it looks.
constexpr std::chrono::milliseconds kBeforeSearch{10};

absl::Status Report(const ErrorRef& error) {
  if (!error) return absl::OkStatus();
  error->reported.store(true, std::memory_order_relaxed);
  return ToStatus(*error);
}

}  // namespace

void EngineCore::FlushBatches() {
  for (Batch* batch = ThisThread().batch; batch != nullptr; batch = batch->outer_) batch->Flush();
}

absl::Status EngineCore::SleepUntil(Waiter& waiter, Clock::time_point deadline) {
  while (!waiter.granted.load()) {
    // Without threads what is left in queues does not run.
    if (!running_.load()) return absl::FailedPreconditionError("the engine is stopped");
    if (Clock::now() >= deadline) return absl::DeadlineExceededError("");
    const uint32_t epoch = waits_.Prepare();
    // A last look, now that this thread is known to wait.
    if (!waiter.granted.load() && running_.load()) {
      waits_.Wait(epoch, deadline);
    } else {
      waits_.Cancel();
    }
  }
  return absl::OkStatus();
}

absl::Status EngineCore::SleepInside(Waiter& waiter, Clock::time_point deadline) {
  // Asynchronous operations may be completed by other threads: they do not wait for this one.
  const auto for_each_operation = [&](const auto& visit) {
    std::lock_guard<std::mutex> lock(inside_mutex_);
    for (const ThreadState::Frame* f = ThisThread().frames; f != nullptr; f = f->outer) {
      if (f->core == this && !f->record->table->async) visit(f->record->number);
    }
  };
  for_each_operation([&](uint64_t number) { waits_inside_[number].push_back(&waiter); });
  absl::Status status = SleepUntil(waiter, std::min(deadline, Clock::now() + kBeforeSearch));
  if (absl::IsDeadlineExceeded(status)) {
    status = CheckForCycle(waiter);
    if (status.ok()) status = SleepUntil(waiter, deadline);
  }
  for_each_operation([&](uint64_t number) {
    const auto at = waits_inside_.find(number);
    std::erase(at->second, &waiter);
    if (at->second.empty()) waits_inside_.erase(at);
  });
  return status;
}

absl::Status EngineCore::Sleep(Waiter& waiter, Clock::time_point deadline) {
  const bool inside = ThisThread().frames != nullptr;
  // A place is better lent at once.
  const int spins = inside ? 0 : kSpinsBeforeSleep;
  for (int i = 0; i < spins && !waiter.granted.load(); ++i) CpuPause();
  if (waiter.granted.load()) return absl::OkStatus();
  HandOverBacklogs();
  const LentPlace lent;
  INTERP_RETURN_IF_ERROR(lent.status());
  return Inside() ? SleepInside(waiter, deadline) : SleepUntil(waiter, deadline);
}

absl::Status EngineCore::LateError(Waiter& waiter, std::chrono::nanoseconds timeout,
                                   bool device_done) {
  return absl::DeadlineExceededError(absl::StrFormat(
      "%s is not ready after %.3f s:%s", NameOf(*waiter.access.var),
      std::chrono::duration<double>(timeout).count(),
      device_done ? ChainText(waiter) : " the work that a device was given on it is not done"));
}

ErrorRef EngineCore::Leave(Waiter& waiter, bool has_waited) {
  Var& var = *waiter.access.var;
  ErrorRef error;
  RecordList ready;
  bool granted = false;
  {
    std::lock_guard<SpinLock> home(MyHome().lock);
    std::lock_guard<SpinLock> guard(var.lock);
    error = var.error;
    granted = waiter.access.granted;
    RemoveLocked(waiter.access, ready);
  }
  // The thread that granted it is about to say so, to the waiter's stack.
  while (has_waited && granted && !waiter.granted.load()) std::this_thread::yield();
  Dispatch(ready);
  return error;
}

absl::Status EngineCore::Wait(Variable variable, AccessKind kind,
                              std::chrono::nanoseconds timeout) {
  Var* const var = variable.var;
  INTERP_RETURN_IF_ERROR(CheckHandle(variable, "to wait for"));
  const auto deleted = [] { return InvalidArgument("the variable to wait for was deleted"); };
  FlushBatches();
  // Destroyed without a lock.
  ErrorRef found;
  // Threads from outside touch queues under the lock of their home: see BeforeFork.
  std::unique_lock<SpinLock> home(MyHome().lock);
  {
    std::unique_lock<SpinLock> guard(var->lock);
    if (var->generation != variable.generation) return deleted();
    found = var->error;
    const bool free = kind == AccessKind::kRead ? var->pending_writes == 0 : var->first == nullptr;
    if (free && var->order.load(std::memory_order_acquire) == nullptr) {
      guard.unlock();
      home.unlock();
      return Report(found);
    }
  }
  const Clock::time_point deadline = DeadlineAfter(timeout);
  Waiter waiter;
  waiter.has_deadline = deadline != Clock::time_point::max();
  waiter.record.num_accesses = 1;
  waiter.access.var = var;
  waiter.access.generation = variable.generation;
  waiter.access.kind = kind;
  const int32_t blocked = AppendAll(waiter.record);
  home.unlock();
  if (blocked == kStale) return deleted();
  absl::Status status = blocked == 0 ? absl::OkStatus() : Sleep(waiter, deadline);
  ErrorRef device_error;
  const bool device_done =
      !status.ok() || order_.WaitOnHost(*var, kind == AccessKind::kWrite, deadline, device_error);
  const bool late = !device_done || absl::IsDeadlineExceeded(status);
  if (late) status = LateError(waiter, timeout, device_done);
  const ErrorRef error = Leave(waiter, /*has_waited=*/blocked > 0);
  return status.ok() ? Report(error ? error : device_error) : status;
}

ErrorRef EngineCore::ErrorOf(Variable variable) {
  Var& var = *variable.var;
  // A fork waits for what this thread is doing, and no lock of a variable is taken into the child.
  std::lock_guard<SpinLock> home(MyHome().lock);
  // Held to the end: the variable cannot be deleted meanwhile.
  std::lock_guard<SpinLock> guard(var.lock);
  if (var.generation != variable.generation) return {};
  if (var.error) return var.error;
  const VarOrder* order = var.order.load(std::memory_order_acquire);
  return order == nullptr ? ErrorRef() : order_.NoticedError(*order);
}

absl::Status EngineCore::SleepUntilDone(Clock::time_point deadline) {
  for (int i = 0; InFlight() > 0 && i < kSpinsBeforeSleep / 16; ++i) {
    for (int k = 0; k < 16; ++k) CpuPause();
  }
  if (InFlight() == 0) return absl::OkStatus();
  HandOverBacklogs();
  const LentPlace lent;
  INTERP_RETURN_IF_ERROR(lent.status());
  while (InFlight() > 0) {
    if (!running_.load()) return absl::FailedPreconditionError("the engine is stopped");
    if (Clock::now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(InFlight(), " operations are in flight still"));
    }
    const uint32_t epoch = done_.Prepare();
    if (InFlight() > 0 && running_.load()) {
      done_.Wait(epoch, deadline);
    } else {
      done_.Cancel();
    }
  }
  return absl::OkStatus();
}

absl::Status EngineCore::WaitForAll(std::chrono::nanoseconds timeout) {
  if (Inside()) {
    return absl::FailedPreconditionError("an operation waits for all operations: for itself");
  }
  FlushBatches();
  const Clock::time_point deadline = DeadlineAfter(timeout);
  INTERP_RETURN_IF_ERROR(SleepUntilDone(deadline));
  if (!order_.Synchronize(deadline)) {
    return absl::DeadlineExceededError("the work that devices were given is not done");
  }
  const ErrorLog::Taken taken = errors_.Take();
  if (taken.errors.empty() && taken.num_beyond == 0) return absl::OkStatus();
  if (taken.errors.empty()) {
    return absl::InternalError(absl::StrCat(taken.num_beyond, " operations failed after ",
                                            ErrorLog::kMaxKept, " others; no error was kept"));
  }
  const absl::Status first = ToStatus(*taken.errors[0]);
  const int64_t count = static_cast<int64_t>(taken.errors.size()) + taken.num_beyond;
  if (count == 1) return first;
  std::string text = absl::StrCat(count, " operations failed: ", first.message());
  const int64_t shown = std::min<int64_t>(taken.errors.size(), kMaxErrorsShown);
  for (int64_t i = 1; i < shown; ++i) {
    absl::StrAppend(&text, "; ", ToStatus(*taken.errors[i]).message());
  }
  if (shown < count) absl::StrAppend(&text, "; and ", count - shown, " more");
  return absl::Status(first.code(), text);
}

}  // namespace interp::engine
