#include "tools/train_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/io/file.h"
#include "tests/testing/temp_folder.h"

namespace interp::train_log_test {
namespace {

using testing::TempFolder;

// What a run of fetches `names` that goes on after step `after` keeps of a log.
std::string Kept(const std::string& text, const std::vector<std::string>& names, int64_t after) {
  const TempFolder folder;
  std::ofstream(folder / "log.csv") << text;
  const absl::StatusOr<TrainLog> log = TrainLog::Create(folder / "log.csv", names, after);
  EXPECT_TRUE(log.ok()) << log.status();
  return *ReadFile(folder / "log.csv");
}

TEST(TrainLogTest, KeepsTheLinesOfTheStepsBefore) {
  EXPECT_EQ(Kept("step,loss\n1,0.5\n2,0.25\n3,0.125\n", {"loss"}, 2), "step,loss\n1,0.5\n2,0.25\n");
  EXPECT_EQ(Kept("step,\"a,b\",c\n1,0.5,7\n", {"a,b", "c"}, 1), "step,\"a,b\",c\n1,0.5,7\n");
}

// A power loss cuts "120,0.5" off anywhere.
TEST(TrainLogTest, DropsALineThatIsCutOff) {
  for (const char* last : {"1", "12", "120", "120,", "120,0.", "120,0.5"}) {
    EXPECT_EQ(Kept(std::string("step,loss\n119,1\n") + last, {"loss"}, 120), "step,loss\n119,1\n")
        << last;
  }
}

TEST(TrainLogTest, DropsLinesOfOtherColumns) {
  EXPECT_EQ(Kept("step,loss\n1,0.5\n2\n3,1,2\n\n4,2\n", {"loss"}, 9), "step,loss\n1,0.5\n4,2\n");
}

TEST(TrainLogTest, KeepsTheHeaderAlone) {
  EXPECT_EQ(Kept("step,loss\n", {"loss"}, 5), "step,loss\n");
}

}  // namespace
}  // namespace interp::train_log_test
