// Plans whose work on GPUs runs in graphs (CoreOptions::cuda_graphs): what they give and when they
// are captured again.
#include "interpreter/analysis/graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/program_load.h"
#include "interpreter/inspect/plan_print.h"
#include "tests/cuda/kernel_test.h"
#include "tests/testing/golden_run.h"
#include "tests/testing/golden_steps.h"
#include "tests/testing/program_builder.h"

namespace interp::cuda_test {
namespace {

using testing::IsOk;

CoreOptions OnGpu() {
  CoreOptions options;
  options.plan.place = {PlaceKind::kCuda, 0};
  options.cuda_graphs = true;
  return options;
}

// An op whose kernel waits for its stream, which work of a graph cannot.
absl::Status SameShape(InferContext& context) {
  context.ShareShape(0, 0);
  return absl::OkStatus();
}
absl::Status WaitAndCopy(KernelContext& context) {
  Stream& stream = context.stream();
  INTERP_RETURN_IF_ERROR(stream.Synchronize());
  Tensor& out = context.output(0);
  return stream.CopyOnDevice(out.mutable_raw_data(), context.input(0).raw_data(), out.size_bytes(),
                             context.work());
}
INTERP_REGISTER_OP(OpDef{
    .type = "test_wait_and_copy",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .infer = SameShape,
    .kernels = {{.dtype = DType::kFloat32, .run = WaitAndCopy, .place = PlaceKind::kCuda}}});

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
  CoreOptions options = OnGpu();
  options.passes.disable = {"prune"};
  EXPECT_THAT(testing::RunGoldenSteps(*golden, testing::NameOfGoldenProgram(GetParam()),
                                      *std::move(program), options),
              ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Goldens, CudaGraphPrograms, ::testing::ValuesIn(SomePrograms()),
                         [](const auto& info) { return testing::NameOfGoldenProgram(info.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaGraphPrograms);

// y = scale * softmax(x w), z = y + y; w is a parameter that `updates` changes by each run.
Program SoftmaxProgram(bool updates) {
  testing::ProgramBuilder builder(DType::kFloat32);
  builder.Feed("x", {-1, 4}, DType::kFloat32);
  builder.Param("w", {4, 3});
  builder.AddOp("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"p"}}}, {});
  builder.AddOp("softmax", {{"X", {"p"}}}, {{"Out", {"s"}}}, {{"axis", -1}});
  builder.AddOp("scale", {{"X", {"s"}}}, {{"Out", {"y"}}}, {{"scale", 3.0f}});
  builder.AddOp("elementwise_add", {{"X", {"y"}}, {"Y", {"y"}}}, {{"Out", {"z"}}}, {{"axis", -1}});
  if (updates) {
    builder.AddOp("scale", {{"X", {"w"}}}, {{"Out", {"w"}}}, {{"scale", 0.5f}});
  }
  builder.Fetch("y");
  builder.Fetch("z");
  return builder.Build();
}

class CudaGraphs : public KernelTest {
 protected:
  // The core with graphs and one of the host, of the same program with parameters of their own.
  void Make(bool updates, CoreOptions options = OnGpu()) {
    options.passes.disable = {"prune"};
    auto made = InterpreterCore::Create(SoftmaxProgram(updates), {}, {}, scope_, options);
    ASSERT_THAT(made, IsOk());
    core_ = *std::move(made);
    CoreOptions on_host;
    on_host.passes.disable = {"prune"};
    auto host = InterpreterCore::Create(SoftmaxProgram(updates), {}, {}, host_scope_, on_host);
    ASSERT_THAT(host, IsOk());
    host_ = *std::move(host);
    SetParameter(1);
  }

  void SetParameter(uint32_t seed) {
    const Tensor w = TensorOf<float>({4, 3}, SomeValues<float>(12, seed));
    ASSERT_THAT(testing::FillScope({{"w", w}}, *scope_), IsOk());
    ASSERT_THAT(testing::FillScope({{"w", w}}, *host_scope_), IsOk());
  }

  // Runs both on `rows` rows of new values and compares.
  void Run(int64_t rows) {
    const Tensor x =
        TensorOf<float>({rows, 4}, SomeValues<float>(static_cast<size_t>(rows * 4), ++runs_));
    const auto got = core_->Run({x});
    ASSERT_THAT(got, IsOk());
    const auto want = host_->Run({x});
    ASSERT_THAT(want, IsOk());
    for (size_t i = 0; i < want->size(); ++i) {
      ExpectClose(testing::Values<float>((*got)[i]), testing::Values<float>((*want)[i]));
    }
  }

  // The parameter where it lies.
  Tensor Parameter() const {
    for (const Variable* variable : core_->variables()) {
      if (variable == nullptr || variable->tensor.shape != Shape({4, 3})) continue;
      if (!variable->tensor.has_memory()) continue;
      if (variable->tensor.place().kind == PlaceKind::kCuda) return variable->tensor;
    }
    return {};
  }

  static std::vector<float> Download(const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.numel()));
    EXPECT_EQ(
        cudaMemcpy(values.data(), tensor.raw_data(), tensor.size_bytes(), cudaMemcpyDeviceToHost),
        cudaSuccess);
    return values;
  }

  GraphStats stats() const { return core_->graph_stats().value_or(GraphStats{}); }

  const std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  const std::shared_ptr<Scope> host_scope_ = std::make_shared<Scope>();
  std::unique_ptr<InterpreterCore> core_;
  std::unique_ptr<InterpreterCore> host_;
  uint32_t runs_ = 0;
};

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

// An update in place must not change what somebody else has a share of.
TEST_F(CudaGraphs, LeaveParametersAloneThatSomebodyElseHolds) {
  Make(/*updates=*/true);
  for (int i = 0; i < 4; ++i) Run(3);
  const Tensor held = Parameter();
  const std::vector<float> before = Download(held);
  for (int i = 0; i < 3; ++i) Run(3);
  EXPECT_EQ(Download(held), before);
}

// Takes a share of a variable's value in each run.
class Holder final : public RunObserver {
 public:
  Holder(const InterpreterCore& core, absl::string_view name) : core_(core) {
    const std::vector<PlanVar>& vars = core.plan().vars;
    for (size_t i = 0; i < vars.size(); ++i) {
      if (vars[i].name == name) var_ = static_cast<VarId>(i);
    }
  }
  void OnInstruction(int32_t, int, int64_t, int64_t) override {
    const Tensor& tensor = core_.variables()[var_]->tensor;
    if (tensor.has_memory()) held_ = tensor;
  }
  Tensor Take() { return std::exchange(held_, {}); }

 private:
  const InterpreterCore& core_;
  VarId var_ = -1;
  Tensor held_;
};

TEST_F(CudaGraphs, LeaveResultsAloneThatSomebodyElseHolds) {
  Make(/*updates=*/false);
  for (int i = 0; i < 4; ++i) Run(3);
  Holder holder(*core_, "z");
  const Tensor x = TensorOf<float>({3, 4}, SomeValues<float>(12, 77));
  ASSERT_THAT(core_->Run({x}, {.observer = &holder}), IsOk());
  const Tensor held = holder.Take();
  ASSERT_EQ(held.place().kind, PlaceKind::kCuda);
  const std::vector<float> before = Download(held);
  for (int i = 0; i < 4; ++i) Run(3);
  EXPECT_EQ(Download(held), before);
}

// What follows reads what graphs give on streams that the next run does not wait for by itself.
TEST_F(CudaGraphs, AwaitWhatOtherStreamsStillDo) {
  testing::ProgramBuilder builder(DType::kFloat32);
  builder.Feed("x", {64, 64}, DType::kFloat32);
  builder.Param("m", {64, 64});
  builder.Call("relu", {"x"}, "a").Call("tanh", {"a"}, "b").Call("sigmoid", {"b"}, "c");
  builder.Call("scale", {"b"}, "m", {{"scale", 2.0f}, {"execution_stream", std::string("side")}});
  builder.Fetch("c");
  CoreOptions options = OnGpu();
  options.passes.disable = {"prune"};
  const auto scope = std::make_shared<Scope>();
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, scope, options);
  ASSERT_THAT(core, IsOk());
  for (int i = 0; i < 12; ++i) {
    const Tensor x =
        TensorOf<float>({64, 64}, SomeValues<float>(64 * 64, static_cast<uint32_t>(i)));
    ASSERT_THAT((*core)->Run({x}, {.wait_for_devices = false}), IsOk());
  }
  EXPECT_THAT((*core)->Synchronize(), IsOk());
  EXPECT_GE((*core)->graph_stats()->replays, 8);
}

// What a run makes outside of graphs does not lie where graphs keep what they need only meanwhile.
TEST_F(CudaGraphs, ShareNoMemoryWithTheRestOfARun) {
  testing::ProgramBuilder builder(DType::kFloat32);
  builder.Feed("x", {8, 8}, DType::kFloat32);
  builder.Call("test_wait_and_copy", {"x"}, "r");
  builder.Call("relu", {"x"}, "a");
  builder.AddOp("matmul_v2", {{"X", {"a"}}, {"Y", {"a"}}}, {{"Out", {"b"}}});
  builder.AddOp("matmul_v2", {{"X", {"b"}}, {"Y", {"b"}}}, {{"Out", {"c"}}});
  builder.Call("test_wait_and_copy", {"c"}, "d");
  builder.AddOp("elementwise_add", {{"X", {"d"}}, {"Y", {"r"}}}, {{"Out", {"e"}}}, {});
  builder.Call("exp", {"e"}, "f");
  builder.Fetch("f");
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, OnGpu());
  ASSERT_THAT(core, IsOk());
  const Tensor x = TensorOf<float>({8, 8}, SomeValues<float>(64));
  const auto first = (*core)->Run({x});
  ASSERT_THAT(first, IsOk());
  Holder holder(**core, "r");
  std::vector<Tensor> held;  // so that each run finds memory elsewhere
  for (int i = 0; i < 8; ++i) {
    const auto again = (*core)->Run({x}, {.observer = &holder});
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(testing::Values<float>((*again)[0]), testing::Values<float>((*first)[0]));
    held.push_back(holder.Take());
  }
  EXPECT_GT((*core)->graph_stats()->replays, 4);
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
  CoreOptions options = OnGpu();
  options.plan.place = {};
  EXPECT_THAT(make(options).message(),
              ::testing::HasSubstr("nothing of the program runs on a GPU"));
  options = OnGpu();
  options.scheduler = SchedulerKind::kAsync;
  EXPECT_THAT(make(options).message(), ::testing::HasSubstr("not by scheduler async"));
  options = OnGpu();
  options.check_nan_inf = true;
  EXPECT_THAT(make(options).message(), ::testing::HasSubstr("check_nan_inf"));
  options = OnGpu();
  options.gc.policy = GcPolicy::kEvent;
  EXPECT_THAT(make(options).message(), ::testing::HasSubstr("collected at once"));
}

TEST_F(CudaGraphs, LeaveOutWhatTurnsOutNotToBeCapturable) {
  testing::ProgramBuilder builder(DType::kFloat32);
  builder.Feed("x", {4, 4}, DType::kFloat32);
  std::string last = "x";
  for (const char* const type : {"relu", "tanh", "test_wait_and_copy", "sigmoid", "exp"}) {
    builder.Call(type, {last}, std::string(type) + ".out");
    last = std::string(type) + ".out";
  }
  builder.Fetch(last);
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, OnGpu());
  ASSERT_THAT(core, IsOk());
  const Tensor x = TensorOf<float>({4, 4}, SomeValues<float>(16));
  const auto first = (*core)->Run({x});
  ASSERT_THAT(first, IsOk());
  for (int i = 0; i < 6; ++i) {
    const auto again = (*core)->Run({x});
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(testing::Values<float>((*again)[0]), testing::Values<float>((*first)[0]));
  }
  const GraphStats stats = (*core)->graph_stats().value_or(GraphStats{});
  EXPECT_THAT(stats.refused, ::testing::ElementsAre(::testing::HasSubstr("test_wait_and_copy")));
  EXPECT_EQ(stats.graphs, 2);
  EXPECT_EQ(stats.replays, 8);
}

