// Stress: random programs give the same bits under every scheduler, with any number of workers, in
// any combination of options, as the reference gives op by op.
#include "interpreter/scheduler.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/device/device_heap.h"
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
  bool wait_for_devices = true;
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

// What runs a program on devices: every scheduler, every way to free, with threads and without.
std::vector<Variant> DeviceVariants(uint64_t seed) {
  std::vector<Variant> variants;
  const auto add = [&](const std::string& name, SchedulerKind kind, Place place) -> CoreOptions& {
    CoreOptions options{.scheduler = kind, .num_workers = 2, .num_threads = 1};
    options.ops = &ProbeOps();
    options.plan.place = place;
    options.schedule_seed = seed;
    options.sim = {
        .capacity_bytes = 1 << 24, .seed = seed, .execution = SimOptions::Execution::kInterleaved};
    variants.push_back({name, std::move(options), variants.size() % 2 == 0});
    return variants.back().options;
  };
  const Place sim{PlaceKind::kSim, 0};
  add("trace", SchedulerKind::kTrace, sim);
  add("trace on two devices", SchedulerKind::kTrace, {PlaceKind::kSim, 1});
  add("from the host", SchedulerKind::kTrace, {});
  add("serial, event gc", SchedulerKind::kSerial, sim).gc.policy = GcPolicy::kEvent;
  add("shuffle", SchedulerKind::kShuffle, sim);
  add("shuffle, late gc", SchedulerKind::kShuffle, sim).gc.threshold_bytes = 512;
  add("shuffle without gc", SchedulerKind::kShuffle, sim).plan.garbage_collection = false;
  add("shuffle, one stream", SchedulerKind::kShuffle, sim).plan.single_stream = true;
  add("async", SchedulerKind::kAsync, sim);
  CoreOptions& threads = add("async, threads", SchedulerKind::kAsync, sim);
  threads.sim.execution = SimOptions::Execution::kThreads;
  threads.gc = {.policy = GcPolicy::kEvent, .threshold_bytes = 256};
  CoreOptions& no_inplace = add("without inplace", SchedulerKind::kShuffle, sim);
  no_inplace.passes.disable = {"inplace"};
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
    const auto fetched = (*core)->Run(RandomFeeds(seed, options, kRows[run]),
                                      {.wait_for_devices = variant.wait_for_devices});
    ASSERT_THAT(fetched, IsOk());
    ASSERT_TRUE(SameBits(*fetched, expected.fetches[run])) << "run " << run << "\n" << Dump(**core);
  }
  ASSERT_THAT((*core)->Synchronize(), IsOk());
  for (size_t i = 0; i < graph.params.size(); ++i) {
    Tensor param = scope->Find(graph.params[i])->tensor;
    if (!param.place().on_host()) {
      const auto copied = CopyToHost(param, SystemAllocator());
      ASSERT_THAT(copied, IsOk());
      param = *copied;
    }
    ASSERT_TRUE(SameBits(param, expected.params[i])) << graph.params[i] << "\n" << Dump(**core);
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

TEST(SchedulerStressTest, DevicesAgreeWithTheReference) {
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    RandomGraphOptions options;
    options.num_ops = 5 + static_cast<int>(seed * 7 % 60);
    options.num_devices = 1 + static_cast<int>(seed % 2);
    const RandomGraph graph = MakeRandomGraph(seed, options);
    const auto expected = RunReference(seed, graph, options);
    ASSERT_THAT(expected, IsOk()) << "seed " << seed << "\n" << ToText(graph.program);
    for (const Variant& variant : DeviceVariants(seed)) {
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
