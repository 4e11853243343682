#include "interpreter/train/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "absl/strings/str_replace.h"
#include "core/machine/usable_cpus.h"
#include "core/program_parse.h"
#include "interpreter/train/checkpoint.h"
#include "interpreter/train/trainer.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe.h"
#include "tests/testing/temp_folder.h"
#include "tests/testing/train_ops.h"

namespace interp::testing {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kBatch = 10;

CoreOptions Options() {
  CoreOptions options{.num_threads = 1};
  options.ops = &TrainOps();
  return options;
}

absl::StatusOr<std::unique_ptr<Trainer>> TryTrainer(int replicas, const std::string& text,
                                                    std::vector<std::string> fetches,
                                                    const CoreOptions& core) {
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  auto trainer = Trainer::Create(
      *std::move(program), nullptr,
      {.feeds = {"x", "y"}, .fetches = std::move(fetches), .replicas = replicas, .core = core});
  if (!trainer.ok()) return trainer;
  (*trainer)->scope()->FindOrCreate("w")->tensor = VectorOf<float>({0.5, -1, 2});
  (*trainer)->scope()->FindOrCreate("s")->tensor = VectorOf<float>({4});
  return trainer;
}

std::unique_ptr<Trainer> MakeTrainer(int replicas, bool with_noise = false,
                                     std::vector<std::string> fetches = {"loss"},
                                     const CoreOptions& core = Options()) {
  auto trainer = TryTrainer(replicas, RegressionText(with_noise), std::move(fetches), core);
  EXPECT_THAT(trainer, IsOk());
  return *std::move(trainer);
}

// Samples of y = x0 - 2 x1 + 3 x2, others for each step.
std::vector<Tensor> BatchOf(int64_t step, int64_t count = kBatch) {
  std::vector<float> x;
  std::vector<float> y;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<float>(step * count + i);
    x.insert(x.end(), {std::sin(at), std::cos(2 * at), std::sin(3 * at + 1)});
    const float* row = x.data() + 3 * i;
    y.push_back(row[0] - 2 * row[1] + 3 * row[2]);
  }
  return {Tensor::Of<float>(Shape{count, 3}, x), Tensor::Of<float>(Shape{count}, y)};
}

// Losses of so many steps.
std::vector<float> Train(Trainer& trainer, int64_t steps, int64_t count = kBatch) {
  std::vector<float> losses;
  for (int64_t i = 0; i < steps; ++i) {
    const auto fetched = trainer.Step(BatchOf(trainer.num_steps(), count));
    EXPECT_THAT(fetched, IsOk());
    if (fetched.ok()) losses.push_back(*(*fetched)[0].data<float>());
  }
  return losses;
}

std::vector<float> ValueOf(const Trainer& trainer, const std::string& name) {
  return Values<float>(trainer.scope()->Find(name)->tensor);
}

// Not those that the machine has: a container may be granted fewer.
TEST(ReplicasTest, DivideTheUsableCpus) {
  CoreOptions options = Options();
  options.num_threads = 0;
  for (const int count : {2, 3}) {
    EXPECT_EQ(MakeTrainer(count, false, {"loss"}, options)->core().num_threads(),
              std::max(1, UsableCpus() / count));
  }
}

class ReplicaCountTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, ReplicaCountTest, ::testing::Values(2, 3, 4, 10));

TEST_P(ReplicaCountTest, FollowOneCore) {
  const auto one = MakeTrainer(1);
  const auto many = MakeTrainer(GetParam());
  EXPECT_THAT(Train(*many, 30), Pointwise(FloatNear(1e-5F), Train(*one, 30)));
  EXPECT_THAT(ValueOf(*many, "w"), Pointwise(FloatNear(1e-5F), ValueOf(*one, "w")));
  EXPECT_EQ(many->num_steps(), 30);
}

TEST_P(ReplicaCountTest, TakeBatchesOfFewerSamples) {
  const auto one = MakeTrainer(1);
  const auto many = MakeTrainer(GetParam());
  for (const int64_t count : {1, 10, 2, 3}) {
    EXPECT_THAT(Train(*many, 1, count), Pointwise(FloatNear(1e-5F), Train(*one, 1, count)));
  }
}

TEST_P(ReplicaCountTest, GiveTheSameBitsInEveryRun) {
  const auto first = MakeTrainer(GetParam(), /*with_noise=*/true);
  const std::vector<float> losses = Train(*first, 8);
  for (int run = 0; run < 20; ++run) {
    const auto again = MakeTrainer(GetParam(), /*with_noise=*/true);
    ASSERT_EQ(Train(*again, 8), losses);
    ASSERT_EQ(ValueOf(*again, "w"), ValueOf(*first, "w"));
    ASSERT_EQ(ValueOf(*again, "s"), ValueOf(*first, "s"));
  }
}

