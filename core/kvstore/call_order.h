// CallOrder: operations that start one after the other, in the order in which they were pushed.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/engine/engine.h"

namespace interp {

// Thread-safety: all methods; not within an operation of the engine, which is borrowed.
class CallOrder {
 public:
  CallOrder(engine::Engine& engine, absl::string_view name)
      : engine_(engine), variable_(engine.NewVariable(name)) {}
  // REQUIRES: nothing is in flight.
  ~CallOrder() { engine_.DeleteVariable(variable_).IgnoreError(); }
  CallOrder(const CallOrder&) = delete;
  CallOrder& operator=(const CallOrder&) = delete;

  // What the operations update.
  engine::Variable variable() const { return variable_; }
  // Pushes the next one, which reads and writes all that is named here, too.
  template <typename F>
  absl::Status Push(F&& run, absl::Span<const engine::Variable> reads,
                    absl::Span<const engine::Variable> writes,
                    const engine::OperationOptions& options) {
    pushed_.fetch_add(1);
    const absl::Status status =
        engine_.Push(std::forward<F>(run),
                     {.reads = reads, .writes = writes, .updates = {&variable_, 1}}, options);
    if (!status.ok()) pushed_.fetch_sub(1);
    return status;
  }
  // Engine::WaitForVar.
  absl::Status Wait() { return engine_.WaitForVar(variable_); }
  // Returns when all that was pushed is done, whatever came of it. A stopped engine is started
  // where it holds something back: what that uses is about to go.
  void Finish() {
    Wait().IgnoreError();
    if (engine_.Version(variable_) == pushed_.load()) return;
    engine_.Start();
    Wait().IgnoreError();
  }

 private:
  engine::Engine& engine_;
  const engine::Variable variable_;
  std::atomic<uint64_t> pushed_{0};  // all of them are a version each, when they are done
};

}  // namespace interp
