// EngineCore: what is behind Engine. Internal to core/engine.
// Long because it is all state of an engine, which the files below share.
//
//   submit.cc     pushing: a record, its accesses, its place in the queues of its variables
//   run.cc        running an operation, completing it, and sending what it made ready on its way
//   work.cc       the threads of a group
//   wait.cc       waits
//   blockers.cc   what an operation or a wait is blocked by: in words, and whether it is itself
//   lifecycle.cc  threads, start and stop, forks, deletion
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/engine/engine.h"
#include "core/engine/error_log.h"
#include "core/engine/event_count.h"
#include "core/engine/home.h"
#include "core/engine/operator_state.h"
#include "core/engine/record.h"
#include "core/engine/stand_ins.h"
#include "core/engine/stream_order.h"
#include "core/engine/worker_group.h"

namespace interp::engine {

// A waiting thread in the queue of a variable. On its stack.
struct Waiter {
  Waiter() { record.kind = RecordKind::kWaiter; }
  Record record;
  Access access;
  bool has_deadline = false;
  std::atomic<bool> granted{false};  // the last thing others touch
};
static_assert(offsetof(Waiter, access) == sizeof(Record));

// What is pushed, whichever way.
struct Submission {
  const CallableTable* table = nullptr;
  void* callable = nullptr;
  const OperationOptions* options = nullptr;
  Route route;
  const Accesses* accesses = nullptr;  // or
  const OperatorState* op = nullptr;   // its accesses
};

// The thread that calls, as engines see it.
struct ThreadState {
  // An operation whose function is on this thread's stack.
  struct Frame {
    const EngineCore* core;
    const Record* record;
    int exceptions;  // in flight when it started, if it is asynchronous
    bool abandoned;  // its completion was dropped by an exception
    Frame* outer;
  };
  // A loop on this stack that runs what belongs to no queue.
  struct Backlog {
    EngineCore* core;
    RecordList list;
    Backlog* outer;
  };
  Worker* worker = nullptr;
  Frame* frames = nullptr;
  int home = -1;
  Batch* batch = nullptr;  // the latest of this thread that has not ended
  Backlog* backlog = nullptr;
};
ThreadState& ThisThread();

class EngineCore {
 public:
  explicit EngineCore(const EngineOptions& options);
  ~EngineCore();
  // Makes the streams of the devices; once, before anything else.
  absl::Status OpenStreams();

  // submit.cc
  Variable NewVariable(absl::string_view name);
  absl::StatusOr<Route> FindRoute(const OperationOptions& options) const;
  absl::StatusOr<Route> FindOwnQueue(const OperationOptions& options) const;
  // Ready records are run or appended to `ready`, if given.
  absl::Status Submit(const Submission& submission, RecordList* ready = nullptr);
  absl::Status SubmitDelete(Variable variable, const CallableTable& table, void* callable);
  absl::Status DeleteVariable(Variable variable);
  absl::StatusOr<OperatorState*> NewOperator(const CallableTable& table, void* callable,
                                             const Accesses& accesses,
                                             const OperationOptions& options);
  absl::Status PushOperator(OperatorState& op, const PushOptions& options,
                            RecordList* ready = nullptr);

  // run.cc
  // Sends ready records to their queues and wakes threads; runs those of no queue here.
  void Dispatch(RecordList ready);
  // Runs operations on this thread, and what then is ready and belongs to no queue.
  void RunBacklog(RecordList list);
  void CompleteAsync(Record& record, absl::Status status);
  absl::Status StartAsync(Record& record);
  // Whether an exception passes through the function of that operation, on this thread.
  bool IsUnwinding(const Record& record) const;
  RunContext ContextOf(const Record& record);
  // Whether an operation of this engine is on this thread's stack.
  bool Inside() const;
  // Runs operations of the worker's group until it is stopped or, if it stands in, has left it.
  void WorkerLoop(Worker& worker);

