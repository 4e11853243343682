// What running an instruction costs besides its kernel, and what making a core costs.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "core/storage/pool.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/run/work_queue.h"
#include "tests/testing/test_program.h"

namespace interp {
namespace {

using testing::TestProgram;

// Programs of benchmarks are right; if not, stop where it shows.
template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

Tensor Filled(const Shape& shape, float value) {
  return Tensor::Of<float>(shape, std::vector<float>(static_cast<size_t>(shape.numel()), value));
}

// x -> relu -> + w -> relu -> ... on 8 floats: the kernels take a few nanoseconds.
Program TinyChain(int num_ops) {
  TestProgram builder;
  builder.Feed("x", {8}).Param("w", {8});
  std::string last = "x";
  for (int i = 0; i < num_ops; ++i) {
    const std::string next = "v" + std::to_string(i);
    if (i % 2 == 0) {
      builder.Call("relu", {last}, next);
    } else {
      builder.AddOp("elementwise_add", {{"X", {last}}, {"Y", {"w"}}}, {{"Out", {next}}});
    }
    last = next;
  }
  return builder.Fetch(last).Build();
}

std::unique_ptr<InterpreterCore> TinyChainCore(int num_ops, SchedulerKind kind, int num_workers) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Filled({8}, 0.5f);
  return Must(
      InterpreterCore::Create(TinyChain(num_ops), {}, {}, std::move(scope),
                              {.scheduler = kind, .num_workers = num_workers, .num_threads = 1}));
}

// Time per item is per op, feed and fetch not counted, and must stay flat as N grows but for cache
// misses. Beyond 10,000 ops the core's data do not fit into the second-level cache.
void BM_Run_TinyChain(benchmark::State& state, SchedulerKind kind, int num_workers) {
  const int num_ops = static_cast<int>(state.range(0));
  const auto core = TinyChainCore(num_ops, kind, num_workers);
  const Tensor x = Filled({8}, 1.0f);
  for (auto _ : state) {
    benchmark::DoNotOptimize(Must(core->Run({x})));
  }
  state.SetItemsProcessed(state.iterations() * num_ops);
}
BENCHMARK_CAPTURE(BM_Run_TinyChain, trace, SchedulerKind::kTrace, 1)
    ->RangeMultiplier(10)
    ->Range(100, 100'000);
BENCHMARK_CAPTURE(BM_Run_TinyChain, serial, SchedulerKind::kSerial, 1)
    ->RangeMultiplier(10)
    ->Range(100, 100'000);
BENCHMARK_CAPTURE(BM_Run_TinyChain, async_1, SchedulerKind::kAsync, 1)
    ->RangeMultiplier(10)
    ->Range(100, 100'000);
BENCHMARK_CAPTURE(BM_Run_TinyChain, async_2, SchedulerKind::kAsync, 2)
    ->RangeMultiplier(10)
    ->Range(100, 100'000);
// The order found anew in every run, against the plan's. The caller only waits: real time counts.
BENCHMARK_CAPTURE(BM_Run_TinyChain, engine_1, SchedulerKind::kEngine, 1)
    ->RangeMultiplier(10)
    ->Range(100, 100'000)
    ->UseRealTime();

// From a program in memory to a core that can run: passes, plan, binding. Must grow linearly.
void BM_Create_TinyChain(benchmark::State& state) {
  const int num_ops = static_cast<int>(state.range(0));
  const Program program = TinyChain(num_ops);
  for (auto _ : state) {
    benchmark::DoNotOptimize(Must(InterpreterCore::Create(program, {}, {}, nullptr)));
  }
  state.SetItemsProcessed(state.iterations() * num_ops);
}
BENCHMARK(BM_Create_TinyChain)
    ->RangeMultiplier(10)
    ->Range(100, 100'000)
    ->Unit(benchmark::kMillisecond);

// 8 branches of 4 matrix products of 256 x 256 each, summed up in the end.
Program WideProgram() {
  TestProgram builder;
  builder.Feed("x", {256, 256}).Param("w", {256, 256});
  std::vector<std::string> ends;
  for (int branch = 0; branch < 8; ++branch) {
    std::string last = "x";
    for (int i = 0; i < 4; ++i) {
      const std::string next = "b" + std::to_string(branch) + "_" + std::to_string(i);
      builder.AddOp("matmul_v2", {{"X", {last}}, {"Y", {"w"}}}, {{"Out", {next}}});
      last = next;
    }
    ends.push_back(last);
  }
  return builder.Call("sum", ends, "y").Fetch("y").Build();
}

// With two workers on two free cores this must take at most 1 / 1.6 of the time of one.
void BM_Run_Wide(benchmark::State& state, SchedulerKind kind) {
  const int num_workers = static_cast<int>(state.range(0));
  if (num_workers > static_cast<int>(std::thread::hardware_concurrency())) {
    state.SkipWithError("more workers than cores");
    return;
  }
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = Filled({256, 256}, 1.0f / 256);
  const auto core = Must(
      InterpreterCore::Create(WideProgram(), {}, {}, scope,
                              {.scheduler = kind, .num_workers = num_workers, .num_threads = 1}));
  const Tensor x = Filled({256, 256}, 1.0f);
  for (auto _ : state) {
    benchmark::DoNotOptimize(Must(core->Run({x})));
  }
}
BENCHMARK_CAPTURE(BM_Run_Wide, async, SchedulerKind::kAsync)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Run_Wide, engine, SchedulerKind::kEngine)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

// The pair of calls that every intermediate costs.
void BM_Pool_AllocateFree(benchmark::State& state) {
  const auto pool = Pool::OnHost();
  const size_t size_bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(Must(pool->Allocate(size_bytes)));
  }
}
BENCHMARK(BM_Pool_AllocateFree)->Arg(32)->Arg(1 << 16);

// A task through the queue and back, without another thread.
void BM_WorkQueue_PushPop(benchmark::State& state) {
  WorkQueue queue({.num_threads = 0});
  TaskLane lane;
  std::atomic<int32_t> remaining{0};
  const Task task{.run = [](void* context, int32_t,
                            int) { static_cast<std::atomic<int32_t>*>(context)->fetch_sub(1); },
                  .context = &remaining};
  for (auto _ : state) {
    remaining.store(1);
    queue.Push(lane, task);
    queue.HelpUntilZero(remaining);
  }
}
BENCHMARK(BM_WorkQueue_PushPop);

}  // namespace
}  // namespace interp

BENCHMARK_MAIN();
