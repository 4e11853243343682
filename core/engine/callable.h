// Functions of operations: what may be pushed, and how it is kept in a record.
//
// A function takes nothing or a `const RunContext&` and returns nothing or an absl::Status; it
// completes its operation by returning. One that takes a `Completion` completes it later, from any
// thread. Whatever a function throws, of whatever type, is its operation's error.
#pragma once

#include <concepts>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "core/device/work.h"
#include "core/engine/record.h"
#include "core/place.h"

namespace interp {
class Stream;
}

namespace interp::engine {

class EngineCore;

// Where an operation runs.
struct RunContext {
  Place place;
  // The stream to enqueue on; null on the host. The operation completes when it has returned, and
  // those after it are ordered behind its work by the engine.
  Stream* stream = nullptr;
  // To be passed to the stream: so failures of this work spoil what the operation writes.
  Work work;
  // The thread, counted through all queues of the engine; -1 for one that is not the engine's.
  int worker = -1;
};

// The promise of an operation that has been started: a token for the thread that finishes it.
// Move-only; used by one thread at a time. A token that is dropped completes the operation with an
// error, so nothing waits for ever.
class Completion {
 public:
  Completion(EngineCore& core, Record& record) : core_(&core), record_(&record) {}
  Completion(Completion&& other) noexcept
      : core_(other.core_), record_(std::exchange(other.record_, nullptr)) {}
  Completion& operator=(Completion&& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(record_, other.record_);
    return *this;
  }
  ~Completion();

  // Where the work belongs. REQUIRES: not done.
  RunContext context() const;
  // What the operation's variables are still used for on devices is waited for: on the stream, or
  // by this thread for an operation of the host. To be called before the work begins; operations
  // that touch no variable of a device need not call it. Returns the error that has spoilt
  // something the operation reads, for which it should be done with.
  absl::Status Start();
  // Completes the operation; an error spoils what it writes. FailedPrecondition when that was done
  // before.
  absl::Status Done(absl::Status status = absl::OkStatus());

 private:
  EngineCore* core_;
  Record* record_;  // null: done
};

// An operation while its function runs. Internal.
class RunningOperation {
 public:
  RunningOperation(EngineCore& core, Record& record) : core_(core), record_(record) {}
  RunContext context() const;
  Completion Detach() { return {core_, record_}; }

 private:
  EngineCore& core_;
  Record& record_;
};

template <typename F>
concept AsyncFunction = std::invocable<F&, Completion>;
template <typename F>
concept OperationFunction =
    AsyncFunction<F> || std::invocable<F&, const RunContext&> || std::invocable<F&>;

// How to use the callable in a record: one static table per type of function.
struct CallableTable {
  absl::Status (*run)(void* callable, RunningOperation& running);
  // Moves to raw memory and ends what was there. Null: its bytes are copied, no user code runs.
  void (*relocate)(void* from, void* to);
  // Ends the callable if that runs no user code; true: `destroy` has to be called still. Null: true
  // if there is `destroy`.
  bool (*drop)(void* callable);
  // Ends the callable. Null: nothing has to be done.
  void (*destroy)(void* callable);
  bool async;  // completes by its Completion
};

// Whether `destroy` has to be called, as user code.
inline bool Drop(const CallableTable& table, void* callable) {
  return table.drop != nullptr ? table.drop(callable) : table.destroy != nullptr;
}
inline void Destroy(const CallableTable& table, void* callable) {
  if (Drop(table, callable)) table.destroy(callable);
}
inline void Relocate(const CallableTable& table, void* from, void* to) {
  if (table.relocate == nullptr) {
    std::memcpy(to, from, kInlineCallable);
  } else {
    table.relocate(from, to);
  }
}

// What a record keeps of an F: the function itself, or where it is too large a pointer to it.
template <typename F>
class Callable {
 public:
  static constexpr bool kInline =
      sizeof(F) <= kInlineCallable && alignof(F) <= 16 && std::is_nothrow_move_constructible_v<F>;
  using Stored = std::conditional_t<kInline, F, F*>;

  explicit Callable(F&& function) { Store(std::move(function)); }
  explicit Callable(const F& function) { Store(function); }
  // The stored function is relocated or destroyed by the table.
  void* bytes() { return bytes_; }

 private:
  template <typename G>
  void Store(G&& function) {
    if constexpr (kInline) {
      new (bytes_) Stored(std::forward<G>(function));
    } else {
      new (bytes_) Stored(new F(std::forward<G>(function)));
    }
  }
  static F& Function(void* callable) {
    auto* stored = std::launder(static_cast<Stored*>(callable));
    if constexpr (kInline) {
      return *stored;
    } else {
      return **stored;
    }
  }
  // Turns a function that returns nothing into one that always succeeds.
  template <typename Call>
  static absl::Status StatusOf(const Call& call) {
    if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
      call();
      return absl::OkStatus();
    } else {
      return call();
    }
  }
  static absl::Status Run(void* callable, RunningOperation& running) {
    F& f = Function(callable);
    if constexpr (AsyncFunction<F>) {
      f(running.Detach());
      return absl::OkStatus();
    } else if constexpr (std::invocable<F&, const RunContext&>) {
      return StatusOf([&] { return f(running.context()); });
    } else {
      return StatusOf([&] { return f(); });
    }
  }
  static void Move(void* from, void* to) {
    auto* stored = std::launder(static_cast<Stored*>(from));
    new (to) Stored(std::move(*stored));
    stored->~Stored();
  }
  static void End(void* callable) {
    if constexpr (kInline) {
      Function(callable).~F();
    } else {
      delete &Function(callable);
    }
  }
  static bool Drop(void* callable) {
    End(callable);
    return false;
  }

  static constexpr bool kTrivial = std::is_trivially_destructible_v<F>;

 public:
  static constexpr CallableTable kTable = {
      .run = &Run,
      .relocate = std::is_trivially_copyable_v<Stored> ? nullptr : &Move,
      .drop = kTrivial && !kInline ? &Drop : nullptr,
      .destroy = kTrivial && kInline ? nullptr : &End,
      .async = AsyncFunction<F>,
  };

 private:
  alignas(16) unsigned char bytes_[kInlineCallable];
};

}  // namespace interp::engine