  // wait.cc
  absl::Status Wait(Variable variable, AccessKind kind, std::chrono::nanoseconds timeout);
  absl::Status WaitForAll(std::chrono::nanoseconds timeout);
  ErrorRef ErrorOf(Variable variable);
  std::vector<ErrorRef> TakeErrors() { return errors_.Take().errors; }
  // blockers.cc
  std::string Describe(Variable variable);

  // lifecycle.cc
  absl::Status Stop();
  void Start();
  absl::Status StartNow();
  EngineCounters counters() const;
  // Around a fork: nothing is in flight and no lock is held by another thread when it happens.
  // First Settle waits for that without a lock, then Hold takes those of homes; false, without
  // them, when something is in flight again. LetGo is the way back.
  void Settle();
  bool Hold();
  void LetGo();
  // REQUIRES of both: Hold, of all engines.
  void BeforeFork();
  void AfterFork(bool in_child);
  // Keeps the engine from its end. Under the lock of the list of engines.
  void Pin(bool pinned) { num_pins_ += pinned ? 1 : -1; }
  bool pinned() const { return num_pins_ > 0; }

  // Different for all engines of a process.
  uint32_t id() const { return id_; }
  StandIns& stand_ins() { return stand_ins_; }
  const Policy& policy() const { return policy_; }
  void SetObserver(EngineObserver* observer) { observer_.store(observer); }

 private:
  // submit.cc
  Home& MyHome();
  // A record that holds the callable. Opens and closes `home_lock` while user code moves it.
  Record& NewRecord(const Submission& submission, std::unique_lock<SpinLock>& home_lock);
  void FillAccesses(Record& record, const Submission& submission);
  // InvalidArgument for a handle that is not of this engine.
  absl::Status CheckHandle(Variable variable, absl::string_view what) const;
  // Ends a record that is in no variable's queue. REQUIRES: no lock is held.
  void Refuse(Record& record);
  // Waits until there is room for another operation.
  void HoldUp();
  int64_t InFlight() const;

  // run.cc
  ErrorRef Call(Record& record);
  // Puts the operation behind what devices do with its variables. Returns the error it inherits.
  ErrorRef Prepare(Record& record);
  ErrorRef InheritedError(Record& record) const;
  ErrorRef OwnError(const Record& record, absl::Status status, std::exception_ptr exception);
  // An error, counted and kept for WaitForAll.
  ErrorRef NewError(absl::Status status, std::exception_ptr exception, const char* name,
                    uint64_t number);
  void Observe(EngineObserver& observer, const Record& record, bool skipped, int64_t start_ns);
  // Calls the function and completes the operation, unless its completion does. What is ready now.
  RecordList Run(Record& record);
  // Releases everything; what is ready now.
  RecordList Complete(Record& record, const ErrorRef& error, bool skipped);
  // Takes the variable out of use. REQUIRES: nothing names it any more; its lock is held by `lock`,
  // which is opened. Returns its error, to be destroyed where user code may run.
  ErrorRef Retire(Var& var, std::unique_lock<SpinLock> lock);
  // Destroys the callable of a completed operation, returns the record to its pool and counts it.
  // Sends what is `ready` on its way before user code runs, else leaves it to the caller.
  void End(Record& record, RecordList& ready);
  void Return(Record& record);
  void ReturnKept(Worker& worker);
  void CountCompletion();
  // Sorts ready records out: waiters are woken, others queued; what belongs to no queue, or to
  // `mine`, is left.
  RecordList Sort(RecordList ready, const WorkerGroup* mine);
  // For threads that are needed elsewhere: that of a user's queue, and visitors, for whom an
  // operation may wait. Hands over what belongs to no queue, and gives the rest.
  RecordList LeaveToOthers(RecordList ready);
  // Whether this thread neither works for this engine nor runs its operations right now: one that
  // has come to complete an operation.
  bool IsVisitor() const;
  void Enqueue(WorkerGroup& group, RecordList records);
  Record* NextFor(Worker& worker);
  Record* Take(WorkerGroup& group, RecordList ready);
  void SpinUntilWork(const Worker& worker);
  void SleepUntilWork(Worker& worker);
  void WakeAnother(WorkerGroup& group);
  Worker* MyWorker() const {
    Worker* const worker = ThisThread().worker;
    return worker != nullptr && worker->core == this ? worker : nullptr;
  }

