// Replicas of programs of real kernels: what tests/interpreter/train/replicas_test.cc cannot have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/train/trainer.h"
#include "passes/minimize.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

// The embedding of words, weighed by w.
constexpr char kEmbedding[] = R"(block 0
  var table float32[7,2] param
  var w float32[2,1] param
  var ids int64[-1] check_feed
  var y float32[-1,1] check_feed
  var e float32[-1,2]
  var p float32[-1,1]
  var d float32[-1,1]
  var s float32[-1,1]
  var loss float32[1]
  lookup_table_v2(W=table, Ids=ids) -> (Out=e) {is_sparse=true, padding_idx=-1}
  matmul_v2(X=e, Y=w) -> (Out=p)
  elementwise_sub(X=p, Y=y) -> (Out=d)
  square(X=d) -> (Out=s)
  mean(X=s) -> (Out=loss)
)";

struct Result {
  std::vector<float> losses;
  std::vector<float> table;
};

Result Train(const std::string& optimizer, int replicas) {
  const absl::StatusOr<Program> forward = ParseProgram(kEmbedding);
  EXPECT_THAT(forward, IsOk());
  const absl::StatusOr<OptimizerSpec> spec = ParseOptimizerSpec(optimizer);
  EXPECT_THAT(spec, IsOk());
  Program empty;
  empty.blocks.emplace_back();
  absl::StatusOr<TrainingPrograms> programs = Minimize(
      *forward, empty, {.backward = {.loss = "loss"}, .optimizer = *spec}, OpRegistry::Global());
  EXPECT_THAT(programs, IsOk());
  auto trainer = Trainer::Create(std::move(programs->main), nullptr,
                                 {.feeds = {"ids", "y"},
                                  .fetches = {"loss"},
                                  .replicas = replicas,
                                  .core = {.num_threads = 1}});
  EXPECT_THAT(trainer, IsOk());
  EXPECT_THAT((*trainer)->Initialize(programs->startup), IsOk());
  Scope& scope = *(*trainer)->scope();
  scope.FindOrCreate("table")->tensor = Tensor::Of<float>(
      {7, 2}, {0.1F, 0.2F, 0.3F, -0.4F, 0.5F, 0.6F, -0.7F, 0.8F, 0.9F, 1, -1.1F, 1.2F, 1.3F, 1.4F});
  scope.FindOrCreate("w")->tensor = Tensor::Of<float>({2, 1}, {0.5F, -1});
  Result result;
  for (int64_t step = 0; step < 6; ++step) {
    const std::vector<int64_t> ids = {step, 3, step, (step + 2) % 7, 6};
    const Tensor y = Tensor::Of<float>({5, 1}, {1, 2, 3, 4, 5});
    const auto fetched = (*trainer)->Step({VectorOf<int64_t>(ids), y});
    EXPECT_THAT(fetched, IsOk());
    if (fetched.ok()) result.losses.push_back(*(*fetched)[0].data<float>());
  }
  result.table = Values<float>(scope.Find("table")->tensor);
  return result;
}

TEST(ReplicasOfKernelsTest, SelectedRowsAreJoined) {
  for (const char* optimizer :
       {"sgd:learning_rate=0.1", "adam:learning_rate=0.1,lazy_mode=true",
        "sgd:learning_rate=0.1,grad_clip_global_norm=0.5,lr_schedule=exponential,"
        "decay_steps=2,decay_rate=0.5"}) {
    const Result one = Train(optimizer, 1);
    for (const int replicas : {2, 3}) {
      const Result many = Train(optimizer, replicas);
      EXPECT_THAT(many.losses, Pointwise(FloatNear(1e-5F), one.losses)) << optimizer;
      EXPECT_THAT(many.table, Pointwise(FloatNear(1e-5F), one.table)) << optimizer;
    }
  }
}

}  // namespace
}  // namespace interp::testing
