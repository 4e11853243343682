// AnalyzeMicroBatches: what MakeMicroBatches has to know of a training program before it writes the
// program of jobs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"
#include "passes/train/job_schedule.h"
#include "passes/train/micro_batches.h"

namespace interp {

// What the update reads of the micro-batches: the sum over all.
struct MicroBatchSum {
  VarId id = -1;
  size_t writer = 0;      // op of the given program that writes it last
  bool weighted = false;  // each summand is to be weighted by itself
};

struct MicroBatchAnalysis {
  JobSchedule schedule;
  std::vector<int32_t> segment_of;    // by op of block 0
  std::vector<int32_t> job_of;        // by op: number in the order of one micro-batch; -1: no job
  std::vector<bool> per_micro_batch;  // by VarId: each micro-batch has its own
  std::vector<MicroBatchSum> sums;
  std::vector<bool> starts;                       // by op: what it makes is to be weighted
  std::vector<VarId> states;                      // persistable variables that jobs change
  std::vector<std::vector<VarId>> kept;           // by job number: what it leaves, besides summands
  absl::flat_hash_set<std::string> fetched_once;  // as of MicroBatchProgram
};

// Forward jobs have the numbers of their segments, backward jobs come behind them, from the last
// segment to the first. Errors: those of MakeMicroBatches.
absl::StatusOr<MicroBatchAnalysis> AnalyzeMicroBatches(const Program& main,
                                                       const std::vector<std::string>& feeds,
                                                       const MicroBatchOptions& options,
                                                       const OpRegistry& ops);

// Whether the program may be run once for each micro-batch, with one update behind all: the update
// must not read what micro-batches count, nor what CheckSharesUpdate (passes/train/split_update.h)
// refuses. Unimplemented otherwise.
absl::Status CheckTurns(const Program& main, const std::vector<std::string>& feeds,
                        const OpRegistry& ops);

// The number of `job` among those of one micro-batch.
inline int32_t NumberOf(const JobSchedule& schedule, const Job& job) {
  const int32_t segment = SegmentOf(schedule, job);
  return job.kind == JobKind::kForward ? segment : 2 * schedule.segments() - 1 - segment;
}

}  // namespace interp
