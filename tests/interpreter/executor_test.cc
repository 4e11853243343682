#include "interpreter/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/testing/matchers.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/test_program.h"

namespace interp::testing::executor_test {
namespace {

ExecutorOptions Options(size_t capacity = 8) {
  ExecutorOptions options{.capacity = capacity};
  options.core.ops = &ProbeOps();
  return options;
}

Program Mixed(int tag) {
  return TestProgram(DType::kInt64)
      .Feed("x", {2})
      .Feed("y", {2})
      .Call("mix", {"x", "y"}, "a", {{"tag", tag}})
      .Call("mix", {"a"}, "b")
      .Fetch("b")
      .Build();
}

class ExecutorTest : public ::testing::Test {
 protected:
  std::shared_ptr<InterpreterCore> Get(Executor& executor, const Program& program,
                                       const std::vector<std::string>& feeds = {"x", "y"},
                                       const std::vector<std::string>& fetches = {"b"}) {
    auto core = executor.Get(program, feeds, fetches, scope_);
    EXPECT_THAT(core, IsOk());
    return core.ok() ? *core : nullptr;
  }
  void ExpectStats(const Executor& executor, int64_t hits, int64_t misses, int64_t evictions) {
    EXPECT_EQ(executor.stats().hits, hits);
    EXPECT_EQ(executor.stats().misses, misses);
    EXPECT_EQ(executor.stats().evictions, evictions);
  }
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
};

TEST_F(ExecutorTest, EqualProgramsShareACore) {
  Executor executor(Options());
  const auto core = Get(executor, Mixed(1));
  EXPECT_EQ(Get(executor, Mixed(1)), core);
  ExpectStats(executor, 1, 1, 0);
}

TEST_F(ExecutorTest, ProgramFeedsFetchesAndScopeMakeTheKey) {
  Executor executor(Options());
  const auto core = Get(executor, Mixed(1));
  EXPECT_NE(Get(executor, Mixed(2)), core);
  EXPECT_NE(Get(executor, Mixed(1), {"y", "x"}), core);
  EXPECT_NE(Get(executor, Mixed(1), {"x", "y"}, {"a"}), core);
  EXPECT_NE(Get(executor, Mixed(1), {"x", "y"}, {"b", "a"}), core);
  scope_ = std::make_shared<Scope>();
  EXPECT_NE(Get(executor, Mixed(1)), core);
  ExpectStats(executor, 0, 6, 0);
}

// A new scope may get the address of a dead one, but never its identity.
TEST_F(ExecutorTest, ScopesAreNotTakenForEachOther) {
  Executor executor(Options(1));
  for (int i = 0; i < 10; ++i) {
    scope_.reset();
    executor.Clear();
    scope_ = std::make_shared<Scope>();
    Get(executor, Mixed(1));
  }
  ExpectStats(executor, 0, 10, 0);
}

TEST_F(ExecutorTest, TheLeastRecentlyUsedCoreGoes) {
  Executor executor(Options(2));
  const auto one = Get(executor, Mixed(1));
  Get(executor, Mixed(2));
  EXPECT_EQ(Get(executor, Mixed(1)), one);  // now 2 is the oldest
  Get(executor, Mixed(3));
  ExpectStats(executor, 1, 3, 1);
  EXPECT_EQ(Get(executor, Mixed(1)), one);
  Get(executor, Mixed(2));
  ExpectStats(executor, 2, 4, 2);
  executor.Clear();
  EXPECT_NE(Get(executor, Mixed(1)), one);
}

TEST_F(ExecutorTest, RunsByName) {
  Executor executor(Options());
  const Tensor x = VectorOf<int64_t>({1, 2});
  const Tensor y = VectorOf<int64_t>({3, 4});
  const auto ab = executor.Run(Mixed(1), {{"x", x}, {"y", y}}, {"b"}, scope_);
  const auto ba = executor.Run(Mixed(1), {{"y", y}, {"x", x}}, {"b"}, scope_);
  ASSERT_THAT(ab, IsOk());
  ASSERT_THAT(ba, IsOk());
  EXPECT_TRUE(SameBits(*ab, *ba));
}

TEST_F(ExecutorTest, ProgramsThatFailAreNotKept) {
  Executor executor(Options());
  const Program bad = TestProgram().Feed("x", {2}).Call("nope", {"x"}, "b").Build();
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(executor.Get(bad, {"x"}, {"b"}, scope_).ok());
  }
  ExpectStats(executor, 0, 2, 0);
}

TEST_F(ExecutorTest, ThreadsMayAskAtOnce) {
  Executor executor(Options(4));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        const auto core = executor.Get(Mixed((t + i) % 6), {"x", "y"}, {"b"}, scope_);
        ASSERT_THAT(core, IsOk());
        ASSERT_THAT((*core)->Clone()->Run({VectorOf<int64_t>({1, 2}), VectorOf<int64_t>({3, 4})}),
                    IsOk());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(executor.stats().hits + executor.stats().misses, 160);
}

// Each program brings names of its own to the scope that all share. None runs: they write there.
TEST_F(ExecutorTest, ProgramsOfOneScopeMayBeMadeAtOnce) {
  Executor executor(Options(4));
  const auto with_params = [](int t, int i) {
    TestProgram program(DType::kInt64);
    program.Feed("x", {2});
    for (int p = 0; p < 20; ++p) {
      const std::string name = absl::StrCat("p", t, "_", i, "_", p);
      program.Param(name, {2}).Call("mix", {"x"}, name);
    }
    return program.Call("mix", {"x"}, "b").Fetch("b").Build();
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        ASSERT_THAT(executor.Get(with_params(t, i), {"x"}, {"b"}, scope_), IsOk());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(scope_->LocalNames().size(), 4u * 20u * 20u);
}

}  // namespace
}  // namespace interp::testing::executor_test
