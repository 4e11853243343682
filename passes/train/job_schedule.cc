#include "passes/train/job_schedule.h"

#include <algorithm>

namespace interp {
namespace {

constexpr struct {
  ScheduleKind kind;
  absl::string_view name;
} kScheduleNames[] = {{ScheduleKind::kFThenB, "fthenb"},
                      {ScheduleKind::k1F1B, "1f1b"},
                      {ScheduleKind::kInterleaved, "interleaved"}};

// The k-th forward or backward job of a stage. Micro-batches go through a chunk in groups of as
// many as there are stages, then through the next one.
Job KthJob(const JobSchedule& schedule, int32_t stage, JobKind kind, int32_t k) {
  const int32_t group = schedule.stages * schedule.chunks;
  int32_t chunk = k % group / schedule.stages;
  if (kind == JobKind::kBackward) chunk = schedule.chunks - 1 - chunk;
  // Of one chunk there are no groups, so the last one need not be full.
  const int32_t micro_batch =
      schedule.chunks == 1 ? k : k / group * schedule.stages + k % schedule.stages;
  return {.kind = kind, .stage = stage, .chunk = chunk, .micro_batch = micro_batch};
}

// Forward jobs of a stage before its first backward job, of `count` in all.
int32_t WarmUp(const JobSchedule& schedule, int32_t stage, int32_t count) {
  switch (schedule.kind) {
    case ScheduleKind::kFThenB:
      return count;
    case ScheduleKind::k1F1B:
      return std::min(schedule.stages - stage, count);
    case ScheduleKind::kInterleaved: {
      if (schedule.micro_batches == schedule.stages) return count;
      const int32_t before =
          2 * (schedule.stages - stage - 1) + (schedule.chunks - 1) * schedule.stages;
      // One more, as the forward job of a pair comes first.
      return std::min(before + 1, count);
    }
  }
  return count;
}

// Who has done what by when.
class Simulation {
 public:
  Simulation(const JobSchedule& schedule, const JobCosts& costs)
      : schedule_(schedule),
        costs_(costs),
        ends_(2 * static_cast<size_t>(schedule.segments()) *
                  static_cast<size_t>(schedule.micro_batches),
              kNever),
        free_at_(schedule.stages, 0) {}

  // kNever: what it needs is not there yet.
  int64_t StartOf(const Job& job) const {
    const int32_t segment = SegmentOf(schedule_, job);
    const bool forward = job.kind == JobKind::kForward;
    const bool last = segment + 1 == schedule_.segments();
    int64_t needed = 0;
    if (forward && segment > 0) {
      needed = EndOf(JobKind::kForward, segment - 1, job.micro_batch);
    } else if (!forward) {
      needed = last ? 0 : EndOf(JobKind::kBackward, segment + 1, job.micro_batch);
      const int64_t own = EndOf(JobKind::kForward, segment, job.micro_batch);
      needed = needed == kNever || own == kNever ? kNever : std::max(needed, own);
    }
    return needed == kNever ? kNever : std::max(needed, free_at_[job.stage]);
  }

  TimedJob Do(const Job& job, int64_t start) {
    const int64_t cost = job.kind == JobKind::kForward ? costs_.forward : costs_.backward;
    const int64_t end = start + cost;
    ends_[Index(job.kind, SegmentOf(schedule_, job), job.micro_batch)] = end;
    free_at_[job.stage] = end;
    return {.job = job, .start = start, .end = end};
  }

  static constexpr int64_t kNever = -1;

 private:
  size_t Index(JobKind kind, int32_t segment, int32_t micro_batch) const {
    const size_t of_kind = static_cast<size_t>(segment) * schedule_.micro_batches + micro_batch;
    return 2 * of_kind + (kind == JobKind::kForward ? 0 : 1);
  }
  int64_t EndOf(JobKind kind, int32_t segment, int32_t micro_batch) const {
    return ends_[Index(kind, segment, micro_batch)];
  }

