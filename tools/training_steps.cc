#include "tools/training_steps.h"

#include <chrono>
#include <utility>

#include "core/base/annotate.h"
#include "core/io/file.h"
#include "interpreter/train/data_parallel.h"
#include "tools/elapsed.h"
#include "tools/loss_plot.h"
#include "tools/outputs.h"

namespace interp {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<NamedTensor> Named(const std::vector<std::string>& names,
                               const std::vector<Tensor>& values) {
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < values.size(); ++i) named.emplace_back(names[i], values[i]);
  return named;
}

}  // namespace

TrainingSteps::TrainingSteps(const TrainFlags& flags, TrainSession& session, RunWatch& watch)
    : flags_(flags),
      session_(session),
      trainer_(*session.trainer),
      watchers_(watch.watchers()),
      first_step_(session.trainer->num_steps()),
      loader_(session.data, flags.batches, session.position,
              {.position = {.epoch = session.last_epoch},
               .batches = session.last_step - session.trainer->num_steps()}),
      next_(session.position) {}

absl::StatusOr<TrainReport> TrainingSteps::Run() {
  TrainReport report;
  report.program = flags_.main;
  report.first_step = first_step_;
  report.epochs = next_.epoch;
  INTERP_RETURN_IF_ERROR(CheckOutputs());
  INTERP_ASSIGN_OR_RETURN(
      TrainLog log,
      Annotate(TrainLog::Create(flags_.log, trainer_.fetches(), first_step_), "--log"));
  // Not before: nothing is lost yet, and opening a pipe may take for ever.
  WatchForInterruption();
  const Clock::time_point start = Clock::now();
  const absl::Status taken = TakeAll(log, report);
  if (!taken.ok()) return CheckpointDespite(taken);
  are_done_ = true;
  interrupted_ = evaluation_cut_ || !IsEnd(trainer_.num_steps(), next_);
  report.total_ms = MsSince(start);
  report.data_wait_ms = loader_.waited_ms();
  report.peak_bytes = trainer_.peak_bytes();
  INTERP_RETURN_IF_ERROR(Finish(log));
  return report;
}

// Ranks that train each for itself, whose steps may differ in number, end by the signal. An
// evaluation of several ranks is not cut, as its program may have collectives.
void TrainingSteps::WatchForInterruption() {
  if (flags_.rings != nullptr && !flags_.data_parallel) return;
  interruption_.emplace([this] {
    if (flags_.rings == nullptr) stop_.request_stop();
  });
}

// What cannot be written is told before hours of training.
absl::Status TrainingSteps::CheckOutputs() const {
  for (const auto& [flag, path] : {std::pair("--save", &flags_.save),
                                   {"--plot", &flags_.plot},
                                   {"--trace", &flags_.watch.trace},
                                   {"--pipeline-page", &flags_.pipeline.page}}) {
    if (path->empty()) continue;
    INTERP_RETURN_IF_ERROR(Annotate(CheckWritable(*path), flag));
  }
  return absl::OkStatus();
}

absl::Status TrainingSteps::TakeAll(TrainLog& log, TrainReport& report) {
  TrainProgress progress(first_step_, session_.last_step, flags_.json);
  bool interrupted = false;
  while (!IsEnd(trainer_.num_steps(), next_) && !interrupted) {
    const auto happened = [this] { return interruption_.has_value() && interruption_->happened(); };
    std::optional<AnyRank> any;
    if (flags_.rings != nullptr && flags_.data_parallel) {
      INTERP_ASSIGN_OR_RETURN(any, AnyRank::Ask(flags_.rings->World(), happened()));
    }
    INTERP_RETURN_IF_ERROR(TakeOne(log, progress, report));
    // Ranks end after the same step, whichever of them was interrupted.
    INTERP_ASSIGN_OR_RETURN(interrupted,
                            any.has_value() ? any->Answer() : absl::StatusOr<bool>(happened()));
  }
  return absl::OkStatus();
}

