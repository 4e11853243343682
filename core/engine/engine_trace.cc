#include "core/engine/engine_trace.h"

#include <algorithm>
#include <set>

#include "core/base/trace_events.h"

namespace interp::engine {
namespace {

// Queue -1, the threads that push, comes first.
TraceLane LaneOf(const EngineObserver::Operation& operation) {
  return {.process = operation.queue + 2, .thread = operation.worker};
}

}  // namespace

void EngineTrace::OnOperation(const Operation& operation, int64_t start_ns, int64_t end_ns) {
  std::lock_guard<std::mutex> lock(mutex_);
  spans_.push_back({operation, start_ns, end_ns});
}

std::string EngineTrace::ToChromeTrace() const {
  std::lock_guard<std::mutex> lock(mutex_);
  TraceEvents events;
  std::set<std::pair<int, int>> lanes;
  int64_t first_ns = INT64_MAX;
  for (const Span& span : spans_) {
    lanes.emplace(span.operation.queue, span.operation.worker);
    first_ns = std::min(first_ns, span.start_ns);
  }
  for (const auto& [queue, worker] : lanes) {
    const TraceLane lane{.process = queue + 2, .thread = worker};
    events.NameProcess(queue < 0 ? "threads that push" : policy_.queues[queue].name, lane);
    events.NameThread(absl::StrCat(queue < 0 ? "thread " : "worker ", worker), lane);
  }
  for (const Span& span : spans_) {
    events.BeginSlice(span.operation.name, span.operation.skipped ? "skipped" : "operation",
                      LaneOf(span.operation), span.start_ns - first_ns, span.end_ns - first_ns);
    events.json().Field("number", NumberText(span.operation.number));
    events.json().Field("place", interp::Name(span.operation.place));
    events.EndSlice();
  }
  return std::move(events).Take();
}

}  // namespace interp::engine