// A run whose capture fails, and those after it, give what runs without graphs give.
TEST_F(CudaGraphs, LeaveNothingOfCapturesThatFail) {
  testing::ProgramBuilder builder(DType::kFloat32);
  builder.Feed("x", {64, 64}, DType::kFloat32);
  builder.AddOp(
      "uniform_random", {}, {{"Out", {"r"}}},
      {{"shape", std::vector<int64_t>{64, 64}}, {"min", 0.0f}, {"max", 1.0f}, {"dtype", 5}});
  builder.AddOp("matmul_v2", {{"X", {"x"}}, {"Y", {"r"}}}, {{"Out", {"a"}}});
  builder.Call("tanh", {"a"}, "b");
  builder.Call("test_wait_and_copy", {"b"}, "c");
  builder.Call("sigmoid", {"c"}, "d");
  builder.Fetch("r");
  builder.Fetch("d");
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, OnGpu());
  ASSERT_THAT(core, IsOk());
  CoreOptions plain = OnGpu();
  plain.cuda_graphs = false;
  const auto other = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, plain);
  ASSERT_THAT(other, IsOk());
  const Tensor x = TensorOf<float>({64, 64}, SomeValues<float>(64 * 64));
  for (int i = 0; i < 8; ++i) {
    const auto got = (*core)->Run({x});
    ASSERT_THAT(got, IsOk());
    const auto want = (*other)->Run({x});
    ASSERT_THAT(want, IsOk());
    for (size_t f = 0; f < 2; ++f) {
      EXPECT_EQ(testing::Values<float>((*got)[f]), testing::Values<float>((*want)[f])) << i;
    }
  }
  EXPECT_THAT((*core)->graph_stats()->refused, ::testing::SizeIs(1));
  EXPECT_GT((*core)->graph_stats()->replays, 0);
}

