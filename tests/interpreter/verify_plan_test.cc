#include "interpreter/verify_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_print.h"
#include "passes/pipeline.h"
#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"
#include "tests/testing/random_graph.h"

namespace interp::testing {
namespace {

const PlanOptions kVariants[] = {
    {},
    {.sequential = true},
    {.garbage_collection = false},
    {.place = {PlaceKind::kSim, 0}},
    {.place = {PlaceKind::kSim, 0}, .single_stream = true},
    {.garbage_collection = false, .place = {PlaceKind::kSim, 0}},
};

TEST(VerifyPlanTest, PlansOfRandomProgramsAreProved) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    RandomGraph graph = MakeRandomGraph(seed, {.num_ops = static_cast<int>(10 + seed % 70)});
    const absl::StatusOr<PipelineResult> passed =
        RunPipeline(std::move(graph.program), {.ops = ProbeOps()});
    ASSERT_THAT(passed, IsOk());
    for (const PlanOptions& options : kVariants) {
      const absl::StatusOr<Plan> plan = BuildPlan(passed->program, options, ProbeOps());
      ASSERT_THAT(plan, IsOk()) << "seed " << seed << "\n" << ToText(passed->program);
      const VerifyReport report = VerifyPlan(*plan);
      ASSERT_TRUE(report.proved()) << "seed " << seed << "\n"
                                   << ToText(*plan, report) << ToText(passed->program);
    }
  }
}

}  // namespace
}  // namespace interp::testing
