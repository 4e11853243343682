#include "tools/run_watch.h"

#include "core/base/annotate.h"
#include "core/io/file.h"
#include "tools/sizes.h"

namespace interp {

void AddWatchFlags(CLI::App& command, WatchFlags& flags) {
  constexpr const char* kGroup = "Looking at runs";
  command
      .add_flag("--profile", flags.profile,
                "where the time goes and what is achieved in it, over the timed runs, else the "
                "first")
      ->group(kGroup);
  command
      .add_option("--trace", flags.trace,
                  "write the last run as trace events (JSON), for Perfetto and other viewers")
      ->group(kGroup);
  command
      .add_option("--stall-report", flags.stall_report,
                  "say on standard error which ops wait for what when none has started or ended "
                  "for, for example, 5s")
      ->group(kGroup);
}

absl::StatusOr<std::optional<std::chrono::nanoseconds>> StallTime(const WatchFlags& flags) {
  std::optional<std::chrono::nanoseconds> time;
  if (flags.stall_report.empty()) return time;
  INTERP_ASSIGN_OR_RETURN(const std::chrono::nanoseconds parsed,
                          Annotate(ParseDuration(flags.stall_report), "--stall-report"));
  if (parsed.count() <= 0) return InvalidArgument("--stall-report: expected more than nothing");
  time = parsed;
  return time;
}

RunWatch::RunWatch(const WatchFlags& flags, std::optional<std::chrono::nanoseconds> stall_time,
                   const InterpreterCore& core, Rings* rings, bool record)
    : core_(core), trace_path_(flags.trace) {
  if (flags.profile) profile_ = std::make_unique<Profile>(core.plans());
  if (record || !trace_path_.empty()) recorder_ = std::make_unique<TraceRecorder>(core, rings);
  if (stall_time.has_value()) {
    stall_watch_ =
        std::make_unique<StallWatch>(core.plans(), StallWatchOptions{.after = *stall_time});
  }
}

RunWatchers RunWatch::watchers() const {
  return {
      .every_run = stall_watch_.get(), .timed_runs = profile_.get(), .last_run = recorder_.get()};
}

const Profile* RunWatch::FinishProfile() {
  if (profile_ == nullptr) return nullptr;
  profile_->SetCosts(CostsOfLastRun(core_));
  profile_->SetAlgorithms(core_.algorithms());
  profile_->SetLimit(MeasureMachineLimit(core_.num_threads(), profile_->DTypes()));
  return profile_.get();
}

absl::Status RunWatch::WriteTrace() const {
  if (trace_path_.empty()) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(trace_path_));
  INTERP_RETURN_IF_ERROR(file.Append(ToChromeTrace(recorder_->trace(), core_)));
  return file.Commit();
}

}  // namespace interp
