#include "interpreter/predictor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/machine/usable_cpus.h"
#include "interpreter/compile/compiled_program.h"
#include "interpreter/load_model.h"
#include "interpreter/plan_file/plan_file.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/temp_folder.h"
#include "tests/testing/test_program.h"

namespace interp::testing {
namespace {

using absl::StatusCode;
using std::chrono::milliseconds;

PredictorOptions Options(int num_streams) {
  PredictorOptions options{.num_streams = num_streams};
  options.core.ops = &ProbeOps();
  return options;
}

// w = update(w, x)
Program Updates() {
  return TestProgram(DType::kInt64)
      .Feed("x", {-1})
      .Param("w", {-1})
      .AddOp("update", {{"Param", {"w"}}, {"X", {"x"}}}, {{"ParamOut", {"w"}}}, {{"tag", 1}})
      .Fetch("w")
      .Build();
}

// z = mix(mix(x, w), y)
Program Mixes() {
  return TestProgram(DType::kInt64)
      .Feed("x", {-1})
      .Feed("y", {-1})
      .Param("w", {-1})
      .AddOp("mix", {{"X", {"x", "w"}}}, {{"Out", {"t"}}}, {{"tag", 1}})
      .AddOp("mix", {{"X", {"t", "y"}}}, {{"Out", {"z"}}}, {{"tag", 2}})
      .Fetch("z")
      .Build();
}

std::unique_ptr<Predictor> MakePredictor(const Program& program, int num_streams) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({5, 7});
  auto predictor = Predictor::Create(program, scope, Options(num_streams));
  EXPECT_THAT(predictor, IsOk());
  return predictor.ok() ? *std::move(predictor) : nullptr;
}

std::vector<int64_t> Values(const Tensor& tensor) {
  return {tensor.data<int64_t>(), tensor.data<int64_t>() + tensor.numel()};
}

TEST(PredictorTest, DescribesWhatGoesInAndComesOut) {
  const auto predictor = MakePredictor(Mixes(), 2);
  ASSERT_EQ(predictor->inputs().size(), 2u);
  EXPECT_EQ(predictor->inputs()[1].name, "y");
  EXPECT_EQ(predictor->inputs()[1].dtype, DType::kInt64);
  EXPECT_EQ(predictor->inputs()[1].dims, std::vector<int64_t>{-1});
  ASSERT_EQ(predictor->outputs().size(), 1u);
  EXPECT_EQ(predictor->outputs()[0].name, "z");
}

TEST(PredictorTest, TakesFeedsByNameInAnyOrder) {
  const auto predictor = MakePredictor(Mixes(), 1);
  const Tensor x = VectorOf<int64_t>({1, 2});
  const Tensor y = VectorOf<int64_t>({3, 4});
  const auto ordered = predictor->Run({x, y});
  ASSERT_THAT(ordered, IsOk());
  const auto named = predictor->Run({{"y", y}, {"x", x}});
  ASSERT_THAT(named, IsOk());
  EXPECT_EQ((*named)[0].first, "z");
  EXPECT_EQ(Values((*named)[0].second), Values((*ordered)[0]));
  EXPECT_NE(Values((*named)[0].second), Values((*predictor->Run({y, x}))[0]));

  const auto invalid = StatusCode::kInvalidArgument;
  EXPECT_THAT(predictor->Run({{"x", x}, {"q", y}}),
              FailsWith(invalid, "feed 'q' is unknown; inputs are x, y"));
  EXPECT_THAT(predictor->Run({{"x", x}, {"x", y}}), FailsWith(invalid, "feed 'x' is there twice"));
  EXPECT_THAT(predictor->Run({NamedTensor{"x", x}}), FailsWith(invalid, "input 'y' is not fed"));
}

TEST(PredictorTest, WritesToMemoryOfTheCaller) {
  const auto predictor = MakePredictor(Mixes(), 1);
  const std::vector<Tensor> feeds = {VectorOf<int64_t>({1, 2}), VectorOf<int64_t>({3, 4})};
  std::vector<int64_t> memory(3, -1);
  const auto outputs = predictor->RunInto(feeds, {{memory.data(), sizeof(int64_t) * 3}});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ((*outputs)[0].raw_data(), memory.data());
  EXPECT_EQ(Values((*outputs)[0]), Values((*predictor->Run(feeds))[0]));
  EXPECT_EQ(memory[2], -1);

  const std::vector<int64_t> before = memory;
  EXPECT_THAT(predictor->RunInto(feeds, {{memory.data(), 8}}),
              FailsWith(StatusCode::kInvalidArgument,
                        "output 'z' is int64[2], 16 bytes, but the memory for it has 8"));
  EXPECT_EQ(memory, before);
  EXPECT_THAT(predictor->RunInto(feeds, {}),
              FailsWith(StatusCode::kInvalidArgument, "memory for 0 outputs, expected 1"));
}

TEST(PredictorTest, ManyThreadsGetTheirOwnResults) {
  for (const int num_streams : {1, 3}) {
    const auto predictor = MakePredictor(Mixes(), num_streams);
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        const std::vector<Tensor> feeds = {VectorOf<int64_t>({t, 2 * t}),
                                           VectorOf<int64_t>({3, 4})};
        const std::vector<int64_t> expected = Values((*predictor->Run(feeds))[0]);
        for (int i = 0; i < 200; ++i) {
          const auto result = predictor->Run(feeds);
          if (!result.ok() || Values((*result)[0]) != expected) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(PredictorTest, ProgramsThatWriteParametersHaveOneStream) {
  EXPECT_EQ(MakePredictor(Updates(), 4)->num_streams(), 1);
  EXPECT_EQ(MakePredictor(Mixes(), 4)->num_streams(), 4);
}

// y = mix(x, v), where each run writes the persistable v = mix(w) first: its own, so that runs may
// go side by side, unless somebody wants what they leave.
TEST(PredictorTest, WhatEachRunWritesFirstIsItsOwn) {
  Program program = TestProgram(DType::kInt64)
                        .Feed("x", {-1})
                        .Param("w", {2})
                        .Declare("v", {2})
                        .AddOp("mix", {{"X", {"w"}}}, {{"Out", {"v"}}}, {{"tag", 1}})
                        .AddOp("mix", {{"X", {"x", "v"}}}, {{"Out", {"y"}}}, {{"tag", 2}})
                        .Fetch("y")
                        .Build();
  for (Var& var : program.blocks[0].vars) var.persistable |= program.NameOf(var.id) == "v";
  const auto predictor = MakePredictor(program, 2);
  EXPECT_EQ(predictor->num_streams(), 2);
  PredictorOptions keeps = Options(2);
  keeps.core.passes.disable = {"local_temporaries"};
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({5, 7});
  const auto keeping = Predictor::Create(program, scope, keeps);
  ASSERT_THAT(keeping, IsOk());
  EXPECT_EQ((*keeping)->num_streams(), 1);
  const Tensor x = VectorOf<int64_t>({1, 2});
  const auto own = predictor->Run({x});
  const auto kept = (*keeping)->Run({x});
  ASSERT_THAT(own, IsOk());
  ASSERT_THAT(kept, IsOk());
  EXPECT_EQ(Values((*own)[0]), Values((*kept)[0]));
  EXPECT_TRUE(scope->Find("v")->tensor.has_memory());
}

// A training on a device leaves them there.
TEST(PredictorTest, ParametersOnADeviceAreBroughtBackOnce) {
  PredictorOptions on_device = Options(1);
  on_device.core.plan.place = {PlaceKind::kSim, 0};
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({7, 8});
  const auto trainer = Predictor::Create(Updates(), scope, on_device);
  ASSERT_THAT(trainer, IsOk());
  const auto predictor = Predictor::Create(Mixes(), scope, Options(2));
  ASSERT_THAT(predictor, IsOk());
  const std::vector<Tensor> feeds = {VectorOf<int64_t>({1, 2}), VectorOf<int64_t>({3, 4})};
  for (int round = 0; round < 20; ++round) {
    ASSERT_THAT((*trainer)->Run({VectorOf<int64_t>({round, 5})}), IsOk());
    ASSERT_FALSE(scope->Find("w")->tensor.place().on_host());
    std::vector<int64_t> results[2];
    std::vector<std::thread> threads;
    for (std::vector<int64_t>& result : results) {
      threads.emplace_back([&] { result = Values((*(*predictor)->Run(feeds))[0]); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(scope->Find("w")->tensor.place().on_host());
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], Values((*(*predictor)->Run(feeds))[0]));
  }
}

// Holds all kernels up until it is let go.
class Gate {
 public:
  Gate() {
    probe_.SetHook([this](int32_t) {
      inside_ = true;
      while (!open_) std::this_thread::sleep_for(milliseconds(1));
    });
  }
  ~Gate() { open_ = true; }
  void WaitUntilInside() const {
    while (!inside_) std::this_thread::sleep_for(milliseconds(1));
  }
  void Open() { open_ = true; }

 private:
  std::atomic<bool> inside_ = false;
  std::atomic<bool> open_ = false;
  Probe probe_;
};

TEST(PredictorTest, ACallEndsWhenAStopIsRequested) {
  const auto predictor = MakePredictor(Mixes(), 1);
  const std::vector<Tensor> feeds = {VectorOf<int64_t>({1, 2}), VectorOf<int64_t>({3, 4})};
  const std::vector<int64_t> expected = Values((*predictor->Run(feeds))[0]);
  std::stop_source computing;
  std::stop_source waiting;
  {
    Gate gate;
    absl::Status first;
    absl::Status second;
    std::thread a([&] { first = predictor->Run(feeds, {.stop = computing.get_token()}).status(); });
    gate.WaitUntilInside();
    std::thread b([&] { second = predictor->Run(feeds, {.stop = waiting.get_token()}).status(); });
    waiting.request_stop();
    b.join();
    EXPECT_THAT(second, FailsWith(StatusCode::kCancelled, "the call was cancelled"));
    EXPECT_THAT(predictor->Run(feeds, {.timeout = milliseconds(5)}),
                FailsWith(StatusCode::kDeadlineExceeded, "all 1 streams were busy"));
    computing.request_stop();
    gate.Open();
    a.join();
    EXPECT_THAT(first, FailsWith(StatusCode::kCancelled, "cancelled"));
  }
  EXPECT_EQ(Values((*predictor->Run(feeds))[0]), expected);
  EXPECT_THAT(predictor->Run(feeds, {.stop = computing.get_token()}),
              FailsWith(StatusCode::kCancelled, "cancelled"));
}

TEST(PredictorTest, ATimeOutMayBeAsLongAsThereIs) {
  const auto predictor = MakePredictor(Mixes(), 1);
  const std::vector<Tensor> feeds = {VectorOf<int64_t>({1, 2}), VectorOf<int64_t>({3, 4})};
  EXPECT_THAT(predictor->Run(feeds, {.timeout = std::chrono::nanoseconds::max()}), IsOk());
}

TEST(PredictorTest, OnlyStreamsAndWorkersThatThereAreDivideTheCpus) {
  PredictorOptions options = Options(2);
  options.core.num_workers = 2;
  options.core.scheduler = SchedulerKind::kAsync;
  const auto threads = [&](const Program& program) {
    const auto predictor = Predictor::Create(program, nullptr, options);
    EXPECT_THAT(predictor, IsOk());
    return (*predictor)->core().num_threads();
  };
  EXPECT_EQ(threads(Mixes()), std::max(1, UsableCpus() / 4));
  EXPECT_EQ(threads(Updates()), std::max(1, UsableCpus() / 2));
  options.core.scheduler = SchedulerKind::kTrace;
  EXPECT_EQ(threads(Mixes()), std::max(1, UsableCpus() / 2));
  EXPECT_EQ(threads(Updates()), UsableCpus());
}

// It would wait for an instruction that never becomes ready.
TEST(PredictorTest, PlansThatAreNotProvedAreRefused) {
  const OpRegistry& ops = OpRegistry::Global();
  if (ops.Find("relu") == nullptr) GTEST_SKIP() << "built without kernels";
  Program program = TestProgram()
                        .Feed("x", {2})
                        .Call("relu", {"x"}, "t")
                        .Call("relu", {"t"}, "y")
                        .Fetch("y")
                        .Build();
  auto compiled = Compile(std::move(program), {}, {}, {}, {}, ops);
  ASSERT_THAT(compiled, IsOk());
  const TempFolder folder;
  ASSERT_THAT(SavePlan(*compiled, folder / "good.plan"), IsOk());
  EXPECT_THAT(Predictor::Load(folder / "good.plan"), IsOk());
  ++compiled->plans[0].dep_counts.back();
  ASSERT_THAT(SavePlan(*compiled, folder / "bad.plan"), IsOk());
  EXPECT_THAT(Predictor::Load(folder / "bad.plan"),
              FailsWith(StatusCode::kInvalidArgument, "bad.plan: not proved"));
  absl::StatusOr<Model> model = LoadModel(folder / "bad.plan", std::nullopt);
  ASSERT_THAT(model, IsOk());  // to be shown
  EXPECT_THAT(TakeCompiled(*model), FailsWith(StatusCode::kInvalidArgument, "not proved"));
}

TEST(PredictorTest, StreamsAreCounted) {
  EXPECT_THAT(Predictor::Create(Mixes(), nullptr, Options(0)),
              FailsWith(StatusCode::kInvalidArgument, "num_streams is 0"));
}

}  // namespace
}  // namespace interp::testing
