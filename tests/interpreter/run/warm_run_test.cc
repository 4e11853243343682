// A warm run allocates nothing of its own.
//
// Counted: every call of operator new (and so of std::vector, std::string, std::function and
// absl::Status with a message) between the call of Run and its return, on any thread. Tensors come
// from the core's pool, which does not use operator new once it has grown. Allowed: one allocation
// for each run, the vector of fetched tensors that Run returns.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "interpreter/interpreter_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/test_program.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};

[[maybe_unused]] void* Allocate(size_t size, size_t alignment) {
  if (counting.load(std::memory_order_relaxed)) {
    allocations.fetch_add(1, std::memory_order_relaxed);
  }
  const size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded > 0 ? rounded : alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounts = false;  // the sanitizers bring operators of their own
#else
constexpr bool kCounts = true;

#define COUNTED [[gnu::noinline]]
COUNTED void* operator new(size_t size) { return Allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
COUNTED void* operator new[](size_t size) {
  return Allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
COUNTED void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
COUNTED void* operator new[](size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
COUNTED void operator delete(void* memory) noexcept { std::free(memory); }
COUNTED void operator delete[](void* memory) noexcept { std::free(memory); }
COUNTED void operator delete(void* memory, size_t) noexcept { std::free(memory); }
COUNTED void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
COUNTED void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
COUNTED void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
COUNTED void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
COUNTED void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
#endif

namespace interp::testing {
namespace {

int64_t AllocationsOfRun(InterpreterCore& core, const std::vector<Tensor>& feeds) {
  allocations = 0;
  counting = true;
  const auto fetched = core.Run(feeds);
  counting = false;
  EXPECT_THAT(fetched, IsOk());
  return allocations;
}

class WarmRunTest : public ::testing::TestWithParam<std::pair<SchedulerKind, int>> {};

// Branches, views, updates in place, casts, layout changes; shapes inferred in every run where a
// variable has several writers. Not what kernels allocate: no tensor arrays, whose elements come
// and go in a std::vector, and no shapes made of values, which InferContext::Integers returns in
// one.
TEST_P(WarmRunTest, AllocatesTheResultAlone) {
  if (!kCounts) GTEST_SKIP();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    RandomGraphOptions options;
    options.arrays = false;
    options.dynamic = false;
    const RandomGraph graph = MakeRandomGraph(seed, options);
    CoreOptions core_options{.scheduler = GetParam().first, .num_workers = GetParam().second};
    core_options.ops = &ProbeOps();
    const auto core =
        InterpreterCore::Create(graph.program, {}, {}, RandomScope(seed, graph), core_options);
    ASSERT_THAT(core, IsOk());
    const std::vector<Tensor> feeds = RandomFeeds(seed, options, 4);
    for (int warm_up = 0; warm_up < 3; ++warm_up) AllocationsOfRun(**core, feeds);
    for (int run = 0; run < 5; ++run) {
      ASSERT_LE(AllocationsOfRun(**core, feeds), 1) << "seed " << seed << ", run " << run;
    }
  }
}

// A loop within a loop: frames are kept, and trips find their memory in the pool.
TEST_P(WarmRunTest, TripsOfLoopsAllocateNothing) {
  if (!kCounts) GTEST_SKIP();
  TestProgram builder(DType::kInt64);
  builder.Feed("x", {-1, 4}).Feed("n", {1}).Call("mix", {"x"}, "sum", {{"tag", 1}});
  builder.Open().Call("mix", {"sum", "x"}, "a", {{"tag", 2}});
  builder.Open().Call("mix", {"a", "sum"}, "b", {{"tag", 3}}).Call("mix", {"b"}, "c", {{"tag", 4}});
  builder.Call("mix", {"c", "b"}, "sum", {{"tag", 5}});
  builder.Close("repeat", {{"Condition", {"n"}}}, {});
  builder.Call("mix", {"sum", "a"}, "sum", {{"tag", 6}});
  builder.Close("repeat", {{"Condition", {"n"}}}, {}).Fetch("sum");
  CoreOptions core_options{.scheduler = GetParam().first, .num_workers = GetParam().second};
  core_options.ops = &ProbeOps();
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, core_options);
  ASSERT_THAT(core, IsOk());
  const std::vector<Tensor> feeds = {
      Tensor::Of<int64_t>({2, 4}, std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}),
      Tensor::Of<int64_t>({1}, std::vector<int64_t>{3})};
  for (int warm_up = 0; warm_up < 3; ++warm_up) AllocationsOfRun(**core, feeds);
  for (int run = 0; run < 5; ++run) ASSERT_LE(AllocationsOfRun(**core, feeds), 1) << run;
}

INSTANTIATE_TEST_SUITE_P(
    Schedulers, WarmRunTest,
    ::testing::Values(std::pair(SchedulerKind::kTrace, 1), std::pair(SchedulerKind::kSerial, 1),
                      std::pair(SchedulerKind::kAsync, 1), std::pair(SchedulerKind::kAsync, 4),
                      std::pair(SchedulerKind::kEngine, 1), std::pair(SchedulerKind::kEngine, 3)));

}  // namespace
}  // namespace interp::testing
