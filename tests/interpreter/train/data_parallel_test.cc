#include "interpreter/train/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/rank_team.h"

namespace interp::testing::data_parallel_test {
namespace {

// The first values, and a checkpoint, are those of the launcher's rank 0.
TEST(DataParallel, RefusesARingInAnotherOrder) {
  const auto statuses =
      OnAllRanks({.size = 3}, {}, [](const std::shared_ptr<Rings>& rings, ThreadRanks&) {
        INTERP_RETURN_IF_ERROR(rings->Add(0, {0, 2, 1}));
        Program program;
        program.blocks.emplace_back();
        return DataParallel::Create(program, {}, rings, {.ring_id = 0}).status();
      });
  // All of them: one that went on would wait for the others.
  EXPECT_THAT(statuses, ::testing::Each(FailsWith(absl::StatusCode::kInvalidArgument,
                                                  "ring 0 (--ring 0=...) has the ranks in another "
                                                  "order than the launcher")));
}

}  // namespace
}  // namespace interp::testing::data_parallel_test
