// MakeDataParallel: a training program for one process made one that several run together, each on
// its share of every batch.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

struct DataParallelOptions {
  // Gradients go out together until they have so many bytes. More hides the cost of a message, less
  // starts sooner: the last one has nothing left to hide behind.
  int64_t bucket_bytes = int64_t{4} << 20;
  int ring_id = 0;
};

struct DataParallelProgram {
  Program program;
  // To be fed besides the data: float64[1], the samples of this rank's share divided by those of
  // the batch.
  std::string weight;
  // The variables whose value at the end of a step is the same on all ranks.
  absl::flat_hash_set<std::string> same_on_all_ranks;
  int num_buckets = 0;
};

// The gradient of a loss that is a mean over samples is the mean of the shares' gradients, each
// weighted by its samples. What the update reads of the rest is summed over the ranks so, in
// buckets of one dtype that start as soon as their last gradient is there, while the backward part
// goes on:
//
//   fc_grad -> (W@GRAD=w2@GRAD)
//                                  c_bucket_allreduce(X=w2@GRAD, Weight) -> (Bucket=bucket_0)
//   fc_grad -> (W@GRAD=w1@GRAD)
//                                  c_bucket_allreduce(X=w1@GRAD, Weight) -> (Bucket=bucket_1)
//                                  c_bucket_wait(Bucket=bucket_0) -> (Out=w2@GRAD)
//                                  c_bucket_wait(Bucket=bucket_1) -> (Out=w1@GRAD)
//   sgd(Grad=w2@GRAD) ...
//
// Selected rows are gathered (c_allreduce_rows). States that the forward or backward part changes
// and ops read, but for averages that batch_norm only moves, become those of rank 0 (c_broadcast)
// before the update: what rank 0 saves is all that a training goes on from. Ops of the update come
// after all others then. The order of collectives is that of the program, so it is the same on all
// ranks. Linear in ops.
//
// Errors: those of SplitUpdate and CheckSharesUpdate (passes/train/split_update.h); Unimplemented
// for such a state of open dims. REQUIRES: VerifyProgram(main).
absl::StatusOr<DataParallelProgram> MakeDataParallel(const Program& main,
                                                     const DataParallelOptions& options);

}  // namespace interp
