// Steps in micro-batches, on one place and through pipelines, of networks of real kernels.
#include "interpreter/train/micro_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/program_builder.h"
#include "interpreter/inspect/job_times.h"
#include "interpreter/train/trainer.h"
#include "passes/train/minimize.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using absl::StatusCode;
using ::testing::FloatNear;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Pointwise;

struct Net {
  TrainingPrograms programs;
  std::string loss;
  Shape sample;
};

Net Finish(ProgramBuilder& net, Value loss, Shape sample, const std::string& optimizer) {
  const std::string name = net.NameOf(loss);
  absl::StatusOr<BuiltProgram> built = net.Finish();
  EXPECT_THAT(built, IsOk());
  const absl::StatusOr<OptimizerSpec> spec = ParseOptimizerSpec(optimizer);
  EXPECT_THAT(spec, IsOk());
  absl::StatusOr<TrainingPrograms> programs =
      Minimize(built->main, built->startup, {.backward = {.loss = name}, .optimizer = *spec},
               OpRegistry::Global());
  EXPECT_THAT(programs, IsOk());
  return {.programs = *std::move(programs), .loss = name, .sample = std::move(sample)};
}

Net Lenet() {
  ProgramBuilder net;
  const Value x = net.Data("x", {-1, 1, 28, 28});
  const Value y = net.Data("y", {-1, 1}, DType::kInt64);
  Value h = net.Pool2d(net.Conv2d(x, {.filters = 4, .size = 5, .act = "relu"}), {.size = 2});
  h = net.Pool2d(net.Conv2d(h, {.filters = 6, .size = 5, .act = "relu"}), {.size = 2});
  h = net.Fc(net.Flatten(h), 32, {.act = "relu"});
  const Value loss = net.Mean(net.SoftmaxWithCrossEntropy(net.Fc(h, 10), y));
  return Finish(net, loss, {1, 28, 28},
                "adam:learning_rate=0.002,weight_decay=0.001,grad_clip_global_norm=0.8");
}

// So many layers of one size.
Net Mlp(int layers, int64_t width = 16,
        const std::string& optimizer = "momentum:learning_rate=0.1,momentum=0.9") {
  ProgramBuilder net;
  Value h = net.Data("x", {-1, width});
  const Value y = net.Data("y", {-1, 1}, DType::kInt64);
  for (int i = 0; i < layers; ++i) h = net.Fc(h, width, {.act = "tanh"});
  const Value loss = net.Mean(net.SoftmaxWithCrossEntropy(h, y));
  return Finish(net, loss, {width}, optimizer);
}

std::vector<Tensor> BatchOf(const Net& net, int64_t step, int64_t count) {
  Shape shape{count};
  for (int i = 0; i < net.sample.rank(); ++i) shape.push_back(net.sample[i]);
  std::vector<float> x(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(0.37F * static_cast<float>(i) + static_cast<float>(step));
  }
  std::vector<int64_t> y(static_cast<size_t>(count));
  for (size_t i = 0; i < y.size(); ++i) y[i] = (static_cast<int64_t>(i) * 3 + step) % 10;
  return {Tensor::Of<float>(shape, x), Tensor::Of<int64_t>({count, 1}, y)};
}

absl::StatusOr<std::unique_ptr<Trainer>> TryTrainer(const Net& net,
                                                    std::optional<MicroBatchOptions> micro_batches,
                                                    const CoreOptions& core = {}) {
  TrainerOptions options{
      .feeds = {"x", "y"}, .fetches = {net.loss}, .micro_batches = micro_batches, .core = core};
  options.core.num_threads = 1;
  INTERP_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(net.programs.main, nullptr, options));
  INTERP_RETURN_IF_ERROR(trainer->Initialize(net.programs.startup));
  return trainer;
}

// Losses of some steps, then the parameters and the optimizer's state.
struct Trained {
  std::vector<float> losses;
  std::vector<std::vector<float>> values;
};

Trained Train(const Net& net, std::optional<MicroBatchOptions> micro_batches,
              const CoreOptions& core = {}, int64_t batch = 8) {
  Trained trained;
  const auto trainer = TryTrainer(net, micro_batches, core);
  EXPECT_THAT(trainer, IsOk());
  if (!trainer.ok()) return trained;
  for (int64_t step = 0; step < 5; ++step) {
    const auto fetched = (*trainer)->Step(BatchOf(net, step, batch));
    EXPECT_THAT(fetched, IsOk());
    if (fetched.ok()) trained.losses.push_back(*(*fetched)[0].data<float>());
  }
  for (const ParamDecl& param : (*trainer)->persistables()) {
    const Tensor& tensor = (*trainer)->scope()->Find(param.name)->tensor;
    if (tensor.dtype == DType::kFloat32 && tensor.place().on_host()) {
      trained.values.push_back(Values<float>(tensor));
    }
  }
  return trained;
}

