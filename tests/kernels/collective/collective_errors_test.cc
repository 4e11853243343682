// What collective ops refuse, and what their failures do to other ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "interpreter/interpreter_core.h"
#include "tests/testing/rank_team.h"
#include "tests/testing/test_program.h"

namespace interp {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::OnAllRanks;
using testing::TestProgram;

// Of x over all ranks.
absl::StatusOr<std::unique_ptr<InterpreterCore>> SumOf(const std::shared_ptr<Rings>& rings) {
  CoreOptions options;
  options.rings = rings;
  return InterpreterCore::Create(
      TestProgram().Feed("x", {2}).Call("c_allreduce_sum", {"x"}, "y").Fetch("y").Build(), {}, {},
      nullptr, options);
}

TEST(CollectiveErrors, HostileAttributesAreRefused) {
  const auto message = [](const Program& program) {
    return std::string(InterpreterCore::Create(program, {}, {}, nullptr).status().message());
  };
  EXPECT_THAT(message(TestProgram()
                          .Declare("y", {2})
                          .AddOp("recv_v2", {}, {{"Out", {"y"}}},
                                 {{"out_shape", std::vector<int32_t>(kMaxRank + 1, 1)}})
                          .Fetch("y")
                          .Build()),
              HasSubstr("'out_shape' has 10 dims, expected at most 9"));
  EXPECT_THAT(message(TestProgram()
                          .Feed("w", {2, 2})
                          .Feed("ids", {1}, DType::kInt64)
                          .AddOp("c_embedding", {{"W", {"w"}}, {"Ids", {"ids"}}}, {{"Out", {"y"}}},
                                 {{"start_index", std::numeric_limits<int64_t>::min()}})
                          .Declare("y", {1, 2})
                          .Fetch("y")
                          .Build()),
              HasSubstr("'start_index' is -9223372036854775808"));
}

TEST(CollectiveErrors, BucketsOfNothingAreRefused) {
  for (const bool waits : {false, true}) {
    const Program program =
        TestProgram()
            .Feed("x", {2})
            .Feed("w", {1}, waits ? DType::kFloat32 : DType::kFloat64)
            .Declare("y", {-1})
            .AddOp(waits ? "c_bucket_wait" : "c_bucket_allreduce",
                   {{"X", {"x", "@EMPTY@"}}, {waits ? "Bucket" : "Weight", {"w"}}},
                   {{waits ? "Out" : "Bucket", {"y"}}})
            .Fetch("y")
            .Build();
    const auto core = InterpreterCore::Create(program, {}, {}, nullptr);
    ASSERT_TRUE(core.ok()) << core.status();
    const Tensor weight = waits ? Tensor::Of<float>({1}, {1}) : Tensor::Of<double>({1}, {1});
    EXPECT_THAT(
        std::string((*core)->Run({Tensor::Of<float>({2}, {1, 2}), weight}).status().message()),
        HasSubstr("'X' argument 1 is @EMPTY@"));
  }
}

// Clones that run at once could meet each other's collectives.
TEST(CollectiveErrors, ClonesOfSeveralRanksDoNotRun) {
  const auto statuses = OnAllRanks({.size = 2}, {}, [&](const auto& rings, ThreadRanks&) {
    INTERP_ASSIGN_OR_RETURN(const auto core, SumOf(rings));
    EXPECT_THAT(
        std::string(core->Clone()->Run({Tensor::Of<float>({2}, {1, 2})}).status().message()),
        HasSubstr("a clone of a core of 2 ranks"));
    return absl::OkStatus();
  });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

// A rank whose run fails before a collective ends the others, and itself for good.
TEST(CollectiveErrors, FailedRunEndsAllRanks) {
  const auto failed = OnAllRanks({.size = 2}, {}, [&](const auto& rings, ThreadRanks&) {
    INTERP_ASSIGN_OR_RETURN(const auto core, SumOf(rings));
    const Tensor whole = Tensor::Of<float>({2}, {1, 2});
    if (rings->rank() == 1) {
      EXPECT_FALSE(core->Run({Tensor::Of<double>({2}, {1, 2})}).ok());
    }
    return core->Run({whole}).status();
  });
  for (const absl::Status& status : failed) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
}

}  // namespace
}  // namespace interp
