#include "core/engine/device_failures.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace interp::engine {
namespace {

class DeviceFailuresTest : public ::testing::Test {
 protected:
  DeviceFailuresTest() {
    failures_.AddStream();
    failures_.AddStream();
  }
  void Fail(const Work& work) { work.errors->Report(work.tag, absl::InternalError("broken")); }
  std::string NameOfError(Issue issue) {
    const ErrorRef error = failures_.ErrorOf([issue](const DeviceFailures::Failure& failure) {
      return failure.first <= issue && issue <= failure.last;
    });
    return error ? error->operation : "";
  }

  DeviceFailures failures_{[](absl::Status status, const char* name, uint64_t number) {
    return ErrorRef::Make(std::move(status), nullptr, name, number);
  }};
};

TEST_F(DeviceFailuresTest, SpoilWhatWasIssuedUntilTheyWereNoticed) {
  const Issue before = failures_.Begin("before", 1);
  const Issue failing = failures_.Begin("failing", 2);
  const Work work = failures_.WorkOf(0, failing);
  const Issue behind = failures_.Begin("behind", 3);
  Fail(work);
  EXPECT_EQ(NameOfError(failing), "");
  failures_.Notice();
  const Issue later = failures_.Begin("later", 4);
  failures_.Notice();
  EXPECT_EQ(NameOfError(before), "");
  EXPECT_EQ(NameOfError(failing), "failing");
  EXPECT_EQ(NameOfError(behind), "failing");
  EXPECT_EQ(NameOfError(later), "");
  // What is issued from now on is not skipped.
  EXPECT_FALSE(failures_.WorkOf(0, later).errors->any());
  EXPECT_NE(failures_.WorkOf(0, later).errors, failures_.WorkOf(1, later).errors);
}

TEST_F(DeviceFailuresTest, TheLastOfSeveralCounts) {
  const Issue first = failures_.Begin("first", 1);
  const Issue second = failures_.Begin("second", 2);
  const Issue third = failures_.Begin("third", 3);
  Fail(failures_.WorkOf(0, first));
  Fail(failures_.WorkOf(1, second));
  failures_.Notice();
  EXPECT_EQ(NameOfError(first), "first");
  EXPECT_EQ(NameOfError(second), "second");
  EXPECT_EQ(NameOfError(third), "second");
}

// Names are kept for a while only; the error is kept nevertheless.
TEST_F(DeviceFailuresTest, LongAfterTheNameIsForgotten) {
  const Issue failing = failures_.Begin("failing", 1);
  const Work work = failures_.WorkOf(0, failing);
  Issue last = 0;
  for (int i = 0; i < 10'000; ++i) last = failures_.Begin("other", 2);
  Fail(work);
  failures_.Notice();
  EXPECT_EQ(NameOfError(failing), "of a device");
  EXPECT_EQ(NameOfError(last), "of a device");
}

TEST_F(DeviceFailuresTest, AreForgottenWhenNothingInFlightIsConcerned) {
  const Issue early = failures_.Begin("early", 1);
  for (int i = 0; i < 1000; ++i) {
    const Issue failing = failures_.Begin("failing", 2);
    Fail(failures_.WorkOf(i % 2, failing));
    EXPECT_EQ(failures_.Notice().size(), 1);
    EXPECT_EQ(NameOfError(failing), "failing");
    failures_.End(failing);
    // What is in flight still may use the sinks.
    failures_.ForgetSinks(failures_.LastEnded());
    EXPECT_GE(failures_.num_kept(), i + 1);
  }
  EXPECT_EQ(NameOfError(early), "");
  failures_.End(early);
  failures_.ForgetSinks(failures_.LastEnded());
  EXPECT_EQ(failures_.num_kept(), 0);
}

}  // namespace
}  // namespace interp::engine
