// Replicas: one training step on several shares of its batch, side by side.
//
//   batch ──split──► compute on share 0 ──┐
//                    compute on share 1 ──┼─merge─► update
//                    ...                ──┘
//
// The program is cut in two (passes/split_update.h). Clones of the one part compute gradients, each
// on a thread of its own with its share of the samples and its own stream of random numbers. The
// gradients are merged, in the order of the replicas: weighted by samples, so that the result is
// the gradient of a loss that is a mean over the samples. Then the other part updates the
// parameters once.
//
// States that the forward part changes (running means of batch_norm, metrics) start in all replicas
// as the scope has them, and replica 0 says what they become.
//
// Errors: what fails before the update leaves the scope as it was.
// Thread-safety: one call at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/scope.h"
#include "core/status.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/train/merge_values.h"
#include "interpreter/train/split_batch.h"
#include "interpreter/train/thread_team.h"

namespace interp {

class Replicas {
 public:
  // `count` replicas of a training program. `options.num_threads` are those of an op of each
  // replica; the update takes as many as there are replicas. `feeds` are not empty. Errors: those
  // of SplitUpdate and InterpreterCore::Create; Unimplemented on devices.
  static absl::StatusOr<std::unique_ptr<Replicas>> Create(Program main,
                                                          const std::vector<std::string>& feeds,
                                                          const std::vector<std::string>& fetches,
                                                          std::shared_ptr<Scope> scope, int count,
                                                          const CoreOptions& options);

  // One step. Fetches: floats whose declared first dim is open, rows of all replicas; other floats,
  // the mean by samples; integers, which are to be the same in all. What the update writes and
  // persistable variables are as they are after it. `options.observer` sees replica 0.
  absl::StatusOr<std::vector<Tensor>> Step(absl::Span<const Tensor> feeds,
                                           const RunOptions& options);

  // Replica 0, whose random state is that of the training: replica r draws from stream r after it.
  InterpreterCore& first() { return *cores_[0]; }
  // What to feed: of the batch.
  const std::vector<FeedSpec>& feeds() const { return feeds_; }
  int count() const { return static_cast<int>(cores_.size()); }
  // Of all cores together, at most.
  size_t peak_bytes() const;

 private:
  struct Fetch {
    bool from_update = false;
    size_t column = 0;  // of the update's fetches, or in merged_
  };
  // A column of the replicas' fetches that is merged.
  struct Merged {
    std::string name;
    Merge merge = Merge::kMean;
    MergedValue value;
  };
  using Fetched = std::vector<std::vector<Tensor>>;  // by replica

  Replicas() = default;
  void PlanFetches(const Program& main, const SplitProgram& split,
                   const std::vector<std::string>& fetches);
  size_t MergedColumn(const std::string& name, Merge merge);
  absl::Status MakeCores(SplitProgram split, const std::vector<std::string>& feeds, int count,
                         const CoreOptions& options);
  absl::Status AddStates(std::vector<BatchShare>& shares) const;
  absl::StatusOr<Fetched> Compute(const std::vector<BatchShare>& shares, const RunOptions& options);
  absl::Status MergeFetched(const std::vector<BatchShare>& shares, Fetched& fetched);
  void KeepStates(std::vector<Tensor>& fetched);

  std::shared_ptr<Scope> scope_;
  std::vector<FeedSpec> feeds_;
  std::vector<std::string> states_read_;
  std::vector<std::string> states_written_;  // fetched behind what is merged
  std::vector<Merged> merged_;
  std::vector<size_t> passed_;  // columns of merged_ that the update is fed
  std::vector<std::string> update_fetches_;
  std::vector<Fetch> fetches_;
  std::vector<std::unique_ptr<InterpreterCore>> cores_;  // by replica
  std::unique_ptr<InterpreterCore> update_;
  std::unique_ptr<ThreadTeam> team_;  // goes first
};

}  // namespace interp
