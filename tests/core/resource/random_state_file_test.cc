#include "core/resource/random_state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/testing/matchers.h"
#include "tests/testing/temp_folder.h"

namespace interp {
namespace {

using testing::FailsWith;
using testing::IsOk;

class RandomStateFileTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "state"; }
  void Write(const std::string& text) const { std::ofstream(path()) << text; }

 private:
  testing::TempFolder folder_;
};

TEST_F(RandomStateFileTest, GivesBackWhatWasWritten) {
  const RandomState state = {.seed = UINT64_MAX, .stream = 3, .step = uint64_t{1} << 40};
  ASSERT_THAT(WriteRandomState(path(), state), IsOk());
  const absl::StatusOr<RandomState> read = ReadRandomState(path());
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, state);
}

TEST_F(RandomStateFileTest, ReplacesAnOlderState) {
  ASSERT_THAT(WriteRandomState(path(), {.step = 1}), IsOk());
  ASSERT_THAT(WriteRandomState(path(), {.step = 2}), IsOk());
  EXPECT_EQ(ReadRandomState(path())->step, 2u);
}

TEST_F(RandomStateFileTest, RefusesOtherFiles) {
  EXPECT_THAT(ReadRandomState(path()), FailsWith(absl::StatusCode::kNotFound, path()));
  const std::string head = "interp random state 1\n";
  for (const std::string& text :
       {std::string(), head, head + "seed 1\nstream 2\n", head + "seed x\nstream 2\nstep 3\n",
        head + "seed 1\nstream 2\nstep -3\n", head + "seed 1\nstream 2\nstep 3\nmore 4\n",
        head + "stream 1\nseed 2\nstep 3\n", head + "seed 99999999999999999999\nstream 2\nstep 3\n",
        std::string("interp random state 2\nseed 1\nstream 2\nstep 3\n")}) {
    Write(text);
    EXPECT_THAT(ReadRandomState(path()), FailsWith(absl::StatusCode::kDataLoss, "seed N")) << text;
  }
}

}  // namespace
}  // namespace interp
