// Stress: random programs give the same bits under every scheduler, with any number of workers, in
// any combination of options, as the reference gives op by op.
#include "interpreter/scheduler.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/program_print.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/plan_print.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/reference.h"

namespace interp::testing {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kGraphs = 60;
#else
constexpr int kGraphs = 400;
#endif

// Rows of the feeds in consecutive runs: the same, other, the first again.
constexpr int64_t kRows[] = {2, 2, 5, 2, 0};

struct Expected {
  std::vector<std::vector<Tensor>> fetches;  // by run
  std::vector<Tensor> params;                // after the last
};

absl::StatusOr<Expected> RunReference(uint64_t seed, const RandomGraph& graph,
                                      const RandomGraphOptions& options) {
  Reference reference(ProbeOps());
  for (size_t i = 0; i < graph.params.size(); ++i) {
    reference.Parameter(graph.params[i]) = RandomParameter(seed, static_cast<int>(i));
  }
  Expected expected;
  for (const int64_t rows : kRows) {
    INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> fetched,
                            reference.Run(graph.program, RandomFeeds(seed, options, rows)));
    expected.fetches.push_back(std::move(fetched));
  }
  for (const std::string& name : graph.params) {
    expected.params.push_back(reference.Parameter(name));
  }
  return expected;
}

struct Variant {
  std::string name;
  CoreOptions options;
};

std::vector<Variant> Variants() {
  std::vector<Variant> variants;
  const auto add = [&](const std::string& name, SchedulerKind kind, int workers) -> CoreOptions& {
    CoreOptions options{.scheduler = kind, .num_workers = workers, .num_threads = 1};
    options.ops = &ProbeOps();
    variants.push_back({name, std::move(options)});
    return variants.back().options;
  };
  for (const SchedulerKind kind : {SchedulerKind::kTrace, SchedulerKind::kSerial}) {
    const std::string name(Name(kind));
    add(name, kind, 1);
    add(name + " without gc", kind, 1).plan.garbage_collection = false;
  }
  for (const int workers : {1, 2, 8}) {
    add(absl::StrCat("async ", workers), SchedulerKind::kAsync, workers);
  }
  add("async without gc", SchedulerKind::kAsync, 4).plan.garbage_collection = false;
  add("async sequential", SchedulerKind::kAsync, 4).plan.sequential = true;
  add("async plain", SchedulerKind::kAsync, 4).plan.optimize_layout = false;
  CoreOptions& no_inplace = add("async without inplace", SchedulerKind::kAsync, 4);
  for (const Pass& pass : AllPasses()) {
    if (pass.name == "inplace") no_inplace.passes.disable = {"inplace"};
  }
  return variants;
}

std::string Dump(const InterpreterCore& core) {
  return absl::StrCat(ToText(core.program()),
                      PrintPlan(core.plan(), PlanStage::kDeps, PlanFormat::kText),
                      PrintPlan(core.plan(), PlanStage::kPlan, PlanFormat::kText));
}

void CheckVariant(const Variant& variant, uint64_t seed, const RandomGraph& graph,
                  const RandomGraphOptions& options, const Expected& expected) {
  SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", variant.name));
  const std::shared_ptr<Scope> scope = RandomScope(seed, graph);
  const auto core = InterpreterCore::Create(graph.program, {}, {}, scope, variant.options);
  ASSERT_THAT(core, IsOk());
  for (size_t run = 0; run < std::size(kRows); ++run) {
    const auto fetched = (*core)->Run(RandomFeeds(seed, options, kRows[run]));
    ASSERT_THAT(fetched, IsOk());
    ASSERT_TRUE(SameBits(*fetched, expected.fetches[run])) << "run " << run << "\n" << Dump(**core);
  }
  for (size_t i = 0; i < graph.params.size(); ++i) {
    ASSERT_TRUE(SameBits(scope->Find(graph.params[i])->tensor, expected.params[i]))
        << graph.params[i] << "\n"
        << Dump(**core);
  }
}

TEST(SchedulerStressTest, AllVariantsAgreeWithTheReference) {
  const std::vector<Variant> variants = Variants();
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    RandomGraphOptions options;
    options.num_ops = 5 + static_cast<int>(seed * 7 % 90);
    const RandomGraph graph = MakeRandomGraph(seed, options);
    const auto expected = RunReference(seed, graph, options);
    ASSERT_THAT(expected, IsOk()) << "seed " << seed << "\n" << ToText(graph.program);
    for (const Variant& variant : variants) {
      CheckVariant(variant, seed, graph, options, *expected);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Clones share plan and parameters; each has its own variables.
TEST(SchedulerStressTest, ClonesRunSideBySide) {
  for (uint64_t seed = 1; seed <= kGraphs / 10; ++seed) {
    RandomGraphOptions options;
    options.updates = false;  // clones would race for the parameters
    const RandomGraph graph = MakeRandomGraph(seed, options);
    const auto expected = RunReference(seed, graph, options);
    ASSERT_THAT(expected, IsOk());
    CoreOptions core_options{.scheduler = SchedulerKind::kAsync, .num_workers = 2};
    core_options.ops = &ProbeOps();
    const auto core =
        InterpreterCore::Create(graph.program, {}, {}, RandomScope(seed, graph), core_options);
    ASSERT_THAT(core, IsOk());
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        const std::unique_ptr<InterpreterCore> clone = (*core)->Clone();
        for (size_t run = 0; run < std::size(kRows); ++run) {
          const auto fetched = clone->Run(RandomFeeds(seed, options, kRows[run]));
          ASSERT_THAT(fetched, IsOk());
          ASSERT_TRUE(SameBits(*fetched, expected->fetches[run]));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace interp::testing
