// What graphs touch: memory that they keep, that others hold or still use, and what captures that
// fail leave.
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/graph_test.h"

namespace interp::cuda_test {
namespace {

using testing::IsOk;

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

class CudaGraphMemory : public CudaGraphs {};

// An update in place must not change what somebody else has a share of.
TEST_F(CudaGraphMemory, LeaveParametersAloneThatSomebodyElseHolds) {
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

TEST_F(CudaGraphMemory, LeaveResultsAloneThatSomebodyElseHolds) {
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
TEST_F(CudaGraphMemory, AwaitWhatOtherStreamsStillDo) {
  testing::TestProgram builder(DType::kFloat32);
  builder.Feed("x", {64, 64}, DType::kFloat32);
  builder.Param("m", {64, 64});
  builder.Call("relu", {"x"}, "a").Call("tanh", {"a"}, "b").Call("sigmoid", {"b"}, "c");
  builder.Call("scale", {"b"}, "m", {{"scale", 2.0f}, {"execution_stream", std::string("side")}});
  builder.Fetch("c");
  CoreOptions options = InGraphs();
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
TEST_F(CudaGraphMemory, ShareNoMemoryWithTheRestOfARun) {
  testing::TestProgram builder(DType::kFloat32);
  builder.Feed("x", {8, 8}, DType::kFloat32);
  builder.Call("test_wait_and_copy", {"x"}, "r");
  builder.Call("relu", {"x"}, "a");
  builder.AddOp("matmul_v2", {{"X", {"a"}}, {"Y", {"a"}}}, {{"Out", {"b"}}});
  builder.AddOp("matmul_v2", {{"X", {"b"}}, {"Y", {"b"}}}, {{"Out", {"c"}}});
  builder.Call("test_wait_and_copy", {"c"}, "d");
  builder.AddOp("elementwise_add", {{"X", {"d"}}, {"Y", {"r"}}}, {{"Out", {"e"}}}, {});
  builder.Call("exp", {"e"}, "f");
  builder.Fetch("f");
  const std::unique_ptr<InterpreterCore> core = MakeCore(builder);
  Holder holder(*core, "r");
  std::vector<Tensor> held;  // so that each run finds memory elsewhere
  ExpectSameRuns(*core, TensorOf<float>({8, 8}, SomeValues<float>(64)), 9, &holder,
                 [&] { held.push_back(holder.Take()); });
  EXPECT_GT(core->graph_stats()->replays, 4);
}

TEST_F(CudaGraphMemory, LeaveOutWhatTurnsOutNotToBeCapturable) {
  testing::TestProgram builder(DType::kFloat32);
  builder.Feed("x", {4, 4}, DType::kFloat32);
  std::string last = "x";
  for (const char* const type : {"relu", "tanh", "test_wait_and_copy", "sigmoid", "exp"}) {
    builder.Call(type, {last}, std::string(type) + ".out");
    last = std::string(type) + ".out";
  }
  builder.Fetch(last);
  const std::unique_ptr<InterpreterCore> core = MakeCore(builder);
  ExpectSameRuns(*core, TensorOf<float>({4, 4}, SomeValues<float>(16)), 7);
  const GraphStats stats = core->graph_stats().value_or(GraphStats{});
  EXPECT_THAT(stats.refused, ::testing::ElementsAre(::testing::HasSubstr("test_wait_and_copy")));
  EXPECT_EQ(stats.graphs, 2);
  EXPECT_EQ(stats.replays, 8);
}

// A run whose capture fails, and those after it, give what runs without graphs give.
TEST_F(CudaGraphMemory, LeaveNothingOfCapturesThatFail) {
  testing::TestProgram builder(DType::kFloat32);
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
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, InGraphs());
  ASSERT_THAT(core, IsOk());
  CoreOptions plain = InGraphs();
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
TEST_F(CudaGraphMemory, CollectWhatTheyOnlyKnowTheShapeOf) {
  testing::TestProgram builder(DType::kFloat32);
  builder.Feed("x", {4, 4}, DType::kFloat32);
  builder.Call("test_wait_and_copy", {"x"}, "w");
  builder.Call("relu", {"w"}, "a");
  builder.AddOp("fill_constant_batch_size_like", {{"Input", {"x"}}}, {{"Out", {"c"}}},
                {{"shape", std::vector<int32_t>{-1, 4}}, {"value", 2.0f}, {"dtype", 5}});
  builder.AddOp("elementwise_add", {{"X", {"a"}}, {"Y", {"c"}}}, {{"Out", {"y"}}});
  builder.Fetch("y");
  const std::unique_ptr<InterpreterCore> core = MakeCore(builder);
  ExpectSameRuns(*core, TensorOf<float>({4, 4}, SomeValues<float>(16)), 7);
  EXPECT_THAT(core->graph_stats()->refused,
              ::testing::ElementsAre(::testing::HasSubstr("test_wait_and_copy")));
  EXPECT_EQ(core->graph_stats()->instructions, 3);
}

// What one graph gives is seen under another shape after a second one.
TEST_F(CudaGraphMemory, HandViewsOfTheirResultsOn) {
  testing::TestProgram builder(DType::kFloat32);
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
  const std::unique_ptr<InterpreterCore> core = MakeCore(builder);
  ExpectSameRuns(*core, TensorOf<float>({4, 4}, SomeValues<float>(16)), 9);
  EXPECT_GT(core->graph_stats()->replays, 4);
  EXPECT_LE(core->graph_stats()->captures, 6);
}

}  // namespace
}  // namespace interp::cuda_test
