// Long because every way to share out a batch is held to the same programs.
// Data-parallel training by ranks that are threads, against one process with the whole batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "core/program_parse.h"
#include "interpreter/train/trainer.h"
#include "passes/train/minimize.h"
#include "tests/testing/matchers.h"
#include "tests/testing/rank_team.h"

namespace interp::testing {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

// Clicks from two words and a number: an embedding, whose gradient is sparse or not, and two
// layers.
std::string Clicks(bool is_sparse) {
  return absl::StrCat(R"(block 0
  var table float32[11,4] param
  var w1 float32[4,3] param
  var w2 float32[3,1] param
  var ids int64[-1] check_feed
  var y float32[-1,1] check_feed
  var e float32[-1,4]
  var h float32[-1,3]
  var r float32[-1,3]
  var p float32[-1,1]
  var s float32[-1,1]
  var loss float32[1]
  lookup_table_v2(W=table, Ids=ids) -> (Out=e) {padding_idx=-1, is_sparse=)",
                      is_sparse ? "true" : "false", R"(}
  matmul_v2(X=e, Y=w1) -> (Out=h)
  tanh(X=h) -> (Out=r)
  matmul_v2(X=r, Y=w2) -> (Out=p)
  sigmoid_cross_entropy_with_logits(X=p, Label=y) -> (Out=s)
  mean(X=s) -> (Out=loss)
)");
}

absl::StatusOr<TrainingPrograms> Programs(bool is_sparse, const std::string& optimizer) {
  INTERP_ASSIGN_OR_RETURN(const Program forward, ParseProgram(Clicks(is_sparse)));
  INTERP_ASSIGN_OR_RETURN(const OptimizerSpec spec, ParseOptimizerSpec(optimizer));
  Program empty;
  empty.blocks.emplace_back();
  return Minimize(forward, empty, {.backward = {.loss = "loss"}, .optimizer = spec},
                  OpRegistry::Global());
}

Tensor Numbers(const Shape& shape, float scale) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.numel(); ++i) {
    values.push_back(static_cast<float>((i * 37 + 11) % 19 - 9) * scale);
  }
  return Tensor::Of<float>(shape, values);
}

struct Result {
  std::vector<float> losses;
  std::vector<float> logits;  // of the last batch
  std::vector<float> table;
};

// Seven steps. `batch` samples each, but for the last, which has one.
absl::StatusOr<Result> Train(const TrainingPrograms& programs, const std::shared_ptr<Rings>& rings,
                             int64_t batch,
                             const std::optional<MicroBatchOptions>& micro_batches = {}) {
  TrainerOptions options{
      .feeds = {"ids", "y"}, .fetches = {"loss", "p"}, .core = {.num_threads = 1, .rings = rings}};
  if (rings != nullptr) options.data_parallel = DataParallelOptions{.bucket_bytes = 40};
  options.micro_batches = micro_batches;
  INTERP_ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(programs.main, nullptr, options));
  INTERP_RETURN_IF_ERROR(trainer->Initialize(programs.startup));
  Scope& scope = *trainer->scope();
  const float own = rings == nullptr ? 1 : static_cast<float>(1 + rings->rank());
  scope.FindOrCreate("table")->tensor = Numbers({11, 4}, 0.05F * own);  // rank 0's count
  scope.FindOrCreate("w1")->tensor = Numbers({4, 3}, 0.1F * own);
  scope.FindOrCreate("w2")->tensor = Numbers({3, 1}, 0.2F * own);
  INTERP_RETURN_IF_ERROR(trainer->ShareState());
  Result result;
  for (int64_t step = 0; step < 7; ++step) {
    const int64_t samples = step == 6 ? 1 : batch;
    std::vector<int64_t> ids;
    std::vector<float> labels;
    for (int64_t i = 0; i < samples; ++i) {
      ids.push_back((step * 5 + i * 3) % 11);
      labels.push_back(static_cast<float>((ids.back() + i) % 2));
    }
    INTERP_ASSIGN_OR_RETURN(
        const auto fetched,
        trainer->Step({VectorOf<int64_t>(ids), Tensor::Of<float>({samples, 1}, labels)}));
    result.losses.push_back(*fetched[0].data<float>());
    result.logits = Values<float>(fetched[1]);
  }
  result.table = Values<float>(scope.Find("table")->tensor);
  return result;
}