// The last use of what the host has copied is one that looks at its shape alone.
TEST_F(CudaGraphs, CollectWhatTheyOnlyKnowTheShapeOf) {
  testing::ProgramBuilder builder(DType::kFloat32);
  builder.Feed("x", {4, 4}, DType::kFloat32);
  builder.Call("test_wait_and_copy", {"x"}, "w");
  builder.Call("relu", {"w"}, "a");
  builder.AddOp("fill_constant_batch_size_like", {{"Input", {"x"}}}, {{"Out", {"c"}}},
                {{"shape", std::vector<int32_t>{-1, 4}}, {"value", 2.0f}, {"dtype", 5}});
  builder.AddOp("elementwise_add", {{"X", {"a"}}, {"Y", {"c"}}}, {{"Out", {"y"}}});
  builder.Fetch("y");
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, OnGpu());
  ASSERT_THAT(core, IsOk());
  const Tensor x = TensorOf<float>({4, 4}, SomeValues<float>(16));
  const auto first = (*core)->Run({x});
  ASSERT_THAT(first, IsOk());
  for (int i = 0; i < 6; ++i) {
    const auto again = (*core)->Run({x});
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(testing::Values<float>((*again)[0]), testing::Values<float>((*first)[0]));
  }
  EXPECT_THAT((*core)->graph_stats()->refused,
              ::testing::ElementsAre(::testing::HasSubstr("test_wait_and_copy")));
  EXPECT_EQ((*core)->graph_stats()->instructions, 3);
}

