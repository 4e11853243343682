// DataParallel: steps of a training program that several ranks run together, each on its share of
// every batch (docs/many_machines.md).
//
//   all ranks: batch ──split──► share of this rank ──► forward, backward ──► sums over ranks
//                                                                            ──► update
//
// Each rank has all parameters and updates all of them, from the same gradients in the same way, so
// that they stay the same. Rank 0 says what they are at first. Shares, weights and the merging of
// fetches are those of Replicas; the sums are ops of the program (passes/train/data_parallel.h).
//
// Thread-safety: one call at a time. Errors: those of the ranks' communication (core/comm).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/comm/rings.h"
#include "core/io/param_decl.h"
#include "core/program.h"
#include "core/resource/random_stream.h"
#include "core/scope.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"
#include "interpreter/train/split_batch.h"
#include "passes/train/data_parallel.h"
#include "passes/train/split_update.h"

namespace interp {

// Gives `bytes` of rank 0 to all ranks. They are few, and may lie anywhere.
absl::Status BroadcastBytes(Communicator& ring, void* bytes, size_t size);

// Whether any rank of a ring says so. All ask, and all learn the same. What they do together
// between the question and the answer leaves nothing to wait for.
class AnyRank {
 public:
  static absl::StatusOr<AnyRank> Ask(Communicator& ring, bool own);
  absl::StatusOr<bool> Answer() const;

 private:
  Tensor value_;
  std::shared_ptr<CommRequest> request_;
};

class DataParallel {
 public:
  // Rewrites `main` (MakeDataParallel). `fetches`: what steps are asked for.
  static absl::StatusOr<std::unique_ptr<DataParallel>> Create(
      Program& main, const std::vector<std::string>& fetches, std::shared_ptr<Rings> rings,
      const DataParallelOptions& options);

  // The name of what MyShare adds to the feeds, last.
  const std::string& weight() const { return weight_; }
  int rank() const { return ring_->rank(); }
  int size() const { return ring_->size(); }
  // Of the last MyShare's batch, on all ranks together.
  int64_t num_samples() const { return num_samples_; }
  int num_buckets() const { return num_buckets_; }

  // Tensors of the root scope as rank 0 has them; those that it lacks are left alone.
  absl::Status BroadcastTensors(const std::vector<ParamDecl>& params, Scope& scope);
  // Where a training stands, as rank 0 has it.
  absl::Status BroadcastPosition(int64_t& num_steps, RandomState& random);

  // This rank's share of a batch, with the weight behind. Where there are fewer samples than ranks,
  // those left over compute the first one, with weight 0, so that they take part.
  absl::StatusOr<std::vector<Tensor>> MyShare(absl::Span<const Tensor> batch,
                                              absl::Span<const FeedSpec> feeds);
  // What Replicas::Step says of fetches, of the last MyShare's batch. All ranks get the same.
  absl::Status MergeFetches(std::vector<Tensor>& fetched);

 private:
  struct Fetch {
    std::string name;
    Merge merge = Merge::kMean;
    bool same_on_all_ranks = false;
  };

  DataParallel() = default;
  absl::Status MergeFetch(const Fetch& fetch, Tensor& value);
  absl::Status BroadcastTensor(Tensor& tensor);

  std::shared_ptr<Rings> rings_;
  Communicator* ring_ = nullptr;
  std::string weight_;
  int num_buckets_ = 0;
  std::vector<Fetch> fetches_;
  int64_t num_samples_ = 0;
  std::vector<double> weights_;  // of the ranks' shares of the last batch
};

}  // namespace interp
