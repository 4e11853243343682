// Programs of earlier releases, whose ops list more than their definitions have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/train/trainer.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

// A run with inputs that only earlier releases give, and where they are.
struct OldRun {
  OpRun run;
  std::vector<size_t> retired;  // ascending
};

std::vector<OldRun> OldGradients() {
  Tensor probabilities = Tensor::Of<float>({2, 3}, {0.1F, 0.2F, 0.7F, 0.3F, 0.3F, 0.4F});
  return {
      {{"cross_entropy_grad",
        {{"X", probabilities},
         {"Label", Tensor::Of<int64_t>({2, 1}, {2, 0})},
         {"Y", Numbers({2, 1}, 1)},
         {"Y@GRAD", Numbers({2, 1}, 2)}},
        {"X@GRAD"},
        ""},
       {2}},
      {{"dropout_grad",
        {{"X", Numbers({2, 3}, 1)},
         {"Out", Numbers({2, 3}, 2)},
         {"Mask", Tensor::Of<uint8_t>({2, 3}, {1, 0, 1, 1, 0, 0})},
         {"Out@GRAD", Numbers({2, 3}, 3)},
         {"Mask@GRAD", Numbers({2, 3}, 4)}},
        {"X@GRAD"},
        "dropout_prob=0.5"},
       {0, 1, 4}},
      {{"lrn_grad",
        {{"X", Numbers({1, 2, 2, 2}, 1)},
         {"Out", Numbers({1, 2, 2, 2}, 2)},
         {"MidOut", Tensor::Of<float>({1, 2, 2, 2}, {1, 2, 3, 4, 4, 3, 2, 1})},
         {"Out@GRAD", Numbers({1, 2, 2, 2}, 3)},
         {"MidOut@GRAD", Numbers({1, 2, 2, 2}, 4)}},
        {"X@GRAD"},
        ""},
       {4}},
      {{"conv2d_grad",
        {{"Input", Numbers({1, 2, 4, 4}, 1)},
         {"Filter", Numbers({3, 2, 3, 3}, 2)},
         {"Output", Numbers({1, 3, 2, 2}, 3)},
         {"Output@GRAD", Numbers({1, 3, 2, 2}, 4)}},
        {"Input@GRAD", "Filter@GRAD"},
        "strides=[1, 1], paddings=[0, 0], dilations=[1, 1], groups=1"},
       {2}},
      {{"mul_grad",
        {{"X", Numbers({2, 3}, 1)},
         {"Y", Numbers({3, 4}, 2)},
         {"Out", Numbers({2, 4}, 3)},
         {"Out@GRAD", Numbers({2, 4}, 4)}},
        {"X@GRAD", "Y@GRAD"},
        ""},
       {2}},
  };
}

TEST(RetiredSlotsTest, GradientsComputeWhatTheyDoWithout) {
  for (const OldRun& old : OldGradients()) {
    OpRun fresh = old.run;
    for (auto it = old.retired.rbegin(); it != old.retired.rend(); ++it) {
      fresh.inputs.erase(fresh.inputs.begin() + static_cast<int64_t>(*it));
    }
    EXPECT_TRUE(SameBits(OutputsOf(old.run), OutputsOf(fresh))) << ProgramText(old.run);
  }
}

TEST(RetiredSlotsTest, RegionsTellTheirImageByLod) {
  const std::vector<std::pair<std::string, Tensor>> inputs = {
      {"X", Numbers({2, 1, 4, 4}, 1)},
      {"ROIs", [] {
         Tensor rois = Tensor::Of<float>({2, 4}, {0, 0, 2, 2, 1, 1, 3, 3});
         rois.lod = {{0, 1, 2}};
         return rois;
       }()}};
  const std::string attrs = "pooled_height=2, pooled_width=2, spatial_scale=1.0";
  for (const char* type : {"roi_align", "roi_pool"}) {
    OpRun run = {type, inputs, {"Out"}, attrs};
    const std::vector<Tensor> expected = OutputsOf(run);
    run.inputs.emplace_back("RoisLod", Tensor::Of<int64_t>({3}, {0, 1, 2}));
    EXPECT_TRUE(SameBits(OutputsOf(run), expected)) << type;
  }
}

TEST(RetiredSlotsTest, MisspeltSlotsAreErrors) {
  OpRun run = OldGradients().back().run;
  run.inputs[2].first = "Outs";
  ExpectRefusals({{run, "mul_grad: has no input 'Outs'"}});
}

// One step of Paddle 1.5, which is cut into two replicas.
TEST(RetiredSlotsTest, TrainersTakeThem) {
  const absl::StatusOr<Program> main = ParseProgram(R"(block 0
  var x float32[-1,2] check_feed
  var w float32[2,1] param
  var lr float32[1] persistable
  var y float32[-1,1]
  var loss float32[1]
  var loss@GRAD float32[1]
  var y@GRAD float32[-1,1]
  var w@GRAD float32[2,1]
  mul(X=x, Y=w) -> (Out=y)
  mean(X=y) -> (Out=loss) {op_role=256}
  fill_constant() -> (Out=loss@GRAD) {shape=[1], value=1.0, dtype=5, op_role=257}
  mean_grad(X=y, Out=loss, Out@GRAD=loss@GRAD) -> (X@GRAD=y@GRAD) {op_role=1}
  mul_grad(X=x, Y=w, Out=y, Out@GRAD=y@GRAD) -> (X@GRAD=@EMPTY@, Y@GRAD=w@GRAD) {op_role=1, op_role_var=["w", "w@GRAD"]}
  sgd(Param=w, Grad=w@GRAD, LearningRate=lr) -> (ParamOut=w) {op_role=2, op_role_var=["w", "w@GRAD"]}
)");
  ASSERT_THAT(main, IsOk());
  for (const int replicas : {1, 2}) {
    const auto trainer = Trainer::Create(
        *main, nullptr, {.feeds = {"x"}, .fetches = {"loss"}, .replicas = replicas, .core = {}});
    ASSERT_THAT(trainer, IsOk());
    Scope& scope = *(*trainer)->scope();
    scope.FindOrCreate("w")->tensor = Tensor::Of<float>({2, 1}, {1, 2});
    scope.FindOrCreate("lr")->tensor = VectorOf<float>({0.5F});
    ASSERT_THAT((*trainer)->Step({Tensor::Of<float>({2, 2}, {1, 2, 3, 4})}), IsOk());
    EXPECT_THAT(Values<float>(scope.Find("w")->tensor), ::testing::ElementsAre(0, 0.5F));
  }
}

}  // namespace
}  // namespace interp::testing
