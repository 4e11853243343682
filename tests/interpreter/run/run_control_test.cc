#include "interpreter/run/run_control.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace interp {
namespace {

using absl::StatusCode;
using testing::FailsWith;
using testing::IsOk;
using Clock = RunControl::Clock;

TEST(RunControlTest, KeepsTheFirstError) {
  RunControl control;
  control.Begin(std::nullopt);
  EXPECT_FALSE(control.ShouldStop());
  control.Fail(absl::InternalError("first"));
  control.Fail(absl::InternalError("second"));
  EXPECT_TRUE(control.ShouldStop());
  EXPECT_THAT(control.Finish(), FailsWith(StatusCode::kInternal, "first"));
}

TEST(RunControlTest, ErrorsBetweenRunsAreIgnored) {
  RunControl control;
  control.Fail(absl::CancelledError("too early"));
  control.Begin(std::nullopt);
  EXPECT_FALSE(control.ShouldStop());
  EXPECT_THAT(control.Finish(), IsOk());
  control.Fail(absl::CancelledError("too late"));
  control.Begin(std::nullopt);
  EXPECT_FALSE(control.ShouldStop());
  EXPECT_THAT(control.Finish(), IsOk());
}

// Whoever cancels a run from another thread cannot know whether it has begun.
TEST(RunControlTest, CancelBetweenRunsIsForTheNextOne) {
  RunControl control;
  control.Cancel();
  control.Begin(std::nullopt);
  EXPECT_TRUE(control.ShouldStop());
  EXPECT_THAT(control.Finish(), FailsWith(StatusCode::kCancelled, "cancelled"));
  control.Begin(std::nullopt);
  control.Cancel();
  EXPECT_THAT(control.Finish(), FailsWith(StatusCode::kCancelled, "cancelled"));
  control.Begin(std::nullopt);
  EXPECT_FALSE(control.ShouldStop());
  EXPECT_THAT(control.Finish(), IsOk());
}

TEST(RunControlTest, WhatRunsAtTheDeadlineTellsMore) {
  RunControl control;
  control.Begin(Clock::now() - std::chrono::seconds(1));
  EXPECT_TRUE(control.ShouldStop());
  control.Fail(absl::DeadlineExceededError("op #3"));
  EXPECT_THAT(control.Finish(), FailsWith(StatusCode::kDeadlineExceeded, "op #3"));
}

TEST(RunControlTest, AnActivationThatTheDeadlineEndsSaysSo) {
  RunControl run;
  RunControl activation(&run);
  run.Begin(Clock::now() - std::chrono::seconds(1));
  EXPECT_THAT(activation.FinishActivation(), FailsWith(StatusCode::kDeadlineExceeded, "time-out"));
  run.Begin(std::nullopt);
  EXPECT_THAT(activation.FinishActivation(), IsOk());
  run.Cancel();
  EXPECT_THAT(activation.FinishActivation(), FailsWith(StatusCode::kCancelled, "to stop"));
}

TEST(RunControlTest, ADeadlineStopsTheRun) {
  RunControl control;
  control.Begin(Clock::now() - std::chrono::seconds(1));
  EXPECT_TRUE(control.Expired());
  EXPECT_TRUE(control.ShouldStop());
  EXPECT_THAT(control.Finish(), FailsWith(StatusCode::kDeadlineExceeded, "time-out"));
  control.Begin(Clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(control.Expired());
  EXPECT_FALSE(control.ShouldStop());
  EXPECT_THAT(control.Finish(), IsOk());
}

}  // namespace
}  // namespace interp
