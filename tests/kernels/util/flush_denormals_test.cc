// Denormal numbers are zero for convolutions and products, and for no other op, on whichever thread
// they run.
#include "kernels/util/flush_denormals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/array/array_runtime.h"
#include "core/array/invoke.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/arrays.h"
#include "tests/testing/matchers.h"
#include "tests/testing/test_program.h"

namespace interp::testing {
namespace {

constexpr float kDenormal = 1e-40F;

float Doubled(float value) {
  volatile float operand = value;  // at run time
  return operand * 2;
}

TEST(FlushDenormalsTest, ChangesItsThreadWhileItLives) {
  EXPECT_NE(Doubled(kDenormal), 0);
  {
    const FlushDenormals flush;
    EXPECT_EQ(Doubled(kDenormal), 0);
  }
  EXPECT_NE(Doubled(kDenormal), 0);
}

// A convolution and a sum of so many elements that they take all threads.
Program ConvolutionAndSum() {
  TestProgram builder;
  return builder.Feed("x", {1, 32, 96, 96})
      .Feed("w", {32, 32, 1, 1})
      .AddOp("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"y"}}})
      .AddOp("elementwise_add", {{"X", {"x"}}, {"Y", {"x"}}}, {{"Out", {"z"}}})
      .Fetch("y")
      .Fetch("z")
      .Build();
}

Tensor Filled(const Shape& shape, float value) {
  return Tensor::Of<float>(shape, std::vector<float>(static_cast<size_t>(shape.numel()), value));
}

void ExpectZeroSums(const CoreOptions& options) {
  const auto core = InterpreterCore::Create(ConvolutionAndSum(), {}, {}, nullptr, options);
  ASSERT_THAT(core, IsOk());
  const auto fetched =
      (*core)->Run({Filled({1, 32, 96, 96}, kDenormal), Filled({32, 32, 1, 1}, 1)});
  ASSERT_THAT(fetched, IsOk());
  for (const float value : ::interp::testing::Values<float>((*fetched)[0])) ASSERT_EQ(value, 0);
  for (const float value : ::interp::testing::Values<float>((*fetched)[1])) ASSERT_NE(value, 0);
  EXPECT_NE(Doubled(kDenormal), 0) << "the caller's thread goes on as before";
}

TEST(FlushDenormalsTest, HoldsUnderEveryScheduler) {
  for (const SchedulerKind kind :
       {SchedulerKind::kTrace, SchedulerKind::kAsync, SchedulerKind::kEngine}) {
    ExpectZeroSums({.scheduler = kind, .num_workers = 3, .num_threads = 1});
  }
}

TEST(FlushDenormalsTest, HoldsOnDevices) {
  using Execution = SimOptions::Execution;
  for (const Execution execution : {Execution::kThreads, Execution::kInterleaved}) {
    CoreOptions options{.scheduler = SchedulerKind::kAsync, .num_workers = 2, .num_threads = 1};
    options.plan.place = {PlaceKind::kSim, 0};
    options.sim.execution = execution;
    ExpectZeroSums(options);
  }
}

TEST(FlushDenormalsTest, HoldsForArrays) {
  for (const auto policy : {engine::PolicyKind::kNaive, engine::PolicyKind::kPerDevice}) {
    const auto runtime = MakeRuntime({.engine = {.policy = policy}});
    const Array x = Got(runtime->FromTensor(Filled({2, 2}, kDenormal), Place{}));
    const Array y = Got(runtime->FromTensor(Filled({2, 2}, 1), Place{}));
    const Array product = Got(Invoke(*runtime, "matmul_v2", {{"X", {x}}, {"Y", {y}}}, {}, {}));
    EXPECT_THAT(FloatsOf(product), ::testing::Each(0));
  }
}

TEST(FlushDenormalsTest, HoldsOnThreadsThatWereThereBefore) {
  int started = 0;
#pragma omp parallel num_threads(3) reduction(+ : started)
  started += 1;
  ASSERT_GT(started, 0);
  ExpectZeroSums({.scheduler = SchedulerKind::kTrace, .num_threads = 3});
}

// A small op sends threads of the pool home, and a wide one starts others.
TEST(FlushDenormalsTest, HoldsForThreadsThatOtherOpsStart) {
  TestProgram builder;
  const Program program =
      builder.Feed("x", {1, 32, 96, 96})
          .Feed("w", {32, 32, 1, 1})
          .Feed("s", {1, 4, 128, 128})
          .AddOp("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"y"}}})
          .AddOp("exp", {{"X", {"s"}}}, {{"Out", {"a"}}})
          .AddOp("exp", {{"X", {"y"}}}, {{"Out", {"b"}}})
          .AddOp("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"z"}}})
          .Fetch("y")
          .Fetch("a")
          .Fetch("b")
          .Fetch("z")
          .Build();
  CoreOptions options{.scheduler = SchedulerKind::kTrace, .num_threads = 4};
  const auto core = InterpreterCore::Create(program, {}, {}, nullptr, options);
  ASSERT_THAT(core, IsOk());
  for (int run = 0; run < 3; ++run) {
    const auto fetched = (*core)->Run({Filled({1, 32, 96, 96}, kDenormal),
                                       Filled({32, 32, 1, 1}, 1), Filled({1, 4, 128, 128}, 1)});
    ASSERT_THAT(fetched, IsOk());
    for (const int i : {0, 3}) {
      for (const float value : ::interp::testing::Values<float>((*fetched)[i])) {
        ASSERT_EQ(value, 0) << "fetch " << i << " of run " << run;
      }
    }
  }
}

}  // namespace
}  // namespace interp::testing
