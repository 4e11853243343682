// EngineCore: what is behind Engine. Internal to core/engine.
//
//   submit.cc     pushing: a record, its accesses, its place in the queues of its variables
//   run.cc        running an operation, completing it, and sending what it made ready on its way
//   wait.cc       waits, helping, the chain of operations somebody waits for
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
#include "core/engine/event_count.h"
#include "core/engine/home.h"
#include "core/engine/operator_state.h"
#include "core/engine/record.h"
#include "core/engine/stream_order.h"
#include "core/engine/worker_group.h"

namespace interp::engine {

// A waiting thread in the queue of a variable. On its stack.
struct Waiter {
  Waiter() { record.kind = RecordKind::kWaiter; }
  Record record;
  Access access;
  std::atomic<bool> granted{false};  // the last thing others touch
};
static_assert(offsetof(Waiter, access) == sizeof(Record));

// What is pushed, whichever way.
struct Submission {
  const CallableTable* table = nullptr;
  void* callable = nullptr;
  const OperationOptions* options = nullptr;
  Route route;
  const Accesses* accesses = nullptr;       // or
  const OperatorState* recorded = nullptr;  // its accesses
};

class EngineCore {
 public:
  explicit EngineCore(const EngineOptions& options);
  ~EngineCore();
  // Makes the streams of the devices; once, before anything else.
  absl::Status OpenStreams();

  // submit.cc
  Variable NewVariable(absl::string_view name);
  absl::StatusOr<Route> FindRoute(const OperationOptions& options) const;
  // Ready records are run or appended to `ready`, if given.
  absl::Status Submit(const Submission& submission, RecordList* ready = nullptr);
  absl::Status SubmitDelete(Variable variable, const CallableTable& table, void* callable);
  absl::Status DeleteVariable(Variable variable);
  absl::StatusOr<OperatorState*> NewOperator(const CallableTable& table, void* callable,
                                             const Accesses& accesses,
                                             const OperationOptions& options);
  absl::Status PushRecorded(OperatorState& op, RecordList* ready = nullptr);

  // run.cc
  // Sends ready records to their queues and wakes threads; runs those of no queue here.
  void Dispatch(RecordList ready);
  // Runs an operation on this thread, and what then is ready and belongs to no queue.
  void RunHere(Record& record);
  void FinishAsync(Record& record, absl::Status status);
  absl::Status StartAsync(Record& record);
  // Whether an exception passes through the function of that operation, on this thread.
  bool IsUnwinding(const Record& record) const;
  RunContext ContextOf(const Record& record);

  // wait.cc
  absl::Status Wait(Variable variable, AccessKind kind, std::chrono::nanoseconds timeout);
  absl::Status WaitForAll(std::chrono::nanoseconds timeout);
  std::vector<ErrorRef> TakeErrors();
  std::string Describe(Variable variable);

  // lifecycle.cc
  absl::Status Stop();
  void Start();
  EngineCounters counters() const;
  // Around a fork: nothing is in flight and no lock is held by another thread when it happens.
  void BeforeFork();
  void AfterFork(bool in_child);

  const Policy& policy() const { return policy_; }
  void SetObserver(EngineObserver* observer) { observer_.store(observer); }

 private:
  // submit.cc
  Home& MyHome();
  Record& NewRecord(Home& home, const Submission& submission);
  void FillAccesses(Record& record, const Submission& submission);
  // Gives back a record that was never pushed.
  void Recycle(Record& record, Home& home);
  // Waits until there is room for another operation.
  void HoldUp();
  int64_t InFlight() const;