std::vector<Result> TrainOnRanks(const TrainingPrograms& programs, int size, int64_t batch,
                                 const std::optional<MicroBatchOptions>& micro_batches = {}) {
  std::vector<Result> results(size);
  const ThreadRanksOptions slow{
      .size = size, .longest_delay = std::chrono::microseconds(300), .seed = 3};
  const auto statuses =
      OnAllRanks(slow, {.timeout = std::chrono::seconds(60), .check = true},
                 [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) {
                   INTERP_ASSIGN_OR_RETURN(results[rings->rank()],
                                           Train(programs, rings, batch, micro_batches));
                   return absl::OkStatus();
                 });
  for (const absl::Status& status : statuses) EXPECT_THAT(status, IsOk());
  return results;
}

TEST(DataParallelOfKernelsTest, HasTheLossesOfOneProcess) {
  for (const bool is_sparse : {false, true}) {
    for (const char* optimizer : {"sgd:learning_rate=0.5", "adam:learning_rate=0.05",
                                  "momentum:learning_rate=0.1,grad_clip_global_norm=0.2"}) {
      const auto programs = Programs(is_sparse, optimizer);
      ASSERT_THAT(programs, IsOk());
      const auto one = Train(*programs, nullptr, /*batch=*/6);
      ASSERT_THAT(one, IsOk());
      for (const int size : {1, 2, 3, 4}) {  // 6 samples over 4 ranks: 2, 2, 1, 1
        const std::vector<Result> many = TrainOnRanks(*programs, size, /*batch=*/6);
        for (const Result& result : many) {
          EXPECT_THAT(result.losses, Pointwise(FloatNear(1e-5F), one->losses)) << optimizer;
          EXPECT_THAT(result.logits, Pointwise(FloatNear(1e-5F), one->logits)) << optimizer;
          EXPECT_THAT(result.table, Pointwise(FloatNear(1e-5F), one->table)) << optimizer;
          EXPECT_EQ(result.table, many[0].table);  // the same bits everywhere
        }
      }
    }
  }
}

// Of 5 samples in 2 micro-batches, 3 ranks have 2, 2 and 1; of the last batch only the first has
// one.
TEST(DataParallelOfKernelsTest, RanksComputeTheirSharesInMicroBatches) {
  for (const bool is_sparse : {false, true}) {
    const auto programs =
        Programs(is_sparse, "momentum:learning_rate=0.1,grad_clip_global_norm=0.2");
    ASSERT_THAT(programs, IsOk());
    const auto one = Train(*programs, nullptr, /*batch=*/5);
    ASSERT_THAT(one, IsOk());
    for (const int size : {1, 2, 3}) {
      for (const int stages : {1, 2}) {
        const MicroBatchOptions halves{.micro_batches = 2, .stages = stages};
        const std::vector<Result> many = TrainOnRanks(*programs, size, /*batch=*/5, halves);
        for (const Result& result : many) {
          EXPECT_THAT(result.losses, Pointwise(FloatNear(1e-5F), one->losses)) << size;
          EXPECT_THAT(result.logits, Pointwise(FloatNear(1e-5F), one->logits)) << size;
          EXPECT_THAT(result.table, Pointwise(FloatNear(1e-5F), one->table)) << size;
          EXPECT_EQ(result.table, many[0].table);
        }
      }
    }
  }
}

constexpr char kCounts[] = R"(block 0
  var x float32[-1,2] check_feed
  var w float32[2,1] param
  var c float32[1] persistable
  var h float32[-1,1]
  var loss float32[1]
  var loss@GRAD float32[1]
  var h@GRAD float32[-1,1]
  var w@GRAD float32[2,1]
  var lr float32[1] persistable
  increment(X=c) -> (Out=c) {step=1.0}
  mul(X=x, Y=w) -> (Out=h)
  mean(X=h) -> (Out=loss) {op_role=256}
  fill_constant() -> (Out=loss@GRAD) {shape=longs:[1], value=1.0, dtype=5, op_role=257}
  mean_grad(X=h, Out@GRAD=loss@GRAD) -> (X@GRAD=h@GRAD) {op_role=1}
  mul_grad(X=x, Y=w, Out@GRAD=h@GRAD) -> (Y@GRAD=w@GRAD) {op_role=1}
  sgd(Param=w, Grad=w@GRAD, LearningRate=lr) -> (ParamOut=w) {op_role=2}
)";