absl::Status TrainingSteps::TakeOne(TrainLog& log, TrainProgress& progress, TrainReport& report) {
  INTERP_ASSIGN_OR_RETURN(const Batch batch, loader_.Next());
  report.num_skipped += batch.num_skipped;
  report.epochs = batch.next.epoch;
  if (batch.num_samples == 0) {  // nothing to step on, but perhaps the end of an epoch
    next_ = batch.next;
    return next_.batch == 0 ? AfterStep(progress, report) : absl::OkStatus();
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> fetched, Step(batch, report));
  next_ = batch.next;
  report.num_samples += batch.num_samples;
  INTERP_RETURN_IF_ERROR(log.Add(trainer_.num_steps(), fetched));
  progress.Show(trainer_.num_steps(), report.num_samples, trainer_.fetches(), fetched);
  INTERP_RETURN_IF_ERROR(AfterStep(progress, report));
  report.fetches = Named(trainer_.fetches(), fetched);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> TrainingSteps::Step(const Batch& batch, TrainReport& report) {
  RunOptions options{.timeout = session_.timeout};
  ObserverList observers;
  observers.Add(watchers_.every_run);
  const bool last = IsEnd(trainer_.num_steps() + 1, batch.next);
  if (!report.steps_ms.empty() || last) observers.Add(watchers_.timed_runs);
  if (last) observers.Add(watchers_.last_run);
  if (!observers.empty()) options.observer = &observers;
  const Clock::time_point start = Clock::now();
  absl::StatusOr<std::vector<Tensor>> fetched = trainer_.Step(batch.feeds, options);
  report.steps_ms.push_back(MsSince(start));
  if (fetched.ok()) return fetched;
  whole_ = false;
  return Annotate(fetched.status(), absl::StrCat("step ", trainer_.num_steps() + 1));
}

// Where batches without a whole sample are left out, the data ends before the steps do.
bool TrainingSteps::IsEnd(int64_t num_steps, DataPosition next) const {
  return num_steps >= session_.last_step || next.epoch >= session_.last_epoch;
}

bool TrainingSteps::Due(int64_t every) const {
  return every > 0 ? trainer_.num_steps() % every == 0 : next_.batch == 0;
}

// The checkpoint first: an evaluation may fail, or take long.
absl::Status TrainingSteps::AfterStep(TrainProgress& progress, TrainReport& report) {
  const bool last = IsEnd(trainer_.num_steps(), next_);
  if (last ? TookSteps() : Due(flags_.checkpoint_every)) INTERP_RETURN_IF_ERROR(Checkpoint());
  const bool evaluates = session_.evaluation.has_value() && (last || Due(flags_.eval_every));
  return evaluates ? RunEvaluation(progress, report) : absl::OkStatus();
}

absl::Status TrainingSteps::RunEvaluation(TrainProgress& progress, TrainReport& report) {
  absl::StatusOr<std::vector<NamedTensor>> means = session_.evaluation->Run(
      flags_.batches.batch_size, {.timeout = session_.timeout, .stop = stop_.get_token()},
      report.num_evaluation_skipped);
  evaluation_cut_ = absl::IsCancelled(means.status()) && stop_.stop_requested();
  if (evaluation_cut_) return absl::OkStatus();
  if (!means.ok()) return Annotate(means.status(), absl::StrCat("--eval ", flags_.eval.model));
  report.evaluation = *std::move(means);
  std::string line = absl::StrCat("step ", trainer_.num_steps(), ": evaluated");
  for (const auto& [name, value] : report.evaluation) {
    absl::StrAppend(&line, " ", name, " ", ValueOf(value));
  }
  progress.Say(line);
  return absl::OkStatus();
}

// Of where training stands, unless that is written.
absl::Status TrainingSteps::Checkpoint() {
  const std::pair<int64_t, DataPosition> now = {trainer_.num_steps(), next_};
  if (!KeepsCheckpoints(flags_) || written_ == now) return absl::OkStatus();
  const absl::Status written =
      session_.checkpoints->Write(trainer_, next_, session_.order, flags_.keep);
  whole_ = whole_ && written.ok();
  if (written.ok()) written_ = now;
  return written;
}

// The error, and what became of the steps before it.
absl::Status TrainingSteps::CheckpointDespite(const absl::Status& error) {
  if (!KeepsCheckpoints(flags_) || !whole_ || !TookSteps()) return error;
  const absl::Status written = Checkpoint();
  const int64_t step = trainer_.num_steps();
  return absl::Status(error.code(),
                      written.ok()
                          ? absl::StrCat(error.message(), "; --resume goes on after step ", step)
                          : absl::StrCat(error.message(), "; there is no checkpoint of step ", step,
                                         ": ", written.message()));
}

absl::Status TrainingSteps::Finish(TrainLog& log) {
  if (TookSteps()) INTERP_RETURN_IF_ERROR(Checkpoint());
  if (!interrupted_) {
    INTERP_RETURN_IF_ERROR(SaveParameters(session_.saved, *trainer_.scope()));
  }
  // What is worth keeping is kept, and who reads a plot from a pipe may never come.
  interruption_.reset();
  if (flags_.plot.empty()) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(flags_.plot));
  INTERP_RETURN_IF_ERROR(file.Append(PlotSvg(log.curves())));
  return file.Commit();
}

}  // namespace interp
