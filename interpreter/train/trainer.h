// Trainer: runs a training program step by step.
//
//   auto trainer = Trainer::Create(main, scope, {.fetches = {"loss"}});
//   (*trainer)->Initialize(startup);
//   auto fetched = (*trainer)->Step({image, label});
//
// A training program holds forward, backward and update in one: a step is one run of it, and what
// it changes are the persistable variables of the scope.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/param_decl.h"
#include "core/program.h"
#include "core/scope.h"
#include "core/status.h"
#include "interpreter/interpreter_core.h"
#include "passes/train/data_parallel.h"
#include "passes/train/loss_scaling.h"
#include "passes/train/micro_batches.h"

namespace interp {

class DataParallel;
class MicroBatches;
class Replicas;
class SequenceRows;
struct ShareCounts;

struct TrainerOptions {
  // Variables to feed in this order. Empty: the program's own (DataVars).
  std::vector<std::string> feeds = {};
  // Variables to fetch in this order. Empty: those that the program fetches itself.
  std::vector<std::string> fetches = {};
  // Scales the loss and the gradients (passes/train/loss_scaling.h), which the pass `fp16` needs;
  // unset: they stay as they are.
  std::optional<LossScalingOptions> loss_scaling = std::nullopt;
  // How many shares of a batch are computed side by side (docs/training.md). 1: the program runs as
  // it is.
  int replicas = 1;
  // Ranks (CoreOptions::rings) share out each batch and add up gradients: docs/many_machines.md.
  // Unset: each rank trains for itself.
  std::optional<DataParallelOptions> data_parallel = std::nullopt;
  // A step computes its batch in parts, one after another or, of several stages, in a pipeline:
  // docs/micro_batches.md. Its place is that of `core`. With replicas each computes its share in so
  // many parts. Unset: the program runs as it is.
  std::optional<MicroBatchOptions> micro_batches = std::nullopt;
  // All ops run, whatever is fetched: the prune pass is off.
  CoreOptions core = {};
};

// Thread-safety: one call at a time.
class Trainer {
 public:
  // `scope` holds the parameters, or will after Initialize; null: the trainer makes one. Errors:
  // those of InterpreterCore::Create and AddLossScaling.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(Program main, std::shared_ptr<Scope> scope,
                                                         TrainerOptions options);
  ~Trainer();

  // Runs the program that makes the parameters and the optimizer's state. Its random numbers come
  // from the core's seed and a stream of their own, so that steps draw the same with and without
  // it. What mixed precision declares in another dtype than the program makes is rounded to it.
  // DeadlineExceeded after `timeout`.
  absl::Status Initialize(const Program& startup,
                          std::optional<std::chrono::nanoseconds> timeout = std::nullopt);

  // With data_parallel: all ranks get the values of the persistable variables, the number of steps
  // and the random numbers of rank 0. Called by all of them, before the first step.
  absl::Status ShareState();

  // One step on feeds in the order of feeds(): on all ranks, those of the whole batch. Errors:
  // those of InterpreterCore::Run; parameters that were updated before the failure keep their new
  // values. With replicas the update comes after all else, so that most failures change nothing.
  absl::StatusOr<std::vector<Tensor>> Step(absl::Span<const Tensor> feeds,
                                           const RunOptions& options = {});

  // What to feed.
  const std::vector<FeedSpec>& feeds() const;
  const std::vector<std::string>& fetches() const { return fetches_; }
  // How many steps were run, by this trainer or before the state that it went on from.
  int64_t num_steps() const { return num_steps_; }

  // What continues training to the same bits: the values of the persistable variables, the number
  // of steps and the random numbers (of core()).
  const std::vector<ParamDecl>& persistables() const { return persistables_; }
  const std::shared_ptr<Scope>& scope() const { return scope_; }
  void SetNumSteps(int64_t steps) { num_steps_ = steps; }

  // Of micro-batches; unset without. Of replicas, that of each.
  std::optional<JobSchedule> schedule() const;
  // The program of micro-batches; null without, and where replicas have them.
  const MicroBatches* micro_batches() const { return micro_batches_.get(); }

  // What runs the program; of replicas the first, without the update.
  InterpreterCore& core();
  // What parameters may lie on, for other cores on the same scope.
  const std::vector<std::shared_ptr<Device>>& devices() const;
  // The most memory a step has taken, of all replicas together.
  size_t peak_bytes() const;

 private:
  static absl::Status CheckCombination(const TrainerOptions& options);
  // core_ or replicas_, for the program as it is cut.
  absl::Status MakeCore(Program main, const std::vector<std::string>& feeds,
                        const std::vector<std::string>& fetches, const ShareCounts& counts);
  absl::Status RoundToDeclared(const Program& startup);
  absl::StatusOr<std::vector<Tensor>> StepOfRank(absl::Span<const Tensor> feeds,
                                                 const RunOptions& options);
  // `share`: that of this rank, with its weight behind.
  absl::StatusOr<std::vector<Tensor>> StepOfShare(std::vector<Tensor> share,
                                                  const RunOptions& options);
  // The error, which the other ranks are told: they wait for this one's part.
  absl::Status FailOfRank(const absl::Status& error) const;
  absl::StatusOr<std::vector<Tensor>> StepOfMicroBatches(absl::Span<const Tensor> feeds,
                                                         const RunOptions& options);
  absl::StatusOr<std::vector<Tensor>> StepOfReplicas(absl::Span<const Tensor> feeds,
                                                     const RunOptions& options);

  Trainer(std::shared_ptr<Scope> scope, std::vector<ParamDecl> persistables,
          TrainerOptions options);

  std::unique_ptr<InterpreterCore> core_;        // null with replicas
  std::unique_ptr<Replicas> replicas_;           // null without
  std::unique_ptr<DataParallel> ranks_;          // null without
  std::unique_ptr<MicroBatches> micro_batches_;  // null without
  std::optional<JobSchedule> turns_;             // of replicas, or of a program with loops
  std::unique_ptr<SequenceRows> sequences_;      // null where batches are taken whole
  std::vector<FeedSpec> feeds_of_batch_;         // with ranks_ or micro_batches_
  std::shared_ptr<Scope> scope_;
  std::vector<ParamDecl> persistables_;  // sorted by name
  std::vector<std::string> fetches_;
  CoreOptions options_;
  int64_t num_steps_ = 0;
};

}  // namespace interp
