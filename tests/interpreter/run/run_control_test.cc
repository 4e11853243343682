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

TEST(RunControlTest, ADeadlineStopsTheRun) {
  RunControl control;
  control.Begin(Clock::now() - std::chrono::seconds(1));
  EXPECT_TRUE(control.ShouldStop());
  EXPECT_THAT(control.Finish(), FailsWith(StatusCode::kDeadlineExceeded, "time-out"));
  control.Begin(Clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(control.ShouldStop());
  EXPECT_THAT(control.Finish(), IsOk());
}

}  // namespace
}  // namespace interp