void ExpectNear(const Trained& trained, const Trained& expected) {
  EXPECT_THAT(trained.losses, Pointwise(FloatNear(1e-5F), expected.losses));
  ASSERT_EQ(trained.values.size(), expected.values.size());
  for (size_t i = 0; i < trained.values.size(); ++i) {
    EXPECT_THAT(trained.values[i], Pointwise(FloatNear(1e-5F), expected.values[i]));
  }
}

CoreOptions OnDevices() {
  CoreOptions options;
  options.plan.place = {PlaceKind::kSim, 0};
  options.sim.capacity_bytes = size_t{1} << 24;
  return options;
}

TEST(MicroBatchesOfKernelsTest, FollowTheWholeBatch) {
  for (const Net& net : {Lenet(), Mlp(3)}) {
    const Trained whole = Train(net, std::nullopt);
    // 3 and 5 do not divide 8.
    for (const int32_t count : {1, 2, 3, 5, 8}) {
      SCOPED_TRACE(count);
      ExpectNear(Train(net, MicroBatchOptions{.micro_batches = count}), whole);
    }
  }
}

TEST(MicroBatchesOfKernelsTest, TakeBatchesOfFewerSamples) {
  const Net net = Mlp(2);
  for (const int64_t batch : {1, 3}) {
    ExpectNear(Train(net, MicroBatchOptions{.micro_batches = 4}, {}, batch),
               Train(net, std::nullopt, {}, batch));
  }
}

TEST(MicroBatchesOfKernelsTest, AllSchedulesGiveTheSameBits) {
  for (const Net& net : {Lenet(), Mlp(6)}) {
    const Trained expected = Train(net, MicroBatchOptions{.micro_batches = 4});
    const MicroBatchOptions schedules[] = {
        {.micro_batches = 4, .schedule = ScheduleKind::kFThenB, .stages = 4},
        {.micro_batches = 4, .schedule = ScheduleKind::k1F1B, .stages = 4},
        {.micro_batches = 4, .schedule = ScheduleKind::k1F1B, .stages = 3},
        {.micro_batches = 4, .schedule = ScheduleKind::kInterleaved, .stages = 2, .chunks = 2}};
    for (const MicroBatchOptions& options : schedules) {
      SCOPED_TRACE(absl::StrCat(Name(options.schedule), " of ", options.stages));
      const Trained on_host = Train(net, options);
      EXPECT_EQ(on_host.losses, expected.losses);
      EXPECT_EQ(on_host.values, expected.values);
      const Trained on_devices = Train(net, options, OnDevices());
      EXPECT_EQ(on_devices.losses, expected.losses);
    }
  }
}

TEST(MicroBatchesOfKernelsTest, SchedulersOfAPipelineGiveTheSameBits) {
  const Net net = Mlp(4);
  const MicroBatchOptions options{.micro_batches = 8, .stages = 4};
  const Trained expected = Train(net, options);
  for (const SchedulerKind scheduler : {SchedulerKind::kAsync, SchedulerKind::kEngine}) {
    const Trained trained = Train(net, options, {.scheduler = scheduler, .num_workers = 4});
    EXPECT_EQ(trained.losses, expected.losses);
    EXPECT_EQ(trained.values, expected.values);
  }
}

// Of a network that is all activations.
TEST(MicroBatchesOfKernelsTest, TakeLessMemory) {
  const Net net = Mlp(8, 16, "sgd:learning_rate=0.1");
  const auto peak = [&](std::optional<MicroBatchOptions> options, bool addto = true) {
    CoreOptions core;
    if (!addto) core.passes.disable = {"addto"};
    const auto trainer = TryTrainer(net, options, core);
    EXPECT_THAT(trainer, IsOk());
    EXPECT_THAT((*trainer)->Step(BatchOf(net, 0, 512)), IsOk());
    return (*trainer)->peak_bytes();
  };
  const size_t whole = peak(std::nullopt);
  EXPECT_THAT(peak(MicroBatchOptions{.micro_batches = 8}), Lt(whole / 4));
  const MicroBatchOptions many{.micro_batches = 64};
  EXPECT_THAT(peak(many), Lt(peak(many, /*addto=*/false)));
  // As many micro-batches are kept at once as stages, or all.
  MicroBatchOptions stages{.micro_batches = 16, .stages = 2};
  const size_t one_forward_one_backward = peak(stages);
  stages.schedule = ScheduleKind::kFThenB;
  EXPECT_THAT(peak(stages), Gt(3 * one_forward_one_backward));
}

