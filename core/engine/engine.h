// Engine: runs functions on threads and devices in the order that the variables they name demand.
//
//   std::unique_ptr<Engine> engine = *Engine::Create({.workers = 2});
//   engine::Variable a = engine->NewVariable("A"), b = engine->NewVariable("B");
//   engine->Push([&] { x = 1; }, {.writes = {a}});
//   engine->Push([&] { y = x + 1; }, {.reads = {a}, .writes = {b}});
//   absl::Status status = engine->WaitForVar(b);   // y is 2
//
// Variables are tags: the engine allocates nothing for its users and knows no tensor. Of two
// operations that name the same variable, the one pushed first runs first, unless both only read
// it; all others run side by side. "Pushed first" is one order for all threads that push.
//
// The model is MXNet's dependency engine (include/mxnet/engine.h, src/engine/threaded_engine.h).
// docs/engine.md says how it works, why it is right and where it differs.
//
// Long because it is all that a user of the engine needs.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/engine/callable.h"
#include "core/engine/operation_error.h"
#include "core/engine/policy.h"

namespace interp::engine {

class EngineCore;
class EngineObserver;
struct OperatorState;
struct GroupCallable;

// Handle of a variable; a small value. One that has outlived its variable, or that is given to
// another engine, is noticed.
struct Variable {
  Var* var = nullptr;
  uint32_t generation = 0;
  uint32_t engine = 0;  // the id of its engine
  bool operator==(const Variable&) const = default;
};

// What an operation touches. A variable in `updates` is written and its old content matters, as
// that of one in both other lists does. One in `writes` alone is overwritten entirely, which clears
// the error that had spoilt it. Repeated variables count once. An operation may touch at most
// 65,535 variables.
struct Accesses {
  absl::Span<const Variable> reads = {};
  absl::Span<const Variable> writes = {};
  absl::Span<const Variable> updates = {};
};

// Threads of one queue, at most.
inline constexpr int kMaxWorkers = 256;
inline constexpr int kMaxStandIns = 1 << 14;
inline constexpr int kMaxQueues = 256;

struct OperationOptions {
  // Kept as a pointer: a literal, or something that lives as long as the engine.
  const char* name = "operation";
  Place place = {};  // the host or one of EngineOptions::devices
  Property property = Property::kNormal;
  // On the host: one of EngineOptions::queues, whose thread then calls the function, that of an
  // asynchronous operation, too; -1: where `property` says.
  int16_t queue = -1;
  // Higher runs first among the operations of one queue that are ready; among equals the one that
  // became ready first, and of those that became ready together the one pushed first.
  int32_t priority = 0;
};

// What a push of a recorded operation does otherwise than it was recorded.
struct PushOptions {
  std::optional<Place> place = std::nullopt;
  std::optional<int32_t> priority = std::nullopt;
};

struct EngineOptions {
  PolicyKind policy = PolicyKind::kPerDevice;
  int workers = 1;         // threads for normal operations of the host
  int urgent_workers = 1;  // for Property::kHostUrgent, under per-device
  int device_workers = 1;  // per device and kind of queue, under per-device
  // A thread that pushes waits while this many operations are in flight (about: by up to one
  // operation per thread more, 64 where the bound is above 4,096); 0: no bound. Operations that
  // push are not held up, nor does a stopped engine hold up anybody. It goes on when an eighth of
  // the bound is free. Too small a bound for what has to be in flight at once is a deadlock. The
  // default keeps records in a cache: when one core has to do both sides, a larger one costs more.
  int64_t max_in_flight = 1 << 13;
  std::vector<std::shared_ptr<Device>> devices = {};
  // Names of queues of the user's own (OperationOptions::queue), at most kMaxQueues. Each has one
  // thread, which runs all operations of it and nothing else: for libraries whose calls have to
  // come from one thread. Nobody stands in for it, so that waits for an engine within its
  // operations are FailedPrecondition.
  std::vector<std::string> queues = {};
  // Threads of each queue in a process forked off this one, where pushes to devices are refused.
  int workers_in_child = 1;
  // Threads that take the places of workers which wait inside operations, at most; made on demand
  // and reused. Where no more are left a wait inside an operation is an error.
  int max_stand_ins = 256;
};

// A recorded operation: function, variables and options, checked and sorted once, pushed any number
// of times. A handle: copies name the same operation, which is destroyed after all copies and all
// its pushes; so deleting it is safe at any time. Thread-safety: as std::shared_ptr.
class Operator {
 public:
  Operator() = default;
  Operator(const Operator& other);
  Operator(Operator&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Operator& operator=(Operator other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Operator();
  explicit operator bool() const { return state_ != nullptr; }

 private:
  friend class Engine;
  friend class Batch;
  friend struct GroupCallable;
  explicit Operator(OperatorState* state) : state_(state) {}
  OperatorState* state_ = nullptr;
};

struct EngineCounters {
  uint64_t pushed = 0;
  uint64_t completed = 0;  // skipped and failed ones included
  uint64_t failed = 0;     // by an error of their own
  uint64_t skipped = 0;    // because what they read was spoilt
  uint64_t stood_in = 0;   // run by a thread in place of a worker that waits inside an operation
  uint64_t held_up = 0;    // pushes that waited for max_in_flight
};

inline constexpr std::chrono::nanoseconds kNoTimeout = std::chrono::nanoseconds::max();

// Thread-safety: all methods from any thread, operations included, where nothing else is said. No
// method throws. Destruction waits for everything that was pushed; by then no thread may push.
class Engine {
 public:
  // InvalidArgument for counts out of range or a device named twice.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const EngineOptions& options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // A variable of version 0. `name` shows in dumps and in messages; naming costs a lock.
  Variable NewVariable(absl::string_view name = {});
  // Ends a variable after everything pushed on it so far; then `last`, if any, runs, whatever has
  // failed, when devices are done with the variable, too. This thread waits for none of that, but
  // for devices where the policy runs `last` here. Handles are void from now on: InvalidArgument
  // for one that was void already.
  absl::Status DeleteVariable(Variable variable);
  template <typename F>
  absl::Status DeleteVariable(Variable variable, F&& last) {
    Callable<std::decay_t<F>> callable(std::forward<F>(last));
    return SubmitDelete(variable, Callable<std::decay_t<F>>::kTable, callable.bytes());
  }

  // Pushes an operation; see callable.h for what `function` may be. Returns when it is queued, or
  // has run where the policy runs it here. InvalidArgument, without calling the function, for a
  // variable that was deleted or is another engine's, or a place the engine has not.
  template <OperationFunction F>
  absl::Status Push(F&& function, const Accesses& accesses, const OperationOptions& options = {}) {
    Callable<std::decay_t<F>> callable(std::forward<F>(function));
    return Submit(Callable<std::decay_t<F>>::kTable, callable.bytes(), accesses, options);
  }

  // Records an operation; errors as Push. Unless the function changes nothing but what its
  // variables stand for, pushes of it may run side by side.
  template <OperationFunction F>
  absl::StatusOr<Operator> NewOperator(F&& function, const Accesses& accesses,
                                       const OperationOptions& options = {}) {
    Callable<std::decay_t<F>> callable(std::forward<F>(function));
    return MakeOperator(Callable<std::decay_t<F>>::kTable, callable.bytes(), accesses, options);
  }
  // One operation that runs what others do, in their order, on one thread and as one: it touches
  // all of their variables, and the first error ends it and spoils all that it writes. It costs one
  // push, so that small operations which follow each other anyway gain by it. Changes of the
  // operators' place and priority are given by `options`. InvalidArgument for none, an asynchronous
  // one, another engine's, one for a device in a group of the host, and one of a queue of the user
  // in a group that is not of it.
  absl::StatusOr<Operator> NewGroup(absl::Span<const Operator> ops,
                                    const OperationOptions& options = {});
  absl::Status Push(const Operator& op, const PushOptions& options = {});
  // As a Batch of them. Stops at the first that cannot be pushed.
  absl::Status PushAll(absl::Span<const Operator> ops);

  // Waits until all writes to the variable that were pushed before are done, so that it may be
  // read; readers may be at it. Returns the error that has spoilt it, each time, until it is
  // overwritten. DeadlineExceeded, with the chain of operations it waited for, after `timeout`.
  // Inside an operation another thread takes the worker's place meanwhile; ResourceExhausted when
  // there are EngineOptions::max_stand_ins of them. FailedPrecondition when the wait cannot end
  // before the operation itself has, or when the engine is stopped.
  absl::Status WaitForVar(Variable variable, std::chrono::nanoseconds timeout = kNoTimeout) {
    if (variable.engine == id_ && SeemsReadable(*variable.var, variable.generation)) {
      return absl::OkStatus();
    }
    return WaitFor(variable, AccessKind::kRead, timeout);
  }
  // The same until it may be written: readers are done, too.
  absl::Status WaitForWrite(Variable variable, std::chrono::nanoseconds timeout = kNoTimeout) {
    return WaitFor(variable, AccessKind::kWrite, timeout);
  }
  // Waits until nothing is in flight, on devices neither. Returns all errors that no wait has
  // reported, as one. FailedPrecondition within an operation.
  absl::Status WaitForAll(std::chrono::nanoseconds timeout = kNoTimeout);
  // The errors that no wait has reported, with what was thrown; they count as reported then.
  std::vector<ErrorRef> TakeErrors();

  // What has spoilt the variable, as far as is known now: null when nothing has, or for a void
  // handle. Waits for nothing and reports nothing; what is in flight may change it.
  ErrorRef ErrorOf(Variable variable) const;
  // Writes completed so far, failed ones included. 0 for a deleted variable.
  uint64_t Version(Variable variable) const;

  // Whether the calling thread runs an operation of this engine.
  bool InOperation() const;

  // Waits for everything and ends the threads; what is pushed from then on waits for Start, but
  // for what runs on the pushing thread. FailedPrecondition within an operation.
  absl::Status Stop();
  void Start();
  // Starts the threads that start otherwise when they first have work. A queue may have fewer than
  // asked for where the system gives no more; ResourceExhausted when one has none.
  absl::Status StartNow();

  // The queue of a variable, an operation a line:
  //   variable 'A': version 1, 1 running, 2 waiting
  //     #2 'B=A+1' read, granted
  //     #4 'A=C*2' write, waiting; blocked by 1
  std::string Describe(Variable variable) const;
  EngineCounters counters() const;
  // Called for every operation that starts after this; null: nobody. Borrowed until replaced and
  // all operations that were in flight are done.
  void SetObserver(EngineObserver* observer);
  const Policy& policy() const;

 private:
  friend class Batch;
  explicit Engine(std::unique_ptr<EngineCore> core);
  // `callable` is taken over: relocated, or destroyed when there is an error. What is ready goes to
  // `ready`, if given.
  absl::Status Submit(const CallableTable& table, void* callable, const Accesses& accesses,
                      const OperationOptions& options, RecordList* ready = nullptr);
  absl::Status SubmitDelete(Variable variable, const CallableTable& table, void* callable);
  absl::Status WaitFor(Variable variable, AccessKind kind, std::chrono::nanoseconds timeout);
  absl::StatusOr<Operator> MakeOperator(const CallableTable& table, void* callable,
                                        const Accesses& accesses, const OperationOptions& options);

  std::unique_ptr<EngineCore> core_;
  const uint32_t id_;
};

// Pushes many operations with one waking of threads for many of them. Each takes its place in the
// order of pushes at once, but some that could run may be kept back until Flush, until the batch
// ends or until its thread waits for something of an engine. Used by the thread that made it, and
// ended before its engine and before batches that the thread made earlier.
class Batch {
 public:
  explicit Batch(Engine& engine);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // As Engine::Push.
  template <OperationFunction F>
  absl::Status Push(F&& function, const Accesses& accesses, const OperationOptions& options = {}) {
    Callable<std::decay_t<F>> callable(std::forward<F>(function));
    return FlushNowAndThen(engine_.Submit(Callable<std::decay_t<F>>::kTable, callable.bytes(),
                                          accesses, options, &ready_));
  }
  absl::Status Push(const Operator& op, const PushOptions& options = {});
  void Flush();

 private:
  friend class EngineCore;
  absl::Status FlushNowAndThen(absl::Status status);

  Engine& engine_;
  RecordList ready_;
  int pushed_ = 0;
  Batch* const outer_;
};

// Thread-safety: called from the threads that run operations, at the same time.
class EngineObserver {
 public:
  struct Operation {
    const char* name;
    uint64_t number;  // the same for one push only
    int queue;        // into Policy::queues; -1: on the thread that found it ready
    int worker;       // of that queue; of others a small number for the thread
    bool skipped;
    Place place;
  };
  virtual ~EngineObserver() = default;
  // After its function has returned and before anything is released. Nanoseconds of the steady
  // clock.
  virtual void OnOperation(const Operation& operation, int64_t start_ns, int64_t end_ns) = 0;
};

}  // namespace interp::engine
