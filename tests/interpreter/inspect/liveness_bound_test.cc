#include "interpreter/inspect/liveness_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/test_program.h"

namespace interp::testing {
namespace {

std::unique_ptr<InterpreterCore> MakeCore(const Program& program, CoreOptions options = {},
                                          std::shared_ptr<Scope> scope = nullptr) {
  options.ops = &ProbeOps();
  options.num_threads = 1;
  auto core = InterpreterCore::Create(program, {}, {}, std::move(scope), options);
  EXPECT_THAT(core, IsOk());
  return core.ok() ? *std::move(core) : nullptr;
}

Tensor Rows(int64_t rows) {
  return Tensor::Of<int64_t>({rows}, std::vector<int64_t>(static_cast<size_t>(rows), 1));
}

// 64 bytes are 8 int64; a holds 9, which round up to two of them.
//
//   x -> a -> b -> c (fetched)
Program ChainOf(const std::string& op) {
  return TestProgram(DType::kInt64)
      .Feed("x", {-1})
      .Call(op, {"x"}, "a")
      .Call(op, {"a"}, "b")
      .Call(op, {"b"}, "c")
      .Fetch("c")
      .Build();
}

TEST(LivenessBoundTest, AnInstructionNeedsItsInputsAndOutputsAtOnce) {
  CoreOptions options;
  options.passes.disable = {"inplace"};
  const auto core = MakeCore(ChainOf("mix"), options);
  ASSERT_THAT(core->Run({Rows(9)}), IsOk());
  const LivenessBound bound = FindLivenessBound(*core);
  EXPECT_EQ(bound.bytes, 2 * 128u);
  EXPECT_EQ(core->plan().vars[core->plan().instructions[bound.at].outputs[0]].name, "b");
  EXPECT_EQ(core->memory().peak_bytes, bound.bytes);
}

TEST(LivenessBoundTest, SharedMemoryCountsOnce) {
  const auto core = MakeCore(ChainOf("mix"));
  ASSERT_THAT(core->Run({Rows(9)}), IsOk());
  EXPECT_EQ(FindLivenessBound(*core).bytes, 128u);
  EXPECT_EQ(core->memory().peak_bytes, 128u);
}

// Without collection all of them stay, and the peak exceeds what is alive.
TEST(LivenessBoundTest, IsFoundWithoutThePlansLists) {
  CoreOptions options;
  options.passes.disable = {"inplace"};
  options.plan.garbage_collection = false;
  const auto core = MakeCore(ChainOf("mix"), options);
  ASSERT_THAT(core->Run({Rows(9)}), IsOk());
  EXPECT_EQ(FindLivenessBound(*core).bytes, 2 * 128u);
  EXPECT_EQ(core->memory().peak_bytes, 3 * 128u);
}

TEST(LivenessBoundTest, ViewsOfFeedsTakeNothing) {
  const auto core = MakeCore(TestProgram(DType::kInt64)
                                 .Feed("x", {16})
                                 .Call("view", {"x"}, "v", {{"shape", std::vector<int64_t>{4, 4}}})
                                 .Call("mix", {"v"}, "y")
                                 .Fetch("y")
                                 .Build());
  ASSERT_THAT(core->Run({Rows(16)}), IsOk());
  EXPECT_EQ(FindLivenessBound(*core).bytes, 128u);
  EXPECT_EQ(core->memory().peak_bytes, 128u);
}

TEST(LivenessBoundTest, NothingRunIsNothingAlive) {
  const auto core = MakeCore(ChainOf("mix"));
  EXPECT_EQ(FindLivenessBound(*core).bytes, 0u);
  EXPECT_EQ(FindLivenessBound(*core).at, -1);
}

// Whatever the program, a run in order takes no more than what is alive and no less.
TEST(LivenessBoundTest, RandomGraphsTakeWhatIsAlive) {
  const RandomGraphOptions graph_options{.rewrites = false, .updates = false, .arrays = false};
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const RandomGraph graph = MakeRandomGraph(seed, graph_options);
    const auto core =
        MakeCore(graph.program, {.scheduler = SchedulerKind::kTrace}, RandomScope(seed, graph));
    ASSERT_NE(core, nullptr);
    ASSERT_THAT(core->Run(RandomFeeds(seed, graph_options, 33)), IsOk());
    const auto bound = static_cast<double>(FindLivenessBound(*core).bytes);
    const auto peak = static_cast<double>(core->memory().peak_bytes);
    EXPECT_GE(peak, bound);
    EXPECT_LE(peak, 1.05 * bound);
  }
}

}  // namespace
}  // namespace interp::testing