TEST_P(ReplicaCountTest, GoOnToTheSameBits) {
  const TempFolder folder;
  const DataOrder order{.num_samples = 100, .batches = {.batch_size = 10}};
  const auto whole = MakeTrainer(GetParam(), /*with_noise=*/true);
  Train(*whole, 3);
  auto checkpoints = Checkpoints::Open(folder.path());
  ASSERT_THAT(checkpoints, IsOk());
  ASSERT_THAT(checkpoints->Write(*whole, {.epoch = 0, .batch = 3}, order, 1), IsOk());
  const std::vector<float> losses = Train(*whole, 4);
  const auto resumed = MakeTrainer(GetParam(), /*with_noise=*/true);
  ASSERT_THAT(checkpoints->Restore(*resumed, order), IsOk());
  EXPECT_EQ(Train(*resumed, 4), losses);
  EXPECT_EQ(ValueOf(*resumed, "w"), ValueOf(*whole, "w"));
  EXPECT_EQ(ValueOf(*resumed, "s"), ValueOf(*whole, "s"));
}

TEST(ReplicasTest, DrawFromStreamsOfTheirOwn) {
  const auto trainer = MakeTrainer(2, /*with_noise=*/true, {"seen"});
  const Tensor zeros = Tensor::Of<float>(Shape{2, 3}, std::vector<float>(6));
  const auto fetched = trainer->Step({zeros, VectorOf<float>({0, 0})});
  ASSERT_THAT(fetched, IsOk());
  const std::vector<float> seen = Values<float>((*fetched)[0]);
  EXPECT_NE(std::vector<float>(seen.begin(), seen.begin() + 3),
            std::vector<float>(seen.begin() + 3, seen.end()));
}

TEST(ReplicasTest, FetchRowsMeansAndWhatTheUpdateLeaves) {
  const auto one = MakeTrainer(1, false, {"p", "loss", "w", "counted", "s", "w@GRAD"});
  const auto two = MakeTrainer(2, false, {"p", "loss", "w", "counted", "s", "w@GRAD"});
  const auto want = one->Step(BatchOf(0));
  const auto got = two->Step(BatchOf(0));
  ASSERT_THAT(want, IsOk());
  ASSERT_THAT(got, IsOk());
  for (const size_t i : {0, 1, 2, 5}) {
    EXPECT_EQ((*got)[i].shape, (*want)[i].shape) << i;
    EXPECT_THAT(Values<float>((*got)[i]), Pointwise(FloatNear(1e-5F), Values<float>((*want)[i])));
  }
  EXPECT_THAT(Values<int64_t>((*got)[3]), ElementsAre(3));
  EXPECT_EQ(Values<float>((*got)[4]), ValueOf(*two, "s"));
  // They stay as they are when training goes on.
  const std::vector<float> gradient = Values<float>((*got)[5]);
  Train(*two, 2);
  EXPECT_EQ(Values<float>((*got)[5]), gradient);
}

TEST(ReplicasTest, StatesBecomeThoseOfTheFirst) {
  const auto trainer = MakeTrainer(2);
  const std::vector<Tensor> batch = BatchOf(0);
  ASSERT_THAT(trainer->Step(batch), IsOk());
  const float* x = batch[0].data<float>();
  float sum = 0;
  for (int i = 0; i < 15; ++i) sum += x[i];
  EXPECT_THAT(ValueOf(*trainer, "s"), ElementsAre(FloatNear(0.9F * 4 + 0.1F * sum / 15, 1e-6F)));
}

TEST(ReplicasTest, AnErrorInOneLeavesEverythingAsItWas) {
  for (const int bad : {0, 1, 2}) {
    const auto whole = MakeTrainer(3, /*with_noise=*/true);
    const auto failing = MakeTrainer(3, /*with_noise=*/true);
    Train(*whole, 2);
    Train(*failing, 2);
    std::vector<Tensor> batch = BatchOf(9, 9);
    batch[0].mutable_data<float>()[bad * 9] = -1000;
    for (int again = 0; again < 3; ++again) {
      EXPECT_THAT(failing->Step(batch), FailsWith(StatusCode::kInvalidArgument,
                                                  "replica " + std::to_string(bad) + ": op #"));
    }
    EXPECT_EQ(failing->num_steps(), 2);
    EXPECT_EQ(ValueOf(*failing, "w"), ValueOf(*whole, "w"));
    EXPECT_EQ(ValueOf(*failing, "s"), ValueOf(*whole, "s"));
    EXPECT_EQ(Train(*failing, 2), Train(*whole, 2));
  }
}

TEST(ReplicasTest, NoMemoryLeavesEverythingAsItWas) {
  auto left = std::make_shared<std::atomic<int>>(1 << 30);
  CoreOptions options = Options();
  options.fail_allocation = [left](size_t) { return left->fetch_sub(1) == 0; };
  const auto whole = MakeTrainer(2);
  const auto failing = MakeTrainer(2, false, {"loss"}, options);
  int failed = 0;
  for (int at = 0; at < 40; ++at) {
    left->store(at);
    const auto step = failing->Step(BatchOf(failing->num_steps()));
    left->store(1 << 30);
    if (step.ok()) {
      Train(*whole, 1);
    } else {
      ++failed;
      EXPECT_THAT(step, FailsWith(StatusCode::kResourceExhausted, ""));
    }
    ASSERT_EQ(ValueOf(*failing, "w"), ValueOf(*whole, "w")) << at;
  }
  EXPECT_GT(failed, 5);
  EXPECT_EQ(Train(*failing, 2), Train(*whole, 2));
}