PipelineTimes TimesOfStep(const Net& net, const MicroBatchOptions& options) {
  CoreOptions core = OnDevices();
  core.sim.latency_ns = 0;
  core.sim.launch_ns = 0;
  core.sim.copy_bytes_per_s = 1e15;
  core.sim.memory_bytes_per_s = 1e15;
  core.sim.flops_per_s = 1e9;
  const auto trainer = TryTrainer(net, options, core);
  EXPECT_THAT(trainer, IsOk());
  TraceRecorder recorder((*trainer)->core());
  EXPECT_THAT((*trainer)->Step(BatchOf(net, 0, 64), {.observer = &recorder}), IsOk());
  const auto times =
      TimesOfJobs(recorder.trace(), (*trainer)->core().plan(), (*trainer)->core().program());
  EXPECT_TRUE(times.has_value());
  const std::string trace = ToChromeTrace(recorder.trace(), (*trainer)->core());
  EXPECT_THAT(trace, HasSubstr("pipeline (simulated time)"));
  EXPECT_THAT(trace, HasSubstr("\"stage 3 sim:3\""));
  return *times;
}

TEST(MicroBatchesOfKernelsTest, TheBubbleOfFourStagesIsThatOfTheFormula) {
  const Net net = Mlp(8, 48);
  const MicroBatchOptions schedules[] = {
      {.micro_batches = 8, .schedule = ScheduleKind::kFThenB, .stages = 4},
      {.micro_batches = 4, .schedule = ScheduleKind::k1F1B, .stages = 4},
      {.micro_batches = 8, .schedule = ScheduleKind::k1F1B, .stages = 4},
      {.micro_batches = 16, .schedule = ScheduleKind::k1F1B, .stages = 4},
      {.micro_batches = 8, .schedule = ScheduleKind::kInterleaved, .stages = 4, .chunks = 2}};
  for (const MicroBatchOptions& options : schedules) {
    SCOPED_TRACE(absl::StrCat(Name(options.schedule), " ", options.micro_batches));
    const PipelineTimes times = TimesOfStep(net, options);
    EXPECT_TRUE(times.simulated);
    ASSERT_EQ(times.stages.size(), 4U);
    EXPECT_EQ(times.jobs.size(),
              2U * static_cast<size_t>(4 * options.chunks * options.micro_batches));
    EXPECT_NEAR(times.bubble,
                BubbleByFormula({options.schedule, 4, options.chunks, options.micro_batches}),
                0.03);
  }
}

// Fails in the third micro-batch, whose labels are none.
TEST(MicroBatchesOfKernelsTest, AFailureChangesNothing) {
  const Net net = Mlp(4);
  for (const int32_t stages : {1, 2}) {
    const auto trainer = TryTrainer(net, MicroBatchOptions{.micro_batches = 4, .stages = stages});
    ASSERT_THAT(trainer, IsOk());
    std::vector<Tensor> bad = BatchOf(net, 0, 8);
    bad[1].mutable_data<int64_t>()[5] = 1000;
    const Tensor before = *(*trainer)->scope()->Find("fc_0.w_0")->tensor.Clone(SystemAllocator());
    EXPECT_THAT((*trainer)->Step(bad), FailsWith(StatusCode::kInvalidArgument, "1000"));
    EXPECT_TRUE(SameBits((*trainer)->scope()->Find("fc_0.w_0")->tensor, before));
    Trained after;
    for (int64_t step = 0; step < 5; ++step) {
      const auto fetched = (*trainer)->Step(BatchOf(net, step, 8));
      ASSERT_THAT(fetched, IsOk());
      after.losses.push_back(*(*fetched)[0].data<float>());
    }
    EXPECT_EQ(after.losses, Train(net, MicroBatchOptions{.micro_batches = 4}).losses);
  }
}