  // run.cc
  RecordList Run(Record& record);
  ErrorRef Call(Record& record);
  // Puts the operation behind what devices do with its variables. Returns the error it inherits.
  ErrorRef Prepare(Record& record);
  ErrorRef InheritedError(Record& record) const;
  ErrorRef OwnError(const Record& record, absl::Status status, std::exception_ptr exception);
  // An error, counted and kept for WaitForAll.
  ErrorRef NewError(absl::Status status, std::exception_ptr exception, const char* name,
                    uint64_t number);
  void Observe(EngineObserver& observer, const Record& record, bool skipped, int64_t start_ns);
  // Releases everything; what is ready now.
  RecordList Complete(Record& record, const ErrorRef& error, bool skipped);
  // REQUIRES: nothing names the variable any more, and its lock is held by `lock`, which is opened.
  void RetireVariable(Var& var, std::unique_lock<SpinLock> lock);
  // Ends the callable and gives the record back.
  void Free(Record& record);
  void GiveBack(Worker& worker);
  void CountCompletion();
  // Sorts ready records out: waiters are woken, others queued; what belongs to no queue, or to
  // `mine`, is left.
  RecordList Sort(RecordList ready, const WorkerGroup* mine);
  void Enqueue(WorkerGroup& group, RecordList records);
  void WorkerLoop(Worker& worker);
  Record* NextFor(Worker& worker);
  void SleepUntilWork(Worker& worker);
  void WakeAnother(WorkerGroup& group);
  void RunBacklog(RecordList list);

  // wait.cc
  // Blocks until the waiter is granted. A worker runs what the waiter waits for meanwhile, and
  // nothing else: on top of another operation's stack, something that waits for that operation
  // would never end.
  absl::Status Block(Waiter& waiter, EventCount::Clock::time_point deadline);
  bool HelpOnce(Waiter& waiter, Worker* worker, absl::Status& status);
  // Visits, from the waiter on, the operation at the front of each queue that the one before is
  // stuck in; `visit(var, record)` is called under the variable's lock.
  template <typename Visit>
  void FollowChain(Waiter& waiter, const Visit& visit);
  std::string ChainText(Waiter& waiter);
  std::string NameOf(const Var& var) const;
  std::string DescribeQueue(const Var& var) const;

  // Before this thread blocks: nobody else knows of what its batches keep back.
  static void FlushBatches();

  // lifecycle.cc
  void EnsureStarted(WorkerGroup& group);
  void StartThreads(WorkerGroup& group);  // REQUIRES: lifecycle_ is held
  void EndThreads();
  void Drain();
  void AbandonDevices();  // REQUIRES: in a forked process

  const EngineOptions options_;
  const Policy policy_;
  std::array<Home, kNumHomes> homes_;
  std::vector<std::unique_ptr<WorkerGroup>> groups_;
  std::vector<std::unique_ptr<Stream>> streams_;
  StreamOrder order_{[this](absl::Status status, const char* name, uint64_t number) {
    return NewError(std::move(status), nullptr, name, number);
  }};
  std::atomic<EngineObserver*> observer_{nullptr};

  EventCount waits_;                 // where threads wait for variables
  std::atomic<int32_t> helping_{0};  // workers among them, which look for work, too
  EventCount done_;                  // where threads wait for everything
  EventCount room_;                  // where threads wait to push
  std::atomic<int32_t> held_up_now_{0};
  int64_t room_step_ = 1;  // completions of a worker between looks at who waits for room

  mutable std::mutex names_mutex_;
  absl::flat_hash_map<const Var*, std::string> names_;
  std::mutex errors_mutex_;
  std::vector<ErrorRef> errors_;  // that nobody may have been told of
  std::atomic<uint64_t> failed_{0}, skipped_{0}, helped_{0}, held_up_{0};

  std::mutex lifecycle_;  // guards threads of groups and running_
  std::atomic<bool> running_{true};
  bool in_child_ = false;
  bool fork_from_inside_ = false;
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
  Worker* worker = nullptr;
  Frame* frames = nullptr;
  int home = -1;
  Batch* batch = nullptr;  // the latest of this thread that has not ended
  // Not null: a loop on this stack runs what belongs to no queue.
  RecordList* backlog = nullptr;
  const EngineCore* backlog_core = nullptr;
};
ThreadState& ThisThread();

}  // namespace interp::engine
