// MicroBatches: steps of a training program that compute their batch part by part
// (docs/micro_batches.md).
//
//   batch ──split──► feeds of each micro-batch ──► one program of jobs ──► fetches ──merge──►
//
// The program is that of MakeMicroBatches (passes/train/micro_batches.h); this cuts batches for it
// and joins what it gives. Thread-safety: one call at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/plan/plan.h"
#include "passes/train/micro_batches.h"
#include "passes/train/split_update.h"

namespace interp {

class MicroBatches {
 public:
  // Rewrites `main`; its random ops are numbered while each is there once. `feeds` and `fetches`:
  // what steps are given and asked for.
  static absl::StatusOr<std::unique_ptr<MicroBatches>> Create(
      Program& main, const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
      const MicroBatchOptions& options, const OpRegistry& ops);

  // What the rewritten program is fed and asked for.
  const std::vector<std::string>& feeds() const { return feeds_; }
  const std::vector<std::string>& fetches() const { return fetches_; }
  // Those of a batch, of the specs of feeds().
  std::vector<FeedSpec> FeedsOfBatch(const std::vector<FeedSpec>& specs) const;

  const JobSchedule& schedule() const { return schedule_; }
  const std::vector<JobOps>& jobs() const { return jobs_; }

  // InvalidArgument where a batch of `samples`, shared out to `ranks`, leaves one of them with
  // fewer than micro-batches, and those left over would change states once more.
  absl::Status CheckSamples(int64_t samples, int ranks) const;
  // The values of feeds() for a batch. Micro-batches share its memory; their sizes differ by one
  // sample where it does not divide. Where there are fewer samples than micro-batches, those left
  // over compute the first one with weight 0. Errors: those of SplitBatch and CheckSamples.
  absl::StatusOr<std::vector<Tensor>> Split(absl::Span<const Tensor> batch,
                                            absl::Span<const FeedSpec> feeds);
  // The fetches of the last Split's batch: what a step has once, and else floats whose declared
  // first dim is open, rows of all micro-batches; other floats, the mean by samples; integers,
  // which are to be the same in all.
  absl::StatusOr<std::vector<Tensor>> Join(std::vector<Tensor> fetched) const;

 private:
  struct Column {
    size_t first = 0;   // of feeds_ or fetches_
    bool many = false;  // one for each micro-batch follows
    Merge merge = Merge::kMean;
    std::string name;
  };

  MicroBatches() = default;

  JobSchedule schedule_;
  std::vector<JobOps> jobs_;
  std::vector<std::string> feeds_;  // the weights last
  std::vector<std::string> fetches_;
  std::vector<Column> batch_feeds_;
  std::vector<Column> batch_fetches_;
  std::vector<std::string> states_;  // that micro-batches change
  DType weight_dtype_ = DType::kFloat32;
  std::vector<double> weights_;  // of the last batch, by micro-batch that has samples of its own
};

}  // namespace interp