  const JobSchedule& schedule_;
  const JobCosts costs_;
  std::vector<int64_t> ends_;  // by Index
  std::vector<int64_t> free_at_;
};

}  // namespace

absl::string_view Name(ScheduleKind kind) {
  for (const auto& entry : kScheduleNames) {
    if (entry.kind == kind) return entry.name;
  }
  return "";
}

absl::StatusOr<ScheduleKind> ScheduleFromName(absl::string_view name) {
  for (const auto& entry : kScheduleNames) {
    if (entry.name == name) return entry.kind;
  }
  return InvalidArgument("no schedule is named '", name, "', expected fthenb, 1f1b or interleaved");
}

std::string NameOf(const JobSchedule& schedule, const Job& job) {
  std::string name = absl::StrCat(job.kind == JobKind::kForward ? "F" : "B", job.micro_batch);
  if (schedule.chunks > 1) absl::StrAppend(&name, ".", job.chunk);
  return name;
}

absl::Status CheckSchedule(const JobSchedule& schedule) {
  if (schedule.micro_batches < 1 || schedule.micro_batches > kMaxMicroBatches) {
    return InvalidArgument("a step has ", schedule.micro_batches, " micro-batches, expected 1 to ",
                           kMaxMicroBatches);
  }
  if (schedule.stages < 1 || schedule.chunks < 1 ||
      schedule.stages > kMaxSegments / schedule.chunks) {
    return InvalidArgument("a pipeline has ", schedule.stages, " stages of ", schedule.chunks,
                           " chunks, expected 1 to ", kMaxSegments, " in all");
  }
  const bool interleaved = schedule.kind == ScheduleKind::kInterleaved;
  if (interleaved && schedule.chunks == 1) {
    return InvalidArgument(
        "schedule interleaved: a stage has one chunk, expected 2 or more; 1f1b is what it would "
        "be");
  }
  if (!interleaved && schedule.chunks > 1) {
    return InvalidArgument("schedule ", Name(schedule.kind), ": a stage has ", schedule.chunks,
                           " chunks, expected 1; interleaved takes several");
  }
  if (interleaved && schedule.micro_batches % schedule.stages != 0) {
    return InvalidArgument("schedule interleaved: ", schedule.micro_batches,
                           " micro-batches are no multiple of ", schedule.stages, " stages");
  }
  return absl::OkStatus();
}

std::vector<Job> JobsOfStage(const JobSchedule& schedule, int32_t stage) {
  const int32_t count = schedule.micro_batches * schedule.chunks;
  const int32_t warm_up = WarmUp(schedule, stage, count);
  std::vector<Job> jobs;
  jobs.reserve(2 * static_cast<size_t>(count));
  for (int32_t k = 0; k < count + warm_up; ++k) {
    if (k >= warm_up) {
      jobs.push_back(KthJob(schedule, stage, JobKind::kBackward, k - warm_up));
    }
    if (k < count) jobs.push_back(KthJob(schedule, stage, JobKind::kForward, k));
  }
  return jobs;
}

absl::StatusOr<std::vector<TimedJob>> OrderJobs(const std::vector<std::vector<Job>>& of_stages,
                                                const JobSchedule& schedule,
                                                const JobCosts& costs) {
  Simulation simulation(schedule, costs);
  std::vector<size_t> next(of_stages.size(), 0);
  size_t left = 0;
  for (const std::vector<Job>& jobs : of_stages) left += jobs.size();
  std::vector<TimedJob> ordered;
  ordered.reserve(left);
  for (; left > 0; --left) {
    size_t first = of_stages.size();
    int64_t start = Simulation::kNever;
    for (size_t stage = 0; stage < of_stages.size(); ++stage) {
      if (next[stage] == of_stages[stage].size()) continue;
      const int64_t at = simulation.StartOf(of_stages[stage][next[stage]]);
      if (at == Simulation::kNever || (start != Simulation::kNever && at >= start)) continue;
      first = stage;
      start = at;
    }
    if (first == of_stages.size()) {
      return absl::InternalError(absl::StrCat("schedule ", Name(schedule.kind), ": with ", left,
                                              " jobs left each waits for another"));
    }
    ordered.push_back(simulation.Do(of_stages[first][next[first]++], start));
  }
  return ordered;
}

double BubbleByFormula(const JobSchedule& schedule) {
  const double stages_before = schedule.stages - 1;
  const double jobs = static_cast<double>(schedule.chunks) * schedule.micro_batches;
  return stages_before / (jobs + stages_before);
}

int32_t MostInFlight(const std::vector<Job>& jobs) {
  int32_t most = 0;
  int32_t now = 0;
  for (const Job& job : jobs) {
    now += job.kind == JobKind::kForward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace interp
