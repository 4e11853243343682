#include "core/base/trace_events.h"

#include <utility>

namespace interp {

TraceEvents::TraceEvents() {
  json_.BeginObject();
  json_.Field("displayTimeUnit", "ns");
  json_.Key("traceEvents");
  json_.BeginArray();
}

void TraceEvents::Begin(absl::string_view phase, absl::string_view name, TraceLane lane,
                        int64_t at_ns) {
  json_.Line();
  json_.BeginObject();
  json_.Field("ph", phase);
  json_.Field("name", name);
  json_.Field("pid", lane.process);
  json_.Field("tid", lane.thread);
  json_.Field("ts", static_cast<double>(at_ns) / 1e3);
}

void TraceEvents::BeginSlice(absl::string_view name, absl::string_view category, TraceLane lane,
                             int64_t start_ns, int64_t end_ns) {
  Begin("X", name, lane, start_ns);
  json_.Field("dur", static_cast<double>(end_ns - start_ns) / 1e3);
  json_.Field("cat", category);
  json_.Key("args");
  json_.BeginObject();
}

void TraceEvents::EndSlice() {
  json_.EndObject();
  json_.EndObject();
}

void TraceEvents::WriteName(absl::string_view what, absl::string_view name, TraceLane lane) {
  json_.Line();
  json_.BeginObject();
  json_.Field("ph", "M");
  json_.Field("name", what);
  json_.Field("pid", lane.process);
  json_.Field("tid", lane.thread);
  json_.Key("args");
  json_.BeginObject();
  json_.Field("name", name);
  EndSlice();
}

std::string TraceEvents::Take() && {
  json_.Line();
  json_.EndArray();
  json_.EndObject();
  return std::move(json_).Take() + "\n";
}

}  // namespace interp