absl::StatusOr<std::unique_ptr<Trainer>> CountsInFourParts(const std::shared_ptr<Rings>& rings) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(kCounts));
  const TrainerOptions options{.feeds = {"x"},
                               .fetches = {"loss"},
                               .data_parallel = DataParallelOptions{},
                               .micro_batches = MicroBatchOptions{.micro_batches = 4},
                               .core = {.num_threads = 1, .rings = rings}};
  INTERP_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(std::move(program), nullptr, options));
  Scope& scope = *trainer->scope();
  scope.FindOrCreate("w")->tensor = Numbers({2, 1}, 0.1F);
  scope.FindOrCreate("lr")->tensor = Tensor::Of<float>({1}, {0.5F});
  scope.FindOrCreate("c")->tensor = Tensor::Of<float>({1}, {0});
  return trainer;
}

// 7 samples are 4 of rank 0, one for each micro-batch, and 3 of rank 1.
TEST(DataParallelOfKernelsTest, RanksRefuseTheSameBatchesOfTooFewSamplesAndGoOn) {
  const auto statuses = OnAllRanks(
      {.size = 2}, {.timeout = std::chrono::seconds(2)},
      [](const std::shared_ptr<Rings>& rings, ThreadRanks&) {
        INTERP_ASSIGN_OR_RETURN(const auto trainer, CountsInFourParts(rings));
        EXPECT_THAT(trainer->Step({Numbers({7, 2}, 1)}),
                    FailsWith(absl::StatusCode::kInvalidArgument,
                              "a batch has 7 samples for 4 micro-batches on each of 2 ranks: those "
                              "without samples would change 'c'"));
        return trainer->Step({Numbers({8, 2}, 1)}).status();
      });
  for (const absl::Status& status : statuses) EXPECT_THAT(status, IsOk());
}

TEST(DataParallelOfKernelsTest, AnErrorOfOneRankBeforeItsStepReachesTheOthers) {
  const auto statuses =
      OnAllRanks({.size = 2}, {.timeout = std::chrono::seconds(60)},
                 [](const std::shared_ptr<Rings>& rings, ThreadRanks&) {
                   INTERP_ASSIGN_OR_RETURN(const auto trainer, CountsInFourParts(rings));
                   const int64_t samples = rings->rank() == 0 ? 8 : 0;
                   return trainer->Step({Numbers({samples, 2}, 1)}).status();
                 });
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument, "feed 'x' has no samples"));
  }
}

// Centered by a running mean, which it reads in the step that follows.
constexpr char kCentered[] = R"(block 0
  var x float32[-1,2] check_feed
  var w float32[2,1] param
  var m float32[2] persistable
  var lr float32[1] persistable
  var b float32[2]
  var old float32[2]
  var new float32[2]
  var c float32[-1,2]
  var h float32[-1,1]
  var loss float32[1]
  var loss@GRAD float32[1]
  var h@GRAD float32[-1,1]
  var w@GRAD float32[2,1]
  reduce_mean(X=x) -> (Out=b) {dim=[0]}
  scale(X=m) -> (Out=old) {scale=0.75}
  scale(X=b) -> (Out=new) {scale=0.25}
  sum(X=[old, new]) -> (Out=m)
  elementwise_sub(X=x, Y=m) -> (Out=c) {axis=-1}
  mul(X=c, Y=w) -> (Out=h)
  mean(X=h) -> (Out=loss) {op_role=256}
  fill_constant() -> (Out=loss@GRAD) {shape=longs:[1], value=1.0, dtype=5, op_role=257}
  mean_grad(X=h, Out@GRAD=loss@GRAD) -> (X@GRAD=h@GRAD) {op_role=1}
  mul_grad(X=c, Y=w, Out@GRAD=h@GRAD) -> (Y@GRAD=w@GRAD) {op_role=1}
  sgd(Param=w, Grad=w@GRAD, LearningRate=lr) -> (ParamOut=w) {op_role=2}
)";

struct Centered {
  std::vector<float> w = {0.5F, -1};
  std::vector<float> m = {0, 0};
};

