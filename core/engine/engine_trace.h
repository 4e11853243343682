// EngineTrace: when and where the operations of an engine ran, for trace viewers.
//
//   EngineTrace trace(engine->policy());
//   engine->SetObserver(&trace);
//   ... push and wait ...
//   engine->SetObserver(nullptr);
//   write(trace.ToChromeTrace());
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "core/engine/engine.h"

namespace interp::engine {

// Thread-safety: all methods. Keeps every operation: memory grows with them.
class EngineTrace final : public EngineObserver {
 public:
  explicit EngineTrace(const Policy& policy) : policy_(policy) {}

  void OnOperation(const Operation& operation, int64_t start_ns, int64_t end_ns) override;
  // Chrome's trace events, as ToChromeTrace of interpreter/inspect/trace.h writes: a process per
  // queue with a thread per worker, and one for the threads that push.
  std::string ToChromeTrace() const;

 private:
  struct Span {
    Operation operation;
    int64_t start_ns;
    int64_t end_ns;
  };

  const Policy policy_;
  mutable std::mutex mutex_;  // guards spans_
  std::vector<Span> spans_;
};

}  // namespace interp::engine