  // wait.cc
  // Sleeps until the waiter is granted, or there is an error.
  absl::Status Sleep(Waiter& waiter, EventCount::Clock::time_point deadline);
  // The same for a waiter that is known to the search for cycles.
  absl::Status SleepInside(Waiter& waiter, EventCount::Clock::time_point deadline);
  absl::Status SleepUntil(Waiter& waiter, EventCount::Clock::time_point deadline);
  absl::Status SleepUntilDone(EventCount::Clock::time_point deadline);
  // Takes the waiter out of its queue. Returns the error of its variable.
  ErrorRef Leave(Waiter& waiter, bool has_waited);
  // Of a waiter that is in its queue still.
  absl::Status LateError(Waiter& waiter, std::chrono::nanoseconds timeout, bool device_done);

  // blockers.cc
  // FailedPrecondition when the waiter can only be granted after an operation on this thread's
  // stack has ended.
  absl::Status CheckForCycle(Waiter& waiter);
  // Visits, from the waiter on, the operation at the front of each queue that the one before is
  // stuck in; `visit(var, record)` is called under the variable's lock.
  template <typename Visit>
  void FollowChain(Waiter& waiter, const Visit& visit);
  std::string ChainText(Waiter& waiter);
  std::string NameOf(const Var& var) const;
  std::string DescribeQueue(const Var& var) const;

  // Before this thread blocks: no other thread knows of what it keeps back.
  static void HandOverBacklogs();
  static void FlushBatches();

  // lifecycle.cc
  void EnsureStarted(WorkerGroup& group);
  // REQUIRES of both: lifecycle_ is held. False: the system gives no more threads.
  bool StartThread(WorkerGroup& group);
  void StartThreads(WorkerGroup& group);
  void EndThreads();  // REQUIRES: nothing is in flight
  // Waits until nothing is in flight, or the engine is stopped.
  void Drain();
  // Takes all locks of homes; false, without them, when something is in flight.
  bool LockHomesIfIdle();
  void UnlockHomes();
  uint64_t Completed() const;
  void AbandonDevices();  // REQUIRES: in a forked process

  const uint32_t id_;
  const EngineOptions options_;
  const Policy policy_;
  std::array<Home, kNumHomes> homes_;
  std::vector<std::unique_ptr<WorkerGroup>> groups_;
  StandIns stand_ins_;
  std::vector<std::unique_ptr<Stream>> streams_;
  StreamOrder order_{[this](absl::Status status, const char* name, uint64_t number) {
    return NewError(std::move(status), nullptr, name, number);
  }};
  std::atomic<EngineObserver*> observer_{nullptr};

  EventCount waits_;  // where threads wait for variables
  EventCount done_;   // where threads wait for everything
  EventCount room_;   // where threads wait to push
  std::atomic<int32_t> held_up_now_{0};
  int64_t room_step_ = 1;  // completions of a worker between looks at who waits for room

  mutable std::mutex names_mutex_;
  absl::flat_hash_map<const Var*, std::string> names_;
  ErrorLog errors_;
  std::atomic<uint64_t> failed_{0}, skipped_{0}, held_up_{0};
  // Waits inside operations, by the operations on the stacks of their threads.
  std::mutex inside_mutex_;
  absl::flat_hash_map<uint64_t, std::vector<const Waiter*>> waits_inside_;

  // Stops, starts and forks, one at a time. Taken before the locks of homes and lifecycle_.
  std::mutex control_;
  std::mutex lifecycle_;  // guards threads of groups and ending_; held for short sections only
  std::atomic<bool> running_{true};  // changes under control_
  bool ending_ = false;
  bool in_child_ = false;
  bool fork_from_inside_ = false;
  int num_pins_ = 0;  // several threads may fork
};

}  // namespace interp::engine
