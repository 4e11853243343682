// Replicas: one training step on several shares of its batch, side by side or one after another.
//
//   batch ──split──► compute on share 0 ──┐
//                    compute on share 1 ──┼─merge─► update
//                    ...                ──┘
//
// The program is cut in two (passes/train/split_update.h). Clones of the one part compute
// gradients, each on a thread of its own with its share of the samples and its own stream of random
// numbers. The gradients are merged, in the order of the replicas: weighted by samples, so that the
// result is the gradient of a loss that is a mean over the samples. Then the other part updates the
// parameters once.
//
// A replica may have several shares, its micro-batches: it computes one after another and adds up
// the gradients, so that what a share takes in between is there once.
//
// States that the forward part changes (running means of batch_norm, metrics) start in all replicas
// as the scope has them, go from one share of a replica to its next, and replica 0 says what they
// become.
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

// Into how many shares a batch is cut.
struct ShareCounts {
  int replicas = 1;
  int turns = 1;  // shares of each replica
};

class Replicas {
 public:
  // Replicas of a training program. `options.num_threads` are those of an op of each replica; the
  // update of several takes as many as they are. `feeds` are not empty. Errors: those
  // of SplitUpdate, CheckSharesUpdate and InterpreterCore::Create; Unimplemented on devices.
  static absl::StatusOr<std::unique_ptr<Replicas>> Create(
      Program main, const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
      std::shared_ptr<Scope> scope, ShareCounts counts, const CoreOptions& options);

  // One step. Fetches: floats whose declared first dim is open, rows of all shares; other floats,
  // the mean by samples; integers, which are to be the same in all. What the update writes and
  // persistable variables are as they are after it. `options.observer` sees the first share.
  absl::StatusOr<std::vector<Tensor>> Step(absl::Span<const Tensor> feeds,
                                           const RunOptions& options);

  // Replica 0, whose random state is that of the training: share s draws from stream s after it.
  InterpreterCore& first() { return *cores_[0]; }
  // What to feed: of the batch.
  const std::vector<FeedSpec>& feeds() const { return feeds_; }
  // Shares of a batch that has samples for all.
  int num_shares() const { return counts_.replicas * counts_.turns; }
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
  // What a replica has of its shares.
  struct Computed {
    std::vector<Tensor> fetched;  // of merged_, then the states
    int64_t num_samples = 0;
  };

  Replicas() = default;
  void PlanFetches(const Program& main, const SplitProgram& split,
                   const std::vector<std::string>& fetches);
  size_t MergedColumn(const std::string& name, Merge merge);
  absl::Status MakeCores(SplitProgram split, const std::vector<std::string>& feeds, int count,
                         const CoreOptions& options);
  absl::StatusOr<std::vector<Tensor>> States() const;
  absl::StatusOr<std::vector<Computed>> Compute(std::vector<BatchShare> shares,
                                                const RunOptions& options);
  absl::StatusOr<Computed> ComputeTurns(int replica, absl::Span<BatchShare> shares, int64_t first,
                                        const RunOptions& options);
  // What the shares of a replica gave for a column, to be merged with these factors. Means of whole
  // floats are taken as parts come, so that there are never more than two.
  struct Parts {
    std::vector<Tensor> values;
    std::vector<double> weights;
  };
  static absl::Status MergeParts(Merge merge, Parts& parts);
  absl::Status AddTurn(std::vector<Tensor> fetched, double weight, std::vector<Parts>& parts) const;
  void PassStates(std::vector<Tensor>& fetched, std::vector<Tensor>& written,
                  std::vector<Tensor>& states) const;
  absl::Status MergeComputed(std::vector<Computed>& computed);
  void KeepStates(std::vector<Tensor>& fetched);

  ShareCounts counts_;
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
