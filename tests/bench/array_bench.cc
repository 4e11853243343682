// What arrays cost besides the kernels of their ops.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "core/array/array_runtime.h"
#include "core/array/invoke.h"

namespace interp {
namespace {

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

Array Ones(ArrayRuntime& runtime, int64_t count) {
  const std::vector<float> values(static_cast<size_t>(count), 1.0F);
  return Must(runtime.FromTensor(Tensor::Of<float>({count}, values)));
}

// An array that is made and dropped: must stay below 500 ns.
void BM_Array_Temporary(benchmark::State& state) {
  const auto runtime = Must(ArrayRuntime::Create());
  for (auto _ : state) {
    benchmark::DoNotOptimize(Must(runtime->New({8}, DType::kFloat32)));
  }
}
BENCHMARK(BM_Array_Temporary);

void BM_Array_View(benchmark::State& state) {
  const auto runtime = Must(ArrayRuntime::Create());
  const Array x = Ones(*runtime, 8);
  for (auto _ : state) benchmark::DoNotOptimize(Must(x.Slice(2, 4)));
}
BENCHMARK(BM_Array_View);

// An engine operation that does nothing: what the next two stand on.
void BM_Array_EmptyOperation(benchmark::State& state) {
  const auto runtime = Must(ArrayRuntime::Create());
  const engine::Variable v = runtime->engine().NewVariable();
  for (auto _ : state) {
    benchmark::DoNotOptimize(runtime->engine().Push([] {}, {.updates = {&v, 1}}));
  }
  benchmark::DoNotOptimize(runtime->WaitForAll());
}
BENCHMARK(BM_Array_EmptyOperation);

// x + x on eight floats into an array that is there, and into a temporary one: the difference is
// what the temporary costs with its memory.
void AddInto(benchmark::State& state, bool temporary) {
  const auto runtime = Must(ArrayRuntime::Create());
  const Array x = Ones(*runtime, 8);
  const Array out = Ones(*runtime, 8);
  const ArraySlots inputs = {{"X", {x}}, {"Y", {x}}};
  InvokeOptions options;
  if (!temporary) options.into = {{"Out", {out}}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(Must(Invoke(*runtime, "elementwise_add", inputs, {}, options)));
  }
  benchmark::DoNotOptimize(runtime->WaitForAll());
}
void BM_Array_AddIntoSame(benchmark::State& state) { AddInto(state, /*temporary=*/false); }
BENCHMARK(BM_Array_AddIntoSame)->UseRealTime();
void BM_Array_AddIntoTemporary(benchmark::State& state) { AddInto(state, /*temporary=*/true); }
BENCHMARK(BM_Array_AddIntoTemporary)->UseRealTime();

// A value that is there already.
void BM_Array_Read(benchmark::State& state) {
  const auto runtime = Must(ArrayRuntime::Create());
  const Array x = Ones(*runtime, 8);
  for (auto _ : state) benchmark::DoNotOptimize(Must(x.Read()));
}
BENCHMARK(BM_Array_Read);

}  // namespace
}  // namespace interp
