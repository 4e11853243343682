#include "tests/testing/differential.h"

#include <gtest/gtest.h>

#include "core/device/device_heap.h"
#include "core/program_print.h"
#include "interpreter/inspect/plan_print.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/reference.h"
#include "tests/testing/shrink_graph.h"

namespace interp::testing {
namespace {

// Rows of the feeds in consecutive runs.
constexpr int64_t kRows[] = {2, 2, 5, 2, 0};

absl::Status Differs(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("other bits than the reference's: ", what));
}

absl::Status CompareRun(const std::vector<Tensor>& fetched, const std::vector<Tensor>& expected,
                        size_t run) {
  for (size_t col = 0; col < expected.size(); ++col) {
    if (col < fetched.size() && SameBits(fetched[col], expected[col])) continue;
    return Differs(absl::StrCat("fetch ", col, " in run ", run));
  }
  return absl::OkStatus();
}

absl::Status CompareParams(Scope& scope, const DifferentialCase& test, const Expected& expected) {
  for (size_t i = 0; i < test.params.size(); ++i) {
    Tensor param = scope.Find(test.params[i])->tensor;
    INTERP_RETURN_IF_ERROR(MoveToHost(param));
    if (!SameBits(param, expected.params[i])) return Differs(test.params[i]);
  }
  return absl::OkStatus();
}

DifferentialCase WithProgram(const DifferentialCase& test, const ShrunkProgram& small) {
  DifferentialCase result = test;
  result.program = small.program;
  for (std::vector<Tensor>& run : result.feeds) {
    std::vector<Tensor> kept;
    for (const int32_t column : small.feeds) kept.push_back(run[column]);
    run = std::move(kept);
  }
  return result;
}

std::string Plans(const Variant& variant, const DifferentialCase& test) {
  const auto core =
      InterpreterCore::Create(test.program, {}, {}, test.MakeScope(), variant.options);
  if (!core.ok()) return core.status().ToString();
  return absl::StrCat(ToText((*core)->program()),
                      PrintPlan((*core)->plan(), PlanStage::kDeps, PlanFormat::kText),
                      PrintPlan((*core)->plan(), PlanStage::kPlan, PlanFormat::kText));
}

}  // namespace

std::shared_ptr<Scope> DifferentialCase::MakeScope() const {
  auto scope = std::make_shared<Scope>();
  for (size_t i = 0; i < params.size(); ++i) {
    scope->FindOrCreate(params[i])->tensor = initial[i];
  }
  return scope;
}

DifferentialCase MakeCase(uint64_t seed, const RandomGraphOptions& options) {
  RandomGraph graph = MakeRandomGraph(seed, options);
  DifferentialCase test{.program = std::move(graph.program), .params = std::move(graph.params)};
  for (size_t i = 0; i < test.params.size(); ++i) {
    test.initial.push_back(RandomParameter(seed, static_cast<int>(i)));
  }
  for (const int64_t rows : kRows) test.feeds.push_back(RandomFeeds(seed, options, rows));
  return test;
}

absl::StatusOr<Expected> RunReference(const DifferentialCase& test) {
  Reference reference(ProbeOps());
  for (size_t i = 0; i < test.params.size(); ++i) {
    reference.Parameter(test.params[i]) = test.initial[i];
  }
  Expected expected;
  for (const std::vector<Tensor>& feeds : test.feeds) {
    INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> fetched, reference.Run(test.program, feeds));
    expected.fetches.push_back(std::move(fetched));
  }
  for (const std::string& name : test.params) expected.params.push_back(reference.Parameter(name));
  return expected;
}

std::vector<Variant> HostVariants() {
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
  for (const int workers : {1, 3}) {
    add(absl::StrCat("engine ", workers), SchedulerKind::kEngine, workers);
  }
  add("engine sequential", SchedulerKind::kEngine, 4).plan.sequential = true;
  add("engine without inplace", SchedulerKind::kEngine, 4).passes.disable = {"inplace"};
  add("async without gc", SchedulerKind::kAsync, 4).plan.garbage_collection = false;
  add("async sequential", SchedulerKind::kAsync, 4).plan.sequential = true;
  add("async plain", SchedulerKind::kAsync, 4).plan.optimize_layout = false;
  add("async without inplace", SchedulerKind::kAsync, 4).passes.disable = {"inplace"};
  return variants;
}

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
  add("engine", SchedulerKind::kEngine, sim);
  CoreOptions& engine = add("engine, threads", SchedulerKind::kEngine, sim);
  engine.sim.execution = SimOptions::Execution::kThreads;
  engine.gc = {.policy = GcPolicy::kEvent, .threshold_bytes = 256};
  add("without inplace", SchedulerKind::kShuffle, sim).passes.disable = {"inplace"};
  return variants;
}

absl::Status CompareFetches(InterpreterCore& core, const DifferentialCase& test,
                            const Expected& expected, const RunOptions& options) {
  for (size_t run = 0; run < test.feeds.size(); ++run) {
    INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> fetched, core.Run(test.feeds[run], options));
    INTERP_RETURN_IF_ERROR(CompareRun(fetched, expected.fetches[run], run));
  }
  return core.Synchronize();
}

absl::Status Compare(InterpreterCore& core, Scope& scope, const DifferentialCase& test,
                     const Expected& expected, const RunOptions& options) {
  INTERP_RETURN_IF_ERROR(CompareFetches(core, test, expected, options));
  return CompareParams(scope, test, expected);
}

absl::Status Compare(const Variant& variant, const DifferentialCase& test,
                     const Expected& expected) {
  const std::shared_ptr<Scope> scope = test.MakeScope();
  INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<InterpreterCore> core,
                          InterpreterCore::Create(test.program, {}, {}, scope, variant.options));
  return Compare(*core, *scope, test, expected, {.wait_for_devices = variant.wait_for_devices});
}

void ExpectAgreement(const Variant& variant, const DifferentialCase& test,
                     const Expected& expected) {
  const absl::Status status = Compare(variant, test, expected);
  if (status.ok()) return;
  const ShrunkProgram small = Shrink(test.program, [&](const ShrunkProgram& candidate) {
    const DifferentialCase smaller = WithProgram(test, candidate);
    const auto wanted = RunReference(smaller);
    return wanted.ok() && Compare(variant, smaller, *wanted).code() == status.code();
  });
  ADD_FAILURE() << variant.name << ": " << status << "\nsmallest program that fails so:\n"
                << ToText(small.program) << Plans(variant, WithProgram(test, small));
}

}  // namespace interp::testing
