#include "passes/train/job_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_join.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using absl::StatusCode;
using testing::FailsWith;
using testing::IsOk;

std::string Text(const JobSchedule& schedule, int32_t stage) {
  return absl::StrJoin(JobsOfStage(schedule, stage), " ", [&](std::string* out, const Job& job) {
    absl::StrAppend(out, NameOf(schedule, job));
  });
}

std::vector<std::vector<Job>> Lists(const JobSchedule& schedule) {
  std::vector<std::vector<Job>> lists;
  for (int32_t s = 0; s < schedule.stages; ++s) lists.push_back(JobsOfStage(schedule, s));
  return lists;
}

// The share of all stages' time in which they wait.
double SimulatedBubble(const JobSchedule& schedule, const JobCosts& costs) {
  const auto jobs = OrderJobs(Lists(schedule), schedule, costs);
  EXPECT_THAT(jobs, IsOk());
  int64_t end = 0;
  int64_t busy = 0;
  for (const TimedJob& job : *jobs) {
    end = std::max(end, job.end);
    busy += job.end - job.start;
  }
  return 1 - static_cast<double>(busy) / (static_cast<double>(end) * schedule.stages);
}

// Every valid schedule of up to 8 stages, 16 micro-batches and 3 chunks.
template <typename Visit>
void ForEachSchedule(const Visit& visit) {
  for (int32_t stages = 1; stages <= 8; ++stages) {
    for (int32_t micro_batches = 1; micro_batches <= 16; ++micro_batches) {
      for (int32_t chunks = 1; chunks <= 3; ++chunks) {
        for (const ScheduleKind kind :
             {ScheduleKind::kFThenB, ScheduleKind::k1F1B, ScheduleKind::kInterleaved}) {
          const JobSchedule schedule{kind, stages, chunks, micro_batches};
          if (!CheckSchedule(schedule).ok()) continue;
          SCOPED_TRACE(absl::StrCat(Name(kind), " of ", stages, " stages, ", chunks, " chunks, ",
                                    micro_batches, " micro-batches"));
          visit(schedule);
        }
      }
    }
  }
}

