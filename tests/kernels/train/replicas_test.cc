// Replicas of programs of real kernels: what tests/interpreter/train/replicas_test.cc cannot have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/train/trainer.h"
#include "passes/train/minimize.h"
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

// The same with a loop of three trips, and a count of the shares that were computed.
constexpr char kLoop[] = R"(block 0
  var table float32[7,2] param
  var w float32[2,1] param
  var count float32[1] persistable stop_gradient
  var ids int64[-1] check_feed
  var y float32[-1,1] check_feed
  var e float32[-1,2]
  var i int64[1] stop_gradient
  var n int64[1] stop_gradient
  var more bool[1] stop_gradient
  var steps step_scopes
  var p float32[-1,1]
  var d float32[-1,1]
  var s float32[-1,1]
  var loss float32[1]
  increment(X=count) -> (Out=count) {step=1.0}
  lookup_table_v2(W=table, Ids=ids) -> (Out=e) {is_sparse=true, padding_idx=-1}
  fill_constant() -> (Out=i) {shape=[1], dtype=3, value=0.0}
  fill_constant() -> (Out=n) {shape=[1], dtype=3, value=3.0}
  less_than(X=i, Y=n) -> (Out=more)
  while(Condition=more, X=[e, i, n]) -> (Out=[e, i, more], StepScopes=steps) {sub_block=block:1, is_test=false}
  matmul_v2(X=e, Y=w) -> (Out=p)
  elementwise_sub(X=p, Y=y) -> (Out=d)
  square(X=d) -> (Out=s)
  mean(X=s) -> (Out=loss)
block 1 parent=0
  var t float32[-1,2]
  sin(X=e) -> (Out=t)
  assign(X=t) -> (Out=e)
  increment(X=i) -> (Out=i) {step=1.0}
  less_than(X=i, Y=n) -> (Out=more)
)";

struct Shares {
  int replicas = 1;
  int micro_batches = 1;
};

struct Result {
  std::vector<float> losses;
  std::vector<float> table;
  std::vector<float> w;
  std::vector<float> count;
};

Result Train(const char* text, const std::string& optimizer, Shares shares) {
  const absl::StatusOr<Program> forward = ParseProgram(text);
  EXPECT_THAT(forward, IsOk());
  const absl::StatusOr<OptimizerSpec> spec = ParseOptimizerSpec(optimizer);
  EXPECT_THAT(spec, IsOk());
  Program empty;
  empty.blocks.emplace_back();
  absl::StatusOr<TrainingPrograms> programs = Minimize(
      *forward, empty, {.backward = {.loss = "loss"}, .optimizer = *spec}, OpRegistry::Global());
  EXPECT_THAT(programs, IsOk());
  TrainerOptions options{.feeds = {"ids", "y"},
                         .fetches = {"loss"},
                         .replicas = shares.replicas,
                         .core = {.num_threads = 1}};
  if (shares.micro_batches > 1) {
    options.micro_batches = MicroBatchOptions{.micro_batches = shares.micro_batches};
  }
  auto trainer = Trainer::Create(std::move(programs->main), nullptr, options);
  EXPECT_THAT(trainer, IsOk());
  EXPECT_THAT((*trainer)->Initialize(programs->startup), IsOk());
  Scope& scope = *(*trainer)->scope();
  scope.FindOrCreate("table")->tensor = Tensor::Of<float>(
      {7, 2}, {0.1F, 0.2F, 0.3F, -0.4F, 0.5F, 0.6F, -0.7F, 0.8F, 0.9F, 1, -1.1F, 1.2F, 1.3F, 1.4F});
  scope.FindOrCreate("w")->tensor = Tensor::Of<float>({2, 1}, {0.5F, -1});
  scope.FindOrCreate("count")->tensor = Tensor::Of<float>({1}, {0});
  Result result;
  for (int64_t step = 0; step < 6; ++step) {
    const std::vector<int64_t> ids = {step, 3, step, (step + 2) % 7, 6};
    const Tensor y = Tensor::Of<float>({5, 1}, {1, 2, 3, 4, 5});
    const auto fetched = (*trainer)->Step({VectorOf<int64_t>(ids), y});
    EXPECT_THAT(fetched, IsOk());
    if (fetched.ok()) result.losses.push_back(*(*fetched)[0].data<float>());
  }
  result.table = Values<float>(scope.Find("table")->tensor);
  result.w = Values<float>(scope.Find("w")->tensor);
  result.count = Values<float>(scope.Find("count")->tensor);
  return result;
}

TEST(ReplicasOfKernelsTest, SelectedRowsAreJoined) {
  for (const char* optimizer :
       {"sgd:learning_rate=0.1", "adam:learning_rate=0.1,lazy_mode=true",
        "sgd:learning_rate=0.1,grad_clip_global_norm=0.5,lr_schedule=exponential,"
        "decay_steps=2,decay_rate=0.5"}) {
    const Result one = Train(kEmbedding, optimizer, {});
    for (const Shares shares : {Shares{2, 1}, Shares{3, 1}, Shares{2, 2}}) {
      const Result many = Train(kEmbedding, optimizer, shares);
      EXPECT_THAT(many.losses, Pointwise(FloatNear(1e-5F), one.losses)) << optimizer;
      EXPECT_THAT(many.table, Pointwise(FloatNear(1e-5F), one.table)) << optimizer;
    }
  }
}

// Of 5 samples: as many shares as samples, fewer, and more.
TEST(ReplicasOfKernelsTest, SharesOfAProgramWithALoopTakeTurns) {
  for (const char* optimizer :
       {"sgd:learning_rate=0.1", "momentum:learning_rate=0.1,momentum=0.9"}) {
    const Result one = Train(kLoop, optimizer, {});
    EXPECT_LT(one.losses.back(), one.losses.front());
    for (const Shares shares :
         {Shares{1, 2}, Shares{1, 5}, Shares{2, 2}, Shares{3, 3}, Shares{2, 1}}) {
      const Result many = Train(kLoop, optimizer, shares);
      EXPECT_THAT(many.losses, Pointwise(FloatNear(1e-5F), one.losses)) << optimizer;
      EXPECT_THAT(many.table, Pointwise(FloatNear(1e-5F), one.table)) << optimizer;
      EXPECT_THAT(many.w, Pointwise(FloatNear(1e-5F), one.w)) << optimizer;
      EXPECT_EQ(Train(kLoop, optimizer, shares).table, many.table);
    }
  }
}

// What a share makes of a state is there for the next share of its replica; the first one's stays.
TEST(ReplicasOfKernelsTest, StatesGoFromShareToShare) {
  const auto count = [](Shares shares) {
    return Train(kLoop, "sgd:learning_rate=0.1", shares).count[0];
  };
  EXPECT_EQ(count({}), 6);
  EXPECT_EQ(count({1, 3}), 18);
  EXPECT_EQ(count({2, 2}), 12);
}

}  // namespace
}  // namespace interp::testing
