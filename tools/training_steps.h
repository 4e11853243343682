// The steps of `interp train`, and what it writes in between.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "core/status.h"
#include "interpreter/train/batch_loader.h"
#include "tools/interruption.h"
#include "tools/run_watch.h"
#include "tools/train_log.h"
#include "tools/train_report.h"
#include "tools/train_session.h"

namespace interp {

class TrainingSteps {
 public:
  // The arguments outlive it.
  TrainingSteps(const TrainFlags& flags, TrainSession& session, RunWatch& watch);

  // Takes all steps, once. Where something fails between them (data, evaluation, the log), the
  // steps that were taken are kept: with --checkpoint one of the last of them is written. A step
  // that fails may leave half of its update, which nothing is kept of.
  absl::StatusOr<TrainReport> Run();

  bool are_done() const { return are_done_; }
  // Whether Ctrl-C or SIGTERM ended it before its last step, or within the evaluation of that.
  bool interrupted() const { return interrupted_; }

 private:
  absl::Status CheckOutputs() const;
  absl::Status TakeAll(TrainLog& log, TrainReport& report);
  absl::Status TakeOne(TrainLog& log, TrainProgress& progress, TrainReport& report);
  absl::StatusOr<std::vector<Tensor>> Step(const Batch& batch, TrainReport& report);
  absl::Status AfterStep(TrainProgress& progress, TrainReport& report);
  absl::Status RunEvaluation(TrainProgress& progress, TrainReport& report);
  absl::Status Checkpoint();
  absl::Status CheckpointDespite(const absl::Status& error);
  absl::Status Finish(TrainLog& log);
  bool TookSteps() const { return trainer_.num_steps() > first_step_; }
  void WatchForInterruption();
  bool IsEnd(int64_t num_steps, DataPosition next) const;
  bool Due(int64_t every) const;

  const TrainFlags& flags_;
  TrainSession& session_;
  Trainer& trainer_;
  const RunWatchers watchers_;
  const int64_t first_step_;
  BatchLoader loader_;
  DataPosition next_;  // behind the last batch whose step was taken, or that has none
  bool whole_ = true;  // no step, and no checkpoint, has failed
  bool are_done_ = false;
  bool interrupted_ = false;
  bool evaluation_cut_ = false;  // by an interruption
  // The step and the position of the newest checkpoint.
  std::optional<std::pair<int64_t, DataPosition>> written_;
  std::stop_source stop_;  // of an evaluation; the step that runs is done to its end
  // Last, so that its thread ends first.
  std::optional<Interruption> interruption_;
};

}  // namespace interp
