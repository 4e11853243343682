// Job schedules: in which order the stages of a pipeline compute the micro-batches of a step.
//
// A pipeline has `stages`, each on a place of its own, and each of `chunks` chunks: chunk c of
// stage s is segment c * stages + s of the network. A job is the forward or the backward part of
// one segment on one micro-batch. Forward jobs of a micro-batch go through the segments from first
// to last, backward jobs from last to first.
//
//   kFThenB       F0 F1 .. B0 B1 ..        keeps all micro-batches at once
//   k1F1B         F0 F1 B0 F2 B1 .. B2 B3  stage s keeps stages - s micro-batches at most
//   kInterleaved  1F1B of several chunks a stage: a shorter bubble for more messages
//
// (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM", SC 2021. The orders are those of Paddle's pipeline passes.)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace interp {

enum class ScheduleKind : int8_t { kFThenB, k1F1B, kInterleaved };

// "fthenb", "1f1b", "interleaved".
absl::string_view Name(ScheduleKind kind);
// InvalidArgument, with the names there are, for another one.
absl::StatusOr<ScheduleKind> ScheduleFromName(absl::string_view name);

inline constexpr int32_t kMaxMicroBatches = 4096;
inline constexpr int32_t kMaxSegments = 1024;

struct JobSchedule {
  ScheduleKind kind = ScheduleKind::k1F1B;
  int32_t stages = 1;
  int32_t chunks = 1;  // of a stage
  int32_t micro_batches = 1;

  int32_t segments() const { return stages * chunks; }
};

enum class JobKind : int8_t { kForward, kBackward };

struct Job {
  JobKind kind = JobKind::kForward;
  int32_t stage = 0;
  int32_t chunk = 0;
  int32_t micro_batch = 0;
  bool operator==(const Job&) const = default;
};

inline int32_t SegmentOf(const JobSchedule& schedule, const Job& job) {
  return job.chunk * schedule.stages + job.stage;
}
// "F3", "B3"; with several chunks a stage "F3.1", behind the point the chunk.
std::string NameOf(const JobSchedule& schedule, const Job& job);

// InvalidArgument for numbers that make no schedule.
absl::Status CheckSchedule(const JobSchedule& schedule);

// What one stage does, in this order. REQUIRES: CheckSchedule.
std::vector<Job> JobsOfStage(const JobSchedule& schedule, int32_t stage);

// How long a job of each kind takes, for OrderJobs: as a rule a backward part has twice the
// products of its forward part.
struct JobCosts {
  int64_t forward = 1;
  int64_t backward = 2;
};

struct TimedJob {
  Job job;
  int64_t start = 0;
  int64_t end = 0;
};

// The jobs of all stages by their start, where each takes its cost, each stage keeps its order and
// messages take no time. Whoever starts them one by one in this order finds for each what it needs
// already started. O(jobs * stages). Internal for lists of which none can go on.
absl::StatusOr<std::vector<TimedJob>> OrderJobs(const std::vector<std::vector<Job>>& of_stages,
                                                const JobSchedule& schedule,
                                                const JobCosts& costs = {});

// The share of its time that a stage waits where all jobs take the same time on all stages:
// (p - 1) / (v m + p - 1) of p stages, v chunks a stage and m micro-batches.
double BubbleByFormula(const JobSchedule& schedule);

// How many chunks of micro-batches a stage that does `jobs` keeps at most, between their forward
// and their backward part.
int32_t MostInFlight(const std::vector<Job>& jobs);

}  // namespace interp
