#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/testing/matchers.h"
#include "tools/ranks.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLaunchers[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                      "SLURM_LOCALID"};

// Without what a launcher of the test may have set.
class PlaceOfRankTest : public ::testing::Test {
 protected:
  void SetUp() override { Forget(); }
  void TearDown() override { Forget(); }

 private:
  static void Forget() {
    for (const char* const variable : kLaunchers) unsetenv(variable);
  }
};

TEST_F(PlaceOfRankTest, IsTheGpuOfItsNumberOnItsMachine) {
  for (const char* const variable : kLaunchers) {
    setenv(variable, "3", /*overwrite=*/1);
    EXPECT_EQ(*PlaceOfRank("cuda", /*rank=*/11), "cuda:3") << variable;
    unsetenv(variable);
  }
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", /*overwrite=*/1);
  EXPECT_EQ(*PlaceOfRank("cuda", /*rank=*/8), "cuda:0");
}

TEST_F(PlaceOfRankTest, IsToBeNamedWhereNoLauncherTells) {
  EXPECT_THAT(PlaceOfRank("cuda", 1).status().ToString(), HasSubstr("expected cuda:N"));
  EXPECT_EQ(*PlaceOfRank("cuda:{rank}", 1), "cuda:1");
}

TEST_F(PlaceOfRankTest, IsWhatItIsOtherwise) {
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3", /*overwrite=*/1);
  for (const char* const place : {"cpu", "cuda:2", "sim"}) EXPECT_EQ(*PlaceOfRank(place, 1), place);
}

}  // namespace
}  // namespace interp::testing
