// What `interp train` makes ready before the first step.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "interpreter/train/batch_loader.h"
#include "interpreter/train/checkpoint.h"
#include "interpreter/train/evaluation.h"
#include "interpreter/train/trainer.h"
#include "tools/core_flags.h"
#include "tools/exit_code.h"
#include "tools/feeds.h"
#include "tools/model.h"
#include "tools/pipeline_flags.h"
#include "tools/ranks.h"
#include "tools/record_data.h"
#include "tools/run_watch.h"
#include "tools/saved_parameters.h"

namespace interp {

struct TrainFlags {
  std::string main;
  std::string startup;
  std::string params;
  std::vector<std::string> data;
  DataLimits limits;
  RecordFlags records;
  std::vector<std::string> slots;  // of lines of MultiSlot text; empty: the feeds
  BatchOptions batches;
  bool no_shuffle = false;
  int replicas = 1;
  PipelineFlags pipeline;
  bool data_parallel = false;
  std::string bucket_size = "4M";
  int64_t epochs = 0;
  int64_t steps = 0;
  std::vector<std::string> fetches;
  ModelFlags eval;
  std::vector<std::string> eval_data;
  int64_t eval_every = 0;
  std::string log;
  std::string plot;
  std::string save;
  std::string checkpoint;
  int64_t checkpoint_every = 0;
  int keep = 3;
  bool resume = false;
  bool json = false;
  PlanFlags plan;
  RunFlags run;
  WatchFlags watch;
  RankFlags ranks;
  std::shared_ptr<Rings> rings;  // null: alone
};

// Whether this process keeps the checkpoints: rank 0 does.
inline bool KeepsCheckpoints(const TrainFlags& flags) {
  return !flags.checkpoint.empty() && (flags.rings == nullptr || flags.rings->rank() == 0);
}

// An evaluation of the parameters that are being trained.
struct Evaluation {
  std::unique_ptr<InterpreterCore> core;
  std::shared_ptr<SampleSource> data;
  std::vector<std::string> sparse_vars;  // see SparseVars

  // The means of its fetches. `num_skipped` becomes how many samples are damaged and left out.
  absl::StatusOr<std::vector<NamedTensor>> Run(int64_t batch_size, const EvaluationLimits& limits,
                                               int64_t& num_skipped) const;
};

// All that is made before the first step.
struct TrainSession {
  std::unique_ptr<Trainer> trainer;
  std::shared_ptr<SampleSource> data;
  std::vector<std::string> sparse_vars;  // see SparseVars
  std::optional<Evaluation> evaluation;
  ParametersToSave saved;
  std::optional<Checkpoints> checkpoints;  // with --checkpoint
  DataOrder order;
  DataPosition position;
  std::vector<std::string> warnings;
  std::optional<std::chrono::nanoseconds> timeout;  // of each run
  int64_t last_step = 0;
  int64_t last_epoch = 0;  // that many epochs end training, too
};

// Reads all that the flags name and checks it. Errors: InvalidArgument and NotFound for flags and
// files that do not fit, those of InterpreterCore for programs. `blame` becomes what the process
// exits with then: kUsage for flags and data, kModelUnusable for programs and parameters.
absl::StatusOr<TrainSession> PrepareTraining(const TrainFlags& flags, const CoreOptions& options,
                                             ExitCode& blame);

}  // namespace interp