TEST(MicroBatchesOfKernelsTest, SelectedRowsAreJoined) {
  ProgramBuilder builder;
  const Value x = builder.Data("x", {-1, 3}, DType::kInt64);
  const Value y = builder.Data("y", {-1, 1}, DType::kInt64);
  const Value words = builder.Embedding(x, {.rows = 9, .width = 4, .is_sparse = true});
  const Value loss =
      builder.Mean(builder.SoftmaxWithCrossEntropy(builder.Fc(builder.Flatten(words), 10), y));
  const Net net = Finish(builder, loss, {3}, "sgd:learning_rate=0.1");
  std::vector<std::vector<float>> losses;
  for (const int32_t count : {0, 1, 3}) {
    std::optional<MicroBatchOptions> options;
    if (count > 0) options = MicroBatchOptions{.micro_batches = count};
    const auto trainer = TryTrainer(net, options);
    ASSERT_THAT(trainer, IsOk());
    losses.emplace_back();
    for (int64_t step = 0; step < 4; ++step) {
      std::vector<Tensor> batch = BatchOf(net, step, 6);
      std::vector<int64_t> ids(18);
      for (size_t i = 0; i < ids.size(); ++i) ids[i] = (static_cast<int64_t>(i) * 5 + step) % 9;
      batch[0] = Tensor::Of<int64_t>({6, 3}, ids);
      const auto fetched = (*trainer)->Step(batch);
      ASSERT_THAT(fetched, IsOk());
      losses.back().push_back(*(*fetched)[0].data<float>());
    }
    EXPECT_THAT(losses.back(), Pointwise(FloatNear(1e-5F), losses[0]));
  }
}

// Means of batch_norm go from one micro-batch to the next, as in Paddle.
TEST(MicroBatchesOfKernelsTest, BatchNormSeesEachMicroBatch) {
  ProgramBuilder builder;
  const Value x = builder.Data("x", {-1, 2, 4, 4});
  const Value y = builder.Data("y", {-1, 1}, DType::kInt64);
  const Value h = builder.BatchNorm(builder.Conv2d(x, {.filters = 3, .size = 3}), {.act = "relu"});
  const Value loss =
      builder.Mean(builder.SoftmaxWithCrossEntropy(builder.Fc(builder.Flatten(h), 10), y));
  const Net net = Finish(builder, loss, {2, 4, 4}, "sgd:learning_rate=0");
  const std::vector<Tensor> batch = BatchOf(net, 0, 4);
  const std::vector<Tensor> first = BatchOf(net, 0, 2);
  const auto whole = TryTrainer(net, std::nullopt);
  const auto parts = TryTrainer(net, MicroBatchOptions{.micro_batches = 2, .stages = 2});
  ASSERT_THAT(whole, IsOk());
  ASSERT_THAT(parts, IsOk());
  ASSERT_THAT((*parts)->Step(batch), IsOk());
  std::vector<Tensor> second = batch;
  for (Tensor& tensor : second) {
    tensor.shape[0] = 2;
    tensor.SetMemory(tensor.buffer(),
                     static_cast<char*>(tensor.mutable_raw_data()) + tensor.size_bytes());
  }
  ASSERT_THAT((*whole)->Step(first), IsOk());
  ASSERT_THAT((*whole)->Step(second), IsOk());
  for (const ParamDecl& param : (*whole)->persistables()) {
    EXPECT_TRUE(SameBits((*whole)->scope()->Find(param.name)->tensor,
                         (*parts)->scope()->Find(param.name)->tensor))
        << param.name;
  }
}

TEST(MicroBatchesOfKernelsTest, WhatDoesNotGoTogetherIsRefused) {
  const Net net = Mlp(2);
  TrainerOptions options{.feeds = {"x", "y"},
                         .fetches = {net.loss},
                         .replicas = 2,
                         .micro_batches = MicroBatchOptions{.micro_batches = 2, .stages = 2}};
  EXPECT_THAT(Trainer::Create(net.programs.main, nullptr, options),
              FailsWith(StatusCode::kUnimplemented, "a pipeline within replicas"));
  EXPECT_THAT(TryTrainer(net, MicroBatchOptions{.micro_batches = 2, .stages = 0}),
              FailsWith(StatusCode::kInvalidArgument, "give the number of stages"));
  EXPECT_THAT(TryTrainer(net, MicroBatchOptions{.micro_batches = 2, .stages = 40}),
              FailsWith(StatusCode::kInvalidArgument, "expected one or more for each of 40"));
}

}  // namespace
}  // namespace interp::testing