// The lists that Paddle's passes make.
TEST(JobScheduleTest, OrdersAreThoseOfPaddle) {
  EXPECT_EQ(Text({ScheduleKind::kFThenB, 2, 1, 3}, 1), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(Text({ScheduleKind::k1F1B, 2, 1, 4}, 0), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(Text({ScheduleKind::k1F1B, 2, 1, 4}, 1), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(Text({ScheduleKind::kInterleaved, 2, 2, 4}, 0),
            "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(Text({ScheduleKind::kInterleaved, 2, 2, 4}, 1),
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
}

TEST(JobScheduleTest, OneStageEndsAMicroBatchBeforeTheNext) {
  EXPECT_EQ(Text({ScheduleKind::k1F1B, 1, 1, 3}, 0), "F0 B0 F1 B1 F2 B2");
}

TEST(JobScheduleTest, EachStageDoesEachJobOnceAndMicroBatchesInOrder) {
  ForEachSchedule([](const JobSchedule& schedule) {
    for (const std::vector<Job>& jobs : Lists(schedule)) {
      EXPECT_EQ(std::ssize(jobs), 2 * schedule.chunks * schedule.micro_batches);
      std::set<std::string> names;
      std::vector<int32_t> next(2 * static_cast<size_t>(schedule.chunks), 0);
      for (const Job& job : jobs) {
        names.insert(NameOf(schedule, job));
        const size_t of = 2 * static_cast<size_t>(job.chunk) + (job.kind == JobKind::kForward);
        EXPECT_EQ(job.micro_batch, next[of]++);
      }
      EXPECT_EQ(names.size(), jobs.size());
    }
  });
}

TEST(JobScheduleTest, TheBubbleIsThatOfTheFormula) {
  ForEachSchedule([](const JobSchedule& schedule) {
    for (const JobCosts& costs : {JobCosts{1, 1}, JobCosts{1, 2}, JobCosts{3, 5}}) {
      EXPECT_NEAR(SimulatedBubble(schedule, costs), BubbleByFormula(schedule), 1e-9);
    }
  });
}

TEST(JobScheduleTest, OneForwardOneBackwardKeepsFewerMicroBatches) {
  ForEachSchedule([](const JobSchedule& schedule) {
    for (int32_t s = 0; s < schedule.stages; ++s) {
      const int32_t most = MostInFlight(JobsOfStage(schedule, s));
      if (schedule.kind == ScheduleKind::kInterleaved) continue;
      const bool all = schedule.kind == ScheduleKind::kFThenB;
      EXPECT_EQ(most, std::min(all ? schedule.micro_batches : schedule.stages - s,
                               schedule.micro_batches));
    }
  });
}

TEST(JobScheduleTest, WhatAJobNeedsStartsBeforeIt) {
  ForEachSchedule([](const JobSchedule& schedule) {
    const auto jobs = OrderJobs(Lists(schedule), schedule);
    ASSERT_THAT(jobs, IsOk());
    std::set<std::string> done;
    const auto key = [](JobKind kind, int32_t segment, int32_t micro_batch) {
      return absl::StrCat(static_cast<int>(kind), ":", segment, ":", micro_batch);
    };
    for (const TimedJob& timed : *jobs) {
      const Job& job = timed.job;
      const int32_t segment = SegmentOf(schedule, job);
      const bool forward = job.kind == JobKind::kForward;
      if (forward && segment > 0) {
        EXPECT_TRUE(done.contains(key(job.kind, segment - 1, job.micro_batch)));
      }
      if (!forward) {
        EXPECT_TRUE(done.contains(key(JobKind::kForward, segment, job.micro_batch)));
        EXPECT_TRUE(segment + 1 == schedule.segments() ||
                    done.contains(key(job.kind, segment + 1, job.micro_batch)));
      }
      done.insert(key(job.kind, segment, job.micro_batch));
    }
  });
}

TEST(JobScheduleTest, ListsThatWaitForEachOtherAreFound) {
  const JobSchedule schedule{ScheduleKind::k1F1B, 2, 1, 1};
  std::vector<std::vector<Job>> lists = Lists(schedule);
  std::swap(lists[0][0], lists[0][1]);
  EXPECT_THAT(OrderJobs(lists, schedule),
              FailsWith(StatusCode::kInternal, "with 4 jobs left each waits for another"));
}

TEST(JobScheduleTest, NumbersThatMakeNoScheduleAreRefused) {
  const auto fails = [](const std::string& part) {
    return FailsWith(StatusCode::kInvalidArgument, part);
  };
  EXPECT_THAT(CheckSchedule({ScheduleKind::k1F1B, 2, 1, 0}), fails("a step has 0 micro-batches"));
  EXPECT_THAT(CheckSchedule({ScheduleKind::k1F1B, 0, 1, 1}), fails("has 0 stages"));
  EXPECT_THAT(CheckSchedule({ScheduleKind::k1F1B, 2000, 2000, 1}), fails("expected 1 to 1024"));
  EXPECT_THAT(CheckSchedule({ScheduleKind::k1F1B, 2, 2, 4}),
              fails("schedule 1f1b: a stage has 2 chunks, expected 1"));
  EXPECT_THAT(CheckSchedule({ScheduleKind::kInterleaved, 2, 1, 4}), fails("expected 2 or more"));
  EXPECT_THAT(CheckSchedule({ScheduleKind::kInterleaved, 4, 2, 6}),
              fails("6 micro-batches are no multiple of 4 stages"));
  EXPECT_THAT(ScheduleFromName("2f2b"), fails("expected fthenb, 1f1b or interleaved"));
  EXPECT_EQ(*ScheduleFromName("interleaved"), ScheduleKind::kInterleaved);
}

}  // namespace
}  // namespace interp