absl::Status TrainCentered(const std::shared_ptr<Rings>& rings, int first, int last,
                           Centered& state) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(kCentered));
  const TrainerOptions options{.feeds = {"x"},
                               .fetches = {"loss"},
                               .data_parallel = DataParallelOptions{},
                               .core = {.num_threads = 1, .rings = rings}};
  INTERP_ASSIGN_OR_RETURN(const auto trainer,
                          Trainer::Create(std::move(program), nullptr, options));
  Scope& scope = *trainer->scope();
  scope.FindOrCreate("w")->tensor = Tensor::Of<float>({2, 1}, state.w);
  scope.FindOrCreate("m")->tensor = Tensor::Of<float>({2}, state.m);
  scope.FindOrCreate("lr")->tensor = Tensor::Of<float>({1}, {0.5F});
  INTERP_RETURN_IF_ERROR(trainer->ShareState());
  for (int step = first; step < last; ++step) {
    const float scale = 0.1F * static_cast<float>(1 + step);
    INTERP_RETURN_IF_ERROR(trainer->Step({Numbers({7, 2}, scale)}).status());
  }
  state.w = Values<float>(scope.Find("w")->tensor);
  state.m = Values<float>(scope.Find("m")->tensor);
  return absl::OkStatus();
}

TEST(DataParallelOfKernelsTest, WhatRank0HasIsAllThatATrainingGoesOnFrom) {
  const auto train = [](int first, int last, std::vector<Centered>& states) {
    const auto statuses =
        OnAllRanks({.size = 2}, {.timeout = std::chrono::seconds(60), .check = true},
                   [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) {
                     return TrainCentered(rings, first, last, states[rings->rank()]);
                   });
    for (const absl::Status& status : statuses) EXPECT_THAT(status, IsOk());
  };
  std::vector<Centered> whole(2);
  train(0, 4, whole);
  EXPECT_EQ(whole[0].m, whole[1].m);
  EXPECT_NE(whole[0].m, Centered().m);
  std::vector<Centered> parts(2);
  train(0, 2, parts);
  parts[1] = Centered();  // ranks other than 0 start anew
  train(2, 4, parts);
  for (const Centered& part : parts) {
    EXPECT_EQ(part.w, whole[0].w);
    EXPECT_EQ(part.m, whole[0].m);
  }
}

// A bucket goes out once the last micro-batch has its part of it, while the rest is computed.
TEST(DataParallelOfKernelsTest, BucketsStartInTheLastMicroBatch) {
  const auto programs = Programs(/*is_sparse=*/false, "sgd:learning_rate=0.5");
  ASSERT_THAT(programs, IsOk());
  TrainerOptions options{.feeds = {"ids", "y"},
                         .fetches = {"loss"},
                         .data_parallel = DataParallelOptions{.bucket_bytes = 1},
                         .micro_batches = MicroBatchOptions{.micro_batches = 2}};
  const auto trainer = Trainer::Create(programs->main, nullptr, options);
  ASSERT_THAT(trainer, IsOk());
  const Plan& plan = (*trainer)->core().plan();
  std::string order;
  for (const InstrId id : plan.order) {
    const absl::string_view type = plan.instructions[id].op_type;
    if (absl::StrContains(type, "bucket") || absl::StrContains(type, "matmul_v2_grad")) {
      absl::StrAppend(&order, type, " ");
    }
  }
  EXPECT_EQ(order,
            "matmul_v2_grad matmul_v2_grad matmul_v2_grad c_bucket_allreduce matmul_v2_grad "
            "c_bucket_allreduce c_bucket_allreduce c_bucket_wait c_bucket_wait c_bucket_wait ");
}