TEST(ReplicasTest, ExceptionsBecomeErrors) {
  Probe probe;
  probe.SetHook([](int32_t tag) {
    if (tag == 1) throw std::runtime_error("thrown");
  });
  const auto trainer = MakeTrainer(2);
  EXPECT_THAT(trainer->Step(BatchOf(0)), FailsWith(StatusCode::kInternal, "thrown"));
}

TEST(ReplicasTest, ATimeoutIsOfTheWholeStep) {
  const auto trainer = MakeTrainer(2);
  EXPECT_THAT(trainer->Step(BatchOf(0), {.timeout = std::chrono::nanoseconds(1)}),
              FailsWith(StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(ValueOf(*trainer, "w"), ElementsAre(0.5, -1, 2));
  EXPECT_THAT(trainer->Step(BatchOf(0), {.timeout = std::chrono::hours(1)}), IsOk());
}

TEST(ReplicasTest, RunSideBySide) {
  Probe probe;
  std::atomic<int> inside{0};
  probe.SetHook([&](int32_t tag) {
    if (tag != 1) return;
    ++inside;
    // Ends only once the others are there, too.
    while (inside.load() < 3) std::this_thread::yield();
  });
  Train(*MakeTrainer(3), 1);
  EXPECT_EQ(inside.load(), 3);
}

TEST(ReplicasTest, SayWhatTheyCannotDo) {
  const auto make = [](const std::vector<std::pair<std::string, std::string>>& changes,
                       const CoreOptions& options = Options()) {
    return TryTrainer(2, absl::StrReplaceAll(RegressionText(false), changes), {"loss"}, options);
  };
  EXPECT_THAT(make({{"op_role=2}", "op_role=0}"}}),
              FailsWith(StatusCode::kInvalidArgument, "and 0 of the update"));
  EXPECT_THAT(make({{"guard(X=x) -> (Out=guarded) {op_role=0, tag=1}",
                     "guard(X=x) -> (Out=guarded) {op_role=0, tag=1}\n"
                     "  guard(X=w) -> (Out=w) {op_role=16}"}}),
              FailsWith(StatusCode::kInvalidArgument, "uses 'w' after ops of the update do"));
  EXPECT_THAT(make({{", Grad=w@GRAD", ", Grad=x"}}),
              FailsWith(StatusCode::kUnimplemented, "the update reads 'x', which is fed"));
  EXPECT_THAT(make({{"  descend(Param=w, Grad=w@GRAD)",
                     "  track(X=w@GRAD, State=s) -> (StateOut=s) {op_role=1}\n"
                     "  descend(Param=w, Grad=s)"}}),
              FailsWith(StatusCode::kUnimplemented,
                        "'s', a persistable variable that the backward part changes: replicas"));
  EXPECT_THAT(
      make({{"(WGrad=w@GRAD) {op_role=1}", "(WGrad=w@GRAD) {op_role=2}"}}),
      FailsWith(StatusCode::kUnimplemented, "', whose rows are samples: replicas have some"));
  CoreOptions on_device = Options();
  on_device.plan.place = {PlaceKind::kSim, 0};
  EXPECT_THAT(make({}, on_device), FailsWith(StatusCode::kUnimplemented, "sim:0"));
  const auto whole =
      make({{"x float32[-1,3]", "x float32[10,3]"}, {"y float32[-1]", "y float32[10]"}});
  ASSERT_THAT(whole, IsOk());
  EXPECT_THAT((*whole)->Step(BatchOf(0)),
              FailsWith(StatusCode::kInvalidArgument, "no feed is declared with -1"));
  const auto trainer = MakeTrainer(2);
  trainer->scope()->Erase("w");
  EXPECT_THAT(trainer->Step(BatchOf(0)), FailsWith(StatusCode::kNotFound, "'w' has no value"));
}

TEST(ReplicasTest, FetchesThatDifferAreErrorsBeforeTheUpdate) {
  const auto text = absl::StrReplaceAll(RegressionText(false), {{"count(X=w)", "count(X=seen)"}});
  const auto trainer = TryTrainer(2, text, {"counted"}, Options());
  ASSERT_THAT(trainer, IsOk());
  EXPECT_THAT((*trainer)->Step(BatchOf(0)), IsOk());  // 15 elements in both
  const std::vector<float> w = ValueOf(**trainer, "w");
  EXPECT_THAT((*trainer)->Step(BatchOf(0, 3)),
              FailsWith(StatusCode::kInvalidArgument, "'counted': is int64[1] and differs"));
  EXPECT_EQ(ValueOf(**trainer, "w"), w);
}

}  // namespace
}  // namespace interp::testing
