// What `interp run` can show of runs while they go on: profile, trace, stalls.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "interpreter/inspect/stall_watch.h"
#include "interpreter/inspect/trace.h"
#include "tools/profile.h"
#include "tools/timed_runs.h"

namespace interp {

struct WatchFlags {
  bool profile = false;
  std::string trace;         // file to write; empty: none
  std::string stall_report;  // duration; empty: none
};
void AddWatchFlags(CLI::App& command, WatchFlags& flags);

// Of --stall-report; nullopt without it. InvalidArgument when it cannot be understood.
absl::StatusOr<std::optional<std::chrono::nanoseconds>> StallTime(const WatchFlags& flags);

// The observers that the flags ask for.
class RunWatch {
 public:
  // Borrows the core, and the rings, which may be null. `record`: the last run is to be recorded
  // also without --trace.
  RunWatch(const WatchFlags& flags, std::optional<std::chrono::nanoseconds> stall_time,
           const InterpreterCore& core, Rings* rings, bool record = false);

  RunWatchers watchers() const;
  // With costs of the last run; null without --profile.
  const Profile* FinishProfile();
  // Of the last run; null when it was not recorded.
  const RunTrace* trace() const { return recorder_ == nullptr ? nullptr : &recorder_->trace(); }
  // Writes the file of --trace, if any.
  absl::Status WriteTrace() const;

 private:
  const InterpreterCore& core_;
  const std::string trace_path_;
  std::unique_ptr<Profile> profile_;
  std::unique_ptr<TraceRecorder> recorder_;
  std::unique_ptr<StallWatch> stall_watch_;
};

}  // namespace interp
