// Plans whose work on GPUs runs in graphs (CoreOptions::cuda_graphs): what they give and when they
// are captured again.
#include "interpreter/analysis/graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/program_load.h"
#include "interpreter/inspect/plan_print.h"
#include "interpreter/train/trainer.h"
#include "passes/train/minimize.h"
#include "tests/cuda/graph_test.h"
#include "tests/testing/golden_steps.h"

namespace interp::cuda_test {
namespace {

using testing::IsOk;

// Every fourth, as the others have run without graphs.
std::vector<std::string> SomePrograms() {
  std::vector<std::string> some;
  const std::vector<std::string> all = testing::AllGoldenPrograms();
  for (size_t i = 0; i < all.size(); i += 4) some.push_back(all[i]);
  return some;
}

class CudaGraphPrograms : public KernelTest, public ::testing::WithParamInterface<std::string> {};

// Most have three steps: one as always, one that captures and one that enqueues graphs.
TEST_P(CudaGraphPrograms, LearnWhatPaddleLearns) {
  const absl::StatusOr<testing::GoldenProgram> golden = testing::ReadGoldenProgram(GetParam());
  ASSERT_THAT(golden, IsOk());
  absl::StatusOr<Program> program = LoadProgram(golden->program);
  ASSERT_THAT(program, IsOk());
  CoreOptions options = InGraphs();
  options.passes.disable = {"prune"};
  EXPECT_THAT(testing::RunGoldenSteps(*golden, testing::NameOfGoldenProgram(GetParam()),
                                      *std::move(program), options),
              ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Goldens, CudaGraphPrograms, ::testing::ValuesIn(SomePrograms()),
                         [](const auto& info) { return testing::NameOfGoldenProgram(info.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaGraphPrograms);

TEST_F(CudaGraphs, AreCapturedInTheSecondRunAndEnqueuedFromTheThirdOn) {
  Make(/*updates=*/false);
  Run(2);
  EXPECT_EQ(stats().captures, 0);
  Run(2);
  EXPECT_EQ(stats().graphs, 1);
  EXPECT_GE(stats().instructions, 2);
  EXPECT_EQ(stats().replays, 0);
  for (int i = 0; i < 4; ++i) Run(2);
  EXPECT_EQ(stats().captures, 1);
  EXPECT_EQ(stats().replays, 4);
  EXPECT_THAT(stats().refused, ::testing::IsEmpty());
}

TEST_F(CudaGraphs, AreCapturedAgainForOtherShapes) {
  Make(/*updates=*/false);
  for (const int64_t rows : {2, 2, 2, 5, 5, 5, 2, 1, 2, 2, 2}) Run(rows);
  EXPECT_EQ(stats().captures, 3);
  EXPECT_EQ(stats().replays, 3);
}

TEST_F(CudaGraphs, AreCapturedAgainWhereParametersHaveMoved) {
  Make(/*updates=*/true);
  for (int i = 0; i < 3; ++i) Run(2);
  const Tensor old = Parameter();  // so that the new ones lie elsewhere
  SetParameter(7);
  for (int i = 0; i < 4; ++i) Run(2);
  EXPECT_GE(stats().replays, 2);
}

TEST_F(CudaGraphs, UpdateParametersWhereTheyLie) {
  Make(/*updates=*/true);
  for (int i = 0; i < 6; ++i) Run(3);
  EXPECT_EQ(stats().captures, 1);
  EXPECT_EQ(stats().replays, 4);
}

TEST_F(CudaGraphs, WorkInClonesWithGraphsOfTheirOwn) {
  Make(/*updates=*/false);
  for (int i = 0; i < 3; ++i) Run(2);
  const std::unique_ptr<InterpreterCore> first = std::move(core_);
  core_ = first->Clone();
  for (int i = 0; i < 4; ++i) Run(2);
  EXPECT_EQ(stats().captures, 1);
  EXPECT_EQ(stats().replays, 2);
}

// Each thread captures again and again, while the other's runs begin behind it.
TEST_F(CudaGraphs, AreCapturedWhileOtherThreadsUseTheDevice) {
  Make(/*updates=*/false);
  Run(2);
  const std::unique_ptr<InterpreterCore> clone = core_->Clone();
  const auto run = [](InterpreterCore& core) -> absl::Status {
    for (int i = 0; i < 24; ++i) {
      const int64_t rows = 1 + i / 4;
      const Tensor x = TensorOf<float>({rows, 4}, SomeValues<float>(static_cast<size_t>(rows * 4)));
      INTERP_RETURN_IF_ERROR(core.Run({x}).status());
    }
    return absl::OkStatus();
  };
  absl::Status of_clone;
  std::thread beside([&] { of_clone = run(*clone); });
  const absl::Status of_core = run(*core_);
  beside.join();
  EXPECT_THAT(of_core, IsOk());
  EXPECT_THAT(of_clone, IsOk());
  EXPECT_THAT(stats().refused, ::testing::IsEmpty());
  EXPECT_THAT(clone->graph_stats()->refused, ::testing::IsEmpty());
  for (int i = 0; i < 4; ++i) Run(3);
}

// Which records events of its streams, between captures of this thread or behind one.
TEST_F(CudaGraphs, AreCapturedWhileOtherCoresGiveMemoryBack) {
  Make(/*updates=*/false);
  const std::unique_ptr<InterpreterCore> other = core_->Clone();
  std::atomic<bool> done{false};
  absl::Status of_other;
  size_t returned = 0;
  std::thread beside([&] {
    const Tensor x = TensorOf<float>({5, 4}, SomeValues<float>(20));
    while (!done && of_other.ok()) {
      of_other = other->Run({x}).status();
      returned += other->TrimMemory();
    }
  });
  for (int64_t rows = 1; rows <= 8; ++rows) {
    for (int i = 0; i < 3; ++i) Run(rows);
  }
  done = true;
  beside.join();
  EXPECT_THAT(of_other, IsOk());
  EXPECT_GT(returned, 0u);
  EXPECT_EQ(stats().captures, 8);
  EXPECT_THAT(stats().refused, ::testing::IsEmpty());
}

TEST_F(CudaGraphs, NeedNoWaitBetweenRuns) {
  Make(/*updates=*/true);
  const Tensor x = TensorOf<float>({3, 4}, SomeValues<float>(12, 3));
  for (int i = 0; i < 6; ++i) {
    const auto got = core_->Run({x}, {.wait_for_devices = false});
    ASSERT_THAT(got, IsOk());
    const auto want = host_->Run({x});
    ASSERT_THAT(want, IsOk());
    for (size_t f = 0; f < want->size(); ++f) {
      ExpectClose(testing::Values<float>((*got)[f]), testing::Values<float>((*want)[f]));
    }
  }
  EXPECT_THAT(core_->Synchronize(), IsOk());
  EXPECT_EQ(stats().replays, 4);
}

TEST_F(CudaGraphs, GiveUnusedMemoryBackButNotTheirOwn) {
  Make(/*updates=*/false);
  for (int i = 0; i < 3; ++i) Run(2);
  core_->TrimMemory();
  for (int i = 0; i < 2; ++i) Run(2);
  EXPECT_EQ(stats().replays, 3);
}

TEST_F(CudaGraphs, AreRefusedWhereTheyCannotWork) {
  const auto make = [](const CoreOptions& options) {
    return InterpreterCore::Create(SoftmaxProgram(false), {}, {}, nullptr, options).status();
  };
  CoreOptions options = InGraphs();
  options.plan.place = {};
  EXPECT_THAT(make(options).message(),
              ::testing::HasSubstr("nothing of the program runs on a GPU"));
  options = InGraphs();
  options.scheduler = SchedulerKind::kAsync;
  EXPECT_THAT(make(options).message(), ::testing::HasSubstr("not by scheduler async"));
  options = InGraphs();
  options.check_nan_inf = true;
  EXPECT_THAT(make(options).message(), ::testing::HasSubstr("check_nan_inf"));
  options = InGraphs();
  options.gc.policy = GcPolicy::kEvent;
  EXPECT_THAT(make(options).message(), ::testing::HasSubstr("collected at once"));
}

// The losses of six steps, the first values being made by a program that runs once.
absl::StatusOr<std::vector<float>> Losses(CoreOptions options) {
  testing::TestProgram main(DType::kFloat32);
  main.Feed("x", {-1, 4}, DType::kFloat32);
  main.Param("w", {4, 3});
  main.AddOp("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"p"}}});
  main.Call("tanh", {"p"}, "t");
  main.Declare("loss", {1});
  main.Call("mean", {"t"}, "loss");
  testing::TestProgram startup(DType::kFloat32);
  startup.Param("w", {4, 3});
  startup.AddOp("fill_constant", {}, {{"Out", {"w"}}},
                {{"shape", std::vector<int64_t>{4, 3}}, {"value", 0.25f}, {"dtype", 5}});
  INTERP_ASSIGN_OR_RETURN(const OptimizerSpec spec,
                          ParseOptimizerSpec("momentum:learning_rate=0.1,momentum=0.9"));
  INTERP_ASSIGN_OR_RETURN(
      const TrainingPrograms programs,
      Minimize(main.Build(), startup.Build(), {.backward = {.loss = "loss"}, .optimizer = spec},
               OpRegistry::Global()));
  INTERP_ASSIGN_OR_RETURN(
      const auto trainer,
      Trainer::Create(programs.main, nullptr,
                      {.feeds = {"x"}, .fetches = {"loss"}, .core = std::move(options)}));
  INTERP_RETURN_IF_ERROR(trainer->Initialize(programs.startup));
  std::vector<float> losses;
  for (int step = 0; step < 6; ++step) {
    INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> fetched,
                            trainer->Step({{TensorOf<float>({4, 4}, SomeValues<float>(16))}}));
    losses.push_back(testing::Values<float>(fetched[0])[0]);
  }
  return losses;
}

TEST_F(CudaGraphs, ServeTrainers) {
  const auto want = Losses({});
  ASSERT_THAT(want, IsOk());
  const auto got = Losses(InGraphs());
  ASSERT_THAT(got, IsOk());
  ExpectClose(*got, *want);
  EXPECT_NE(want->front(), want->back());
}

// In any order that edges allow, with what cannot be captured out of the way.
TEST_F(CudaGraphs, HaveAnOrderOfTheirOwn) {
  testing::TestProgram builder(DType::kFloat32);
  builder.Feed("x", {4, 4}, DType::kFloat32);
  builder.Feed("n", {1}, DType::kInt64);
  builder.Declare("r", {-1}, DType::kInt64);
  builder.AddOp("relu", {{"X", {"x"}}}, {{"Out", {"a"}}}, {});
  builder.AddOp("range", {{"Start", {"n"}}, {"End", {"n"}}, {"Step", {"n"}}}, {{"Out", {"r"}}});
  builder.AddOp("tanh", {{"X", {"a"}}}, {{"Out", {"b"}}}, {});
  builder.AddOp("matmul_v2", {{"X", {"b"}}, {"Y", {"b"}}}, {{"Out", {"c"}}}, {});
  builder.Fetch("r");
  builder.Fetch("c");
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, InGraphs());
  ASSERT_THAT(core, IsOk());
  const Plan& plan = (*core)->plan();
  const GraphOrder graphs = FindGraphs(plan);
  ASSERT_EQ(graphs.segments.size(), 1u);
  std::vector<InstrId> sorted = graphs.order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<InstrId> all(plan.instructions.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  std::vector<size_t> at(all.size());
  for (size_t i = 0; i < graphs.order.size(); ++i) at[graphs.order[i]] = i;
  for (const Edge& edge : plan.edges) EXPECT_LT(at[edge.from], at[edge.to]);
  const std::string dump = PrintPlan(plan, PlanStage::kPlan, PlanFormat::kText);
  EXPECT_THAT(dump, ::testing::ContainsRegex("  graph 0 compute cuda:0 of( #[0-9]+){2,}\n"));
  EXPECT_THAT(dump, ::testing::ContainsRegex("  no_graph #[0-9]+ range: uses memory"));
  const std::string json = PrintPlan(plan, PlanStage::kPlan, PlanFormat::kJson);
  EXPECT_THAT(json, ::testing::ContainsRegex("\"graphs\":? ?\\[\\["));
  EXPECT_THAT(TypesInNoGraph(plan), ::testing::Contains("range (uses memory of the host)"));
}

}  // namespace
}  // namespace interp::cuda_test
