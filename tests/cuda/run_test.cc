// Whole runs on a GPU: programs with blocks under every scheduler.
#include <gmock/gmock.h>
#include <gpu_machine.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "tests/testing/golden_run.h"
#include "tests/testing/matchers.h"

namespace interp::cuda_test {
namespace {

using testing::IsOk;

struct Way {
  std::string name;
  SchedulerKind scheduler = SchedulerKind::kTrace;
  int workers = 1;
  SimOptions::Execution execution = SimOptions::Execution::kInterleaved;
  bool graphs = false;
};

class CudaBlocks : public ::testing::TestWithParam<Way> {};

// Random programs with loops, branches and arrays nested three deep; what they compute is Paddle's.
TEST_P(CudaBlocks, GiveWhatPaddleGives) {
  const Way& way = GetParam();
  const auto machine =
      Machine::Start({.seed = 7, .execution = way.execution, .max_delay_ns = 2'000});
  ASSERT_THAT(machine, IsOk());
  int num_cases = 0;
  for (const auto& [type, folders] : testing::GoldenCasesByOp()) {
    for (const std::string& folder : folders) {
      if (!absl::StrContains(folder, "/control_flow/") || ++num_cases % 4 != 0) continue;
      SCOPED_TRACE(folder);
      const auto golden = testing::ReadGoldenCase(folder);
      ASSERT_THAT(golden, IsOk());
      CoreOptions options;
      options.plan.place = {PlaceKind::kCuda, 0};
      options.scheduler = way.scheduler;
      options.num_workers = way.workers;
      options.cuda_graphs = way.graphs;
      const auto core = testing::MakeGoldenCore(*golden, options);
      ASSERT_THAT(core, IsOk());
      for (int run = 0; run < (way.graphs ? 4 : 2); ++run) {
        EXPECT_THAT(testing::RunGolden(**core, *golden), ::testing::IsEmpty());
      }
    }
  }
  EXPECT_GT(num_cases, 40);
  EXPECT_THAT((*machine)->TakeFindings(), ::testing::IsEmpty());
}
INSTANTIATE_TEST_SUITE_P(Ways, CudaBlocks,
                         ::testing::Values(Way{.name = "Trace"},
                                           Way{.name = "Graphs", .graphs = true},
                                           Way{.name = "Async",
                                               .scheduler = SchedulerKind::kAsync,
                                               .workers = 3,
                                               .execution = SimOptions::Execution::kThreads},
                                           Way{.name = "Engine",
                                               .scheduler = SchedulerKind::kEngine,
                                               .workers = 2,
                                               .execution = SimOptions::Execution::kThreads}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace interp::cuda_test
