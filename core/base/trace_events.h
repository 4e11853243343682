// TraceEvents writes Chrome's trace events, which Perfetto and other viewers read.
//
// The format: "Trace Event Format",
// docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
#pragma once

#include <string>

#include "core/base/json_writer.h"

namespace interp {

// Where something is shown: a row (thread) of a group of rows (process).
struct TraceLane {
  int process = 1;
  int thread = 0;
  bool operator==(const TraceLane&) const = default;
};

//   TraceEvents events;
//   events.NameThread("worker 0", {.thread = 0});
//   events.BeginSlice("relu", "op", {.thread = 0}, 1000, 4000);
//   events.json().Field("instruction", 3);     // what a viewer shows beside the slice
//   events.EndSlice();
//   return std::move(events).Take();
class TraceEvents {
 public:
  TraceEvents();

  // The fields every event has; the caller adds its own to json() and ends the object. `phase` as
  // the format has it. Times in nanoseconds; the format counts microseconds.
  void Begin(absl::string_view phase, absl::string_view name, TraceLane lane, int64_t at_ns);
  // A slice; between the two the caller adds fields to it.
  void BeginSlice(absl::string_view name, absl::string_view category, TraceLane lane,
                  int64_t start_ns, int64_t end_ns);
  // Ends a slice, and any event to which the caller has added an object "args".
  void EndSlice();

  void NameProcess(absl::string_view name, TraceLane lane) {
    WriteName("process_name", name, lane);
  }
  void NameThread(absl::string_view name, TraceLane lane) { WriteName("thread_name", name, lane); }

  JsonWriter& json() { return json_; }
  // The finished document.
  std::string Take() &&;

 private:
  void WriteName(absl::string_view what, absl::string_view name, TraceLane lane);

  JsonWriter json_;
};

}  // namespace interp
