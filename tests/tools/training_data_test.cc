#include "tools/training_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_folder.h"

namespace interp::training_data_test {
namespace {

using testing::FailsWith;
using testing::IsOk;
using testing::TempFolder;

constexpr size_t kMaxBytes = size_t{1} << 30;

const std::vector<FeedSpec>& Feeds() {
  static const auto* feeds = new std::vector<FeedSpec>{
      {.name = "x", .dtype = DType::kFloat32, .shape = {-1, 1}, .check_shape = true}};
  return *feeds;
}

TEST(TrainingDataTest, NoArrayComesTwice) {
  const TempFolder folder;
  std::ofstream(folder / "a.csv") << "x,y\n1,2\n";
  std::ofstream(folder / "b.csv") << "z,y\n1,2\n";
  EXPECT_THAT(ReadTrainingData({folder / "a.csv", folder / "b.csv"}, Feeds(), kMaxBytes),
              FailsWith(absl::StatusCode::kInvalidArgument, "b.csv: gives 'y' a second time"));
}

TEST(TrainingDataTest, AnIntegerThatIsNotExactIsNamed) {
  const TempFolder folder;
  const std::vector<FeedSpec> feeds = {
      {.name = "id", .dtype = DType::kInt64, .shape = {-1, 1}, .check_shape = true}};
  std::ofstream(folder / "ids.csv") << "x,id\n0.5,9007199254740993\n1,7\n";
  const auto exact = ReadTrainingData({folder / "ids.csv"}, feeds, kMaxBytes);
  ASSERT_THAT(exact, IsOk());
  EXPECT_EQ(exact->arrays[0].second.data<int64_t>()[0], 9007199254740993);
  std::ofstream(folder / "ids.csv") << "x,id\n0.5,7\n1,9007199254740993.0\n";
  EXPECT_THAT(ReadTrainingData({folder / "ids.csv"}, feeds, kMaxBytes),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "ids.csv: line 3, column 2: '9007199254740993.0' is no int64"));
}

// Were each column compared with all before it, these would take minutes.
TEST(TrainingDataTest, ManyColumnsTakeLittleTime) {
  constexpr int kColumns = 200'000;
  const TempFolder folder;
  std::string names = "x";
  std::string numbers = "1";
  for (int i = 1; i < kColumns; ++i) {
    absl::StrAppend(&names, ",column_", i);
    numbers += ",1";
  }
  std::ofstream(folder / "wide.csv") << names << "\n" << numbers << "\n";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(ReadTrainingData({folder / "wide.csv"}, Feeds(), kMaxBytes), IsOk());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(40));
}

}  // namespace
}  // namespace interp::training_data_test