// What one graph gives is seen under another shape after a second one.
TEST_F(CudaGraphs, HandViewsOfTheirResultsOn) {
  testing::ProgramBuilder builder(DType::kFloat32);
  builder.Feed("x", {4, 4}, DType::kFloat32);
  builder.Call("relu", {"x"}, "a");
  builder.AddOp("matmul_v2", {{"X", {"a"}}, {"Y", {"a"}}}, {{"Out", {"b"}}});
  builder.Call("test_wait_and_copy", {"x"}, "w");
  builder.Declare("v", {2, 8});
  builder.AddOp("reshape2", {{"X", {"b"}}}, {{"Out", {"v"}}},
                {{"shape", std::vector<int32_t>{2, 8}}});
  builder.Call("exp", {"w"}, "e");
  builder.Call("test_wait_and_copy", {"e"}, "f");
  builder.Declare("g", {2, 8});
  builder.Call("scale", {"v"}, "g", {{"scale", 2.0f}});
  builder.Fetch("f");
  builder.Fetch("v");
  builder.Fetch("g");
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, OnGpu());
  ASSERT_THAT(core, IsOk());
  std::vector<std::vector<float>> first;
  const Tensor x = TensorOf<float>({4, 4}, SomeValues<float>(16));
  for (int i = 0; i < 9; ++i) {
    const auto got = (*core)->Run({x});
    ASSERT_THAT(got, IsOk());
    std::vector<std::vector<float>> values;
    for (const Tensor& tensor : *got) values.push_back(testing::Values<float>(tensor));
    if (i == 0) first = values;
    EXPECT_EQ(values, first);
  }
  EXPECT_GT((*core)->graph_stats()->replays, 4);
  EXPECT_LE((*core)->graph_stats()->captures, 6);
}

// In any order that edges allow, with what cannot be captured out of the way.
TEST_F(CudaGraphs, HaveAnOrderOfTheirOwn) {
  testing::ProgramBuilder builder(DType::kFloat32);
  builder.Feed("x", {4, 4}, DType::kFloat32);
  builder.AddOp("relu", {{"X", {"x"}}}, {{"Out", {"a"}}}, {});
  builder.AddOp(
      "uniform_random", {}, {{"Out", {"r"}}},
      {{"shape", std::vector<int64_t>{4, 4}}, {"min", 0.0f}, {"max", 1.0f}, {"dtype", 5}});
  builder.AddOp("tanh", {{"X", {"a"}}}, {{"Out", {"b"}}}, {});
  builder.AddOp("matmul_v2", {{"X", {"b"}}, {"Y", {"r"}}}, {{"Out", {"c"}}}, {});
  builder.Fetch("c");
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, OnGpu());
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
  EXPECT_THAT(dump, ::testing::ContainsRegex("  no_graph #[0-9]+ uniform_random: draws random"));
  const std::string json = PrintPlan(plan, PlanStage::kPlan, PlanFormat::kJson);
  EXPECT_THAT(json, ::testing::ContainsRegex("\"graphs\":? ?\\[\\["));
  EXPECT_THAT(TypesInNoGraph(plan),
              ::testing::ElementsAre(::testing::StartsWith("uniform_random (draws random")));
}

}  // namespace
}  // namespace interp::cuda_test
