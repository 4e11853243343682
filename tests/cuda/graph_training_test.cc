// Training with dropout in graphs: a step is one graph, and masks are new in each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/analysis/graphs.h"
#include "interpreter/train/trainer.h"
#include "passes/train/minimize.h"
#include "tests/cuda/graph_test.h"

namespace interp::cuda_test {
namespace {

using testing::IsOk;

// loss = mean(dropout(tanh(dropout(x w1)) w2)^2), by momentum; what is not dropped are d and e.
absl::StatusOr<TrainingPrograms> MakePrograms() {
  testing::TestProgram main(DType::kFloat32);
  testing::TestProgram startup(DType::kFloat32);
  main.Feed("x", {-1, 6}, DType::kFloat32);
  const auto add_parameter = [&](const std::string& name, const std::vector<int64_t>& dims) {
    main.Param(name, dims);
    startup.Param(name, dims);
    startup.AddOp("uniform_random", {}, {{"Out", {name}}}, {{"shape", dims}, {"dtype", 5}});
  };
  const auto add_dropout = [&](const std::string& x, const std::string& out, int64_t width) {
    const std::string mask = out + ".mask";
    main.Declare(mask, {-1, width}, DType::kUInt8);
    main.AddOp(
        "dropout", {{"X", {x}}}, {{"Out", {out}}, {"Mask", {mask}}},
        {{"dropout_prob", 0.4f}, {"dropout_implementation", std::string("upscale_in_train")}});
  };
  add_parameter("w1", {6, 16});
  add_parameter("w2", {16, 3});
  main.Declare("a", {-1, 16}).Declare("d", {-1, 16}).Declare("t", {-1, 16});
  main.Declare("b", {-1, 3}).Declare("e", {-1, 3}).Declare("s", {-1, 3}).Declare("loss", {1});
  main.AddOp("matmul_v2", {{"X", {"x"}}, {"Y", {"w1"}}}, {{"Out", {"a"}}});
  add_dropout("a", "d", 16);
  main.Call("tanh", {"d"}, "t");
  main.AddOp("matmul_v2", {{"X", {"t"}}, {"Y", {"w2"}}}, {{"Out", {"b"}}});
  add_dropout("b", "e", 3);
  main.Call("square", {"e"}, "s").Call("mean", {"s"}, "loss");
  INTERP_ASSIGN_OR_RETURN(const OptimizerSpec spec,
                          ParseOptimizerSpec("momentum:learning_rate=0.1,momentum=0.9"));
  return Minimize(main.Build(), startup.Build(), {.backward = {.loss = "loss"}, .optimizer = spec},
                  OpRegistry::Global());
}

// Which elements a dropout has kept.
std::vector<bool> Kept(const Tensor& dropped) {
  std::vector<bool> kept;
  for (const float value : testing::Values<float>(dropped)) kept.push_back(value != 0);
  return kept;
}

constexpr int kSteps = 8;

struct TrainingInGraphs {
  std::vector<float> losses;
  std::vector<std::vector<bool>> masks;  // two a step
  GraphStats stats;
  std::vector<std::string> not_in_graphs;
};

absl::StatusOr<TrainingInGraphs> TrainInGraphs(CoreOptions options, int micro_batches = 0) {
  INTERP_ASSIGN_OR_RETURN(const TrainingPrograms programs, MakePrograms());
  options.random_seed = 11;
  const Place place = options.plan.place;
  TrainerOptions trainer_options{
      .feeds = {"x"}, .fetches = {"loss", "d", "e"}, .core = std::move(options)};
  if (micro_batches > 0) {
    trainer_options.micro_batches =
        MicroBatchOptions{.micro_batches = micro_batches, .place = place};
  }
  INTERP_ASSIGN_OR_RETURN(const auto trainer,
                          Trainer::Create(programs.main, nullptr, trainer_options));
  INTERP_RETURN_IF_ERROR(trainer->Initialize(programs.startup));
  TrainingInGraphs result;
  for (int step = 0; step < kSteps; ++step) {
    INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> fetched,
                            trainer->Step({{TensorOf<float>({8, 6}, SomeValues<float>(48))}}));
    result.losses.push_back(testing::Values<float>(fetched[0])[0]);
    result.masks.push_back(Kept(fetched[1]));
    result.masks.push_back(Kept(fetched[2]));
  }
  result.stats = trainer->core().graph_stats().value_or(GraphStats{});
  result.not_in_graphs = TypesInNoGraph(trainer->core().plan());
  return result;
}

class CudaGraphTraining : public KernelTest {
 protected:
  // In graphs, on a GPU without and on the host.
  void TrainThreeWays(int micro_batches) {
    CoreOptions plain = InGraphs();
    plain.cuda_graphs = false;
    const auto in_graphs = TrainInGraphs(InGraphs(), micro_batches);
    const auto without = TrainInGraphs(plain, micro_batches);
    const auto on_host = TrainInGraphs({}, micro_batches);
    ASSERT_THAT(in_graphs, IsOk());
    ASSERT_THAT(without, IsOk());
    ASSERT_THAT(on_host, IsOk());
    EXPECT_EQ(in_graphs->losses, without->losses);
    ExpectClose(in_graphs->losses, on_host->losses);
    EXPECT_EQ(in_graphs->masks, without->masks);
    EXPECT_EQ(in_graphs->masks, on_host->masks);
    const std::set<std::vector<bool>> different(in_graphs->masks.begin(), in_graphs->masks.end());
    EXPECT_EQ(different.size(), in_graphs->masks.size());
    EXPECT_THAT(in_graphs->not_in_graphs, ::testing::IsEmpty());
    EXPECT_THAT(in_graphs->stats.refused, ::testing::IsEmpty());
    training_ = *in_graphs;
  }

  TrainingInGraphs training_;
};

TEST_F(CudaGraphTraining, WithDropoutIsOneGraphAStep) {
  TrainThreeWays(/*micro_batches=*/0);
  EXPECT_EQ(training_.stats.graphs, 1);
  EXPECT_EQ(training_.stats.captures, 1);
  EXPECT_EQ(training_.stats.replays, kSteps - 2);
}

// Those of a micro-batch are of an op of its own.
TEST_F(CudaGraphTraining, DropsOtherElementsInEachMicroBatch) {
  TrainThreeWays(/*micro_batches=*/2);
  EXPECT_GE(training_.stats.replays, kSteps - 2);
}

}  // namespace
}  // namespace interp::cuda_test