// The sum over two ranks of [unit, 2 unit] times a weight, from a bucket with another value in
// front; of rank 0 and of rank 1.
template <typename T>
void ExpectWeightedSum(std::array<float, 2> units, std::array<double, 2> weights, T expected) {
  const std::string dtype(Name(DTypeOf<T>));
  const std::string text = absl::StrReplaceAll(R"(block 0
  var a DTYPE[1] check_feed
  var x DTYPE[2] check_feed
  var w float64[1] check_feed
  var bucket DTYPE[-1]
  var b DTYPE[1]
  var y DTYPE[2]
  c_bucket_allreduce(X=[a, x], Weight=w) -> (Bucket=bucket)
  c_bucket_wait(X=[a, x], Bucket=bucket) -> (Out=[b, y])
)",
                                               {{"DTYPE", dtype}});
  const auto statuses =
      OnAllRanks({.size = 2}, {}, [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) {
        INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(text));
        INTERP_ASSIGN_OR_RETURN(const auto core,
                                InterpreterCore::Create(std::move(program), {"a", "x", "w"}, {"y"},
                                                        nullptr, {.rings = rings}));
        const float unit = units[rings->rank()];
        INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> fetched,
                                core->Run({VectorOf<T>({T(9)}), VectorOf<T>({T(unit), T(2 * unit)}),
                                           VectorOf<double>({weights[rings->rank()]})}));
        EXPECT_EQ(fetched[0].data<T>()[0], expected) << dtype;
        EXPECT_EQ(fetched[0].data<T>()[1], T(2) * expected) << dtype;
        return absl::OkStatus();
      });
  for (const absl::Status& status : statuses) EXPECT_THAT(status, IsOk());
}

TEST(DataParallelOfKernelsTest, AddsUpBucketsOfAllFloats) {
  constexpr std::array<float, 2> kUnits = {1, 4};
  constexpr std::array<double, 2> kWeights = {0.25, 0.75};
  ExpectWeightedSum(kUnits, kWeights, 3.25F);
  ExpectWeightedSum(kUnits, kWeights, 3.25);
  ExpectWeightedSum(kUnits, kWeights, float16(3.25F));
  ExpectWeightedSum(kUnits, kWeights, bfloat16(3.25F));
}

// A third as 16 bits is 0.1 % off, as float32 1e-8.
TEST(DataParallelOfKernelsTest, RoundsWeightedGradientsOnce) {
  constexpr std::array<float, 2> kUnits = {5, 0};
  constexpr std::array<double, 2> kWeights = {1.0 / 3, 2.0 / 3};
  ExpectWeightedSum(kUnits, kWeights, 5 * (1.0F / 3));
  ExpectWeightedSum(kUnits, kWeights, 5 * (1.0 / 3));
  ExpectWeightedSum(kUnits, kWeights, float16(5.0F / 3));
  ExpectWeightedSum(kUnits, kWeights, bfloat16(5.0F / 3));
}

TEST(DataParallelOfKernelsTest, StartsBucketsWhileTheBackwardPartGoesOn) {
  const auto programs = Programs(/*is_sparse=*/false, "sgd:learning_rate=0.5");
  ASSERT_THAT(programs, IsOk());
  TrainerOptions options{.feeds = {"ids", "y"},
                         .fetches = {"loss"},
                         .data_parallel = DataParallelOptions{.bucket_bytes = 1}};
  const auto trainer = Trainer::Create(programs->main, nullptr, options);
  ASSERT_THAT(trainer, IsOk());
  const Plan& plan = (*trainer)->core().plan();
  std::string order;
  for (const InstrId id : plan.order) {
    const absl::string_view type = plan.instructions[id].op_type;
    if (absl::StrContains(type, "bucket") || absl::StrContains(type, "matmul_v2_grad") ||
        absl::StrContains(type, "lookup") || type == "sgd") {
      absl::StrAppend(&order, type, " ");
    }
  }
  EXPECT_EQ(order,
            "lookup_table_v2 matmul_v2_grad c_bucket_allreduce matmul_v2_grad c_bucket_allreduce "
            "lookup_table_v2_grad c_bucket_allreduce c_bucket_wait sgd c_bucket_wait sgd "
            "c_bucket_wait sgd ");
}

TEST(DataParallelOfKernelsTest, GivesTheSameBitsInEveryRun) {
  const auto programs = Programs(/*is_sparse=*/true, "adam:learning_rate=0.05");
  ASSERT_THAT(programs, IsOk());
  const std::vector<Result> first = TrainOnRanks(*programs, 3, /*batch=*/5);
  const std::vector<Result> again = TrainOnRanks(*programs, 3, /*batch=*/5);
  EXPECT_EQ(first[0].losses, again[0].losses);
  EXPECT_EQ(first[0].table, again[0].table);
}

}  // namespace
}  // namespace interp::testing
