// Engines with a GPU: with a simulated device, whose streams cannot wait for its events, and
// losses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "core/device/cuda/cuda_device.h"
#include "tests/cuda_emulation/emulation.h"
#include "tests/testing/devices.h"
#include "tests/testing/engines.h"

namespace interp::cuda_test {
namespace {

using engine::Engine;
using engine::RunContext;
using engine::Variable;
using testing::FailsWith;
using testing::IsOk;

constexpr int kCount = 16;

// Values that go round between the host and two devices of different kinds.
class Relay {
 public:
  explicit Relay(uint64_t seed)
      : sim_(testing::MakeDevice({.seed = seed, .max_copy_delay_ns = 50'000})),
        gpu_(*cuda::MakeCudaDevice(0)),
        engine_(testing::MakeEngine({.workers = 2, .devices = {sim_, gpu_}})),
        value_(engine_->NewVariable("value")),
        host_(testing::VectorOf<float>(std::vector<float>(kCount, 0))) {}

  // Takes the value to the device, back, and adds one on the host.
  void Pass(Device& device) {
    float* const there = testing::Floats(device, kCount);
    Push(device, [this, there](const RunContext& ctx) {
      return ctx.stream->CopyToDevice(there, host_.raw_data(), host_.buffer(), host_.size_bytes(),
                                      ctx.work);
    });
    Push(device, [this, there](const RunContext& ctx) {
      return ctx.stream->CopyToHost(host_.mutable_raw_data(), host_.buffer(), there,
                                    host_.size_bytes(), ctx.work);
    });
  }

  void Run(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      Pass(*sim_);
      Pass(*gpu_);
      EXPECT_THAT(engine_->Push(
                      [this] {
                        for (int k = 0; k < kCount; ++k) host_.mutable_data<float>()[k] += 1;
                      },
                      {.reads = {value_}, .writes = {value_}}),
                  IsOk());
    }
    EXPECT_THAT(engine_->WaitForAll(), IsOk());
  }

  std::vector<float> value() const { return testing::Values<float>(host_); }

 private:
  template <typename Function>
  void Push(Device& device, Function function) {
    EXPECT_THAT(engine_->Push(std::move(function), {.reads = {value_}, .writes = {value_}},
                              {.place = device.place()}),
                IsOk());
  }

  std::shared_ptr<Device> sim_;
  std::shared_ptr<Device> gpu_;
  std::unique_ptr<Engine> engine_;
  Variable value_;
  Tensor host_;
};

TEST(CudaEngine, OrdersAGpuAndADeviceOfAnotherKind) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto machine = cuda_emulation::Machine::Start(
        {.seed = seed, .execution = SimOptions::Execution::kThreads, .max_delay_ns = 50'000});
    ASSERT_THAT(machine, IsOk());
    Relay relay(seed);
    relay.Run(/*rounds=*/10);
    EXPECT_EQ(relay.value(), std::vector<float>(kCount, 10)) << "seed " << seed;
  }
}

// An engine with a GPU and a float buffer there, of which a kernel that faults may spoil the GPU:
// the launch is well, what it touches was freed.
class FaultingWork {
 public:
  explicit FaultingWork(uint64_t seed)
      : machine_(*cuda_emulation::Machine::Start({.seed = seed})),
        gpu_(*cuda::MakeCudaDevice(0)),
        engine_(testing::MakeEngine({.workers = 2, .devices = {gpu_}})),
        value_(engine_->NewVariable("value")),
        data_(testing::Floats(*gpu_, kCount)),
        freed_(testing::Floats(*gpu_, kCount)) {
    gpu_->FreeRaw(freed_, kCount * sizeof(float));
  }
  ~FaultingWork() { static_cast<void>(machine_->TakeFindings()); }

  // The fault comes when the fill runs, not when it is enqueued.
  void PushFault() {
    EXPECT_THAT(engine_->Push(
                    [this](const RunContext& ctx) {
                      return ctx.stream->Fill(freed_, 0, kCount * sizeof(float));
                    },
                    {.writes = {value_}}, {.name = "faults", .place = gpu_->place()}),
                IsOk());
  }

  Engine& engine() { return *engine_; }
  Device& gpu() { return *gpu_; }
  Variable value() const { return value_; }
  float* data() { return data_; }

 private:
  std::unique_ptr<cuda_emulation::Machine> machine_;
  std::shared_ptr<Device> gpu_;
  std::unique_ptr<Engine> engine_;
  Variable value_;
  float* data_;
  float* freed_;
};

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

TEST(CudaEngine, TellsOfAGpuThatIsLostAfterAnOperationHasCompleted) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FaultingWork work(seed);
    work.PushFault();
    EXPECT_THAT(work.engine().WaitForAll(), FailsWith(kUnavailable, "cuda:0 is lost"));
    EXPECT_THAT(work.engine().WaitForVar(work.value()), FailsWith(kUnavailable, "cuda:0 is lost"));
    EXPECT_EQ(work.engine().counters().failed, 1) << "one loss, one error";
    EXPECT_THAT(work.engine().WaitForAll(), IsOk());
  }
}

TEST(CudaEngine, OperationsThatRunOnErrorsSeeThatTheirInputIsLostWithItsGpu) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FaultingWork work(seed);
    const Variable answered = work.engine().NewVariable();
    absl::Status seen;
    absl::Status seen_later;
    work.PushFault();
    const auto note = [&work](absl::Status& status) {
      const engine::ErrorRef error = work.engine().ErrorOf(work.value());
      if (error) status = error->status;
    };
    EXPECT_THAT(
        work.engine().Push([&] { note(seen); }, {.reads = {work.value()}, .writes = {answered}},
                           {.property = engine::Property::kNoSkip}),
        IsOk());
    EXPECT_THAT(work.engine().Push(
                    [&](engine::Completion done) {
                      EXPECT_THAT(done.Start(), IsOk());
                      note(seen_later);
                      static_cast<void>(done.Done());
                    },
                    {.reads = {work.value()}}, {.property = engine::Property::kNoSkip}),
                IsOk());
    EXPECT_THAT(work.engine().WaitForVar(answered), IsOk());
    static_cast<void>(work.engine().WaitForAll());
    EXPECT_THAT(seen, FailsWith(kUnavailable, "cuda:0 is lost"));
    EXPECT_THAT(seen_later, FailsWith(kUnavailable, "cuda:0 is lost"));
  }
}

TEST(CudaEngine, WhatWasWaitedForBeforeALossStaysGood) {
  FaultingWork work(0);
  const Variable before = work.engine().NewVariable("before");
  const Variable after = work.engine().NewVariable("after");
  const auto fill = [&](const RunContext& ctx) {
    return ctx.stream->Fill(work.data(), 0, kCount * sizeof(float));
  };
  const engine::OperationOptions there{.place = work.gpu().place()};
  EXPECT_THAT(work.engine().Push(fill, {.writes = {before}}, there), IsOk());
  EXPECT_THAT(work.engine().WaitForVar(before), IsOk());
  work.PushFault();
  EXPECT_THAT(work.engine().WaitForVar(work.value()), FailsWith(kUnavailable, "is lost"));
  EXPECT_THAT(work.engine().WaitForVar(before), IsOk());
  EXPECT_THAT(work.engine().Push(fill, {.writes = {after}}, there), IsOk());
  EXPECT_THAT(work.engine().WaitForVar(after), FailsWith(kUnavailable, "is lost"));
}

// y is read by a copy while an operation that updates it does not start, as a device of another
// kind, whose value it wanted, is lost: what writes y next comes after the copy nevertheless.
TEST(CudaEngine, OrdersItsStreamsAlthoughADeviceOfAnotherKindIsLost) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto machine = cuda_emulation::Machine::Start({.seed = seed});
    ASSERT_THAT(machine, IsOk());
    const auto sim = testing::MakeDevice({.lose_at = 1});
    const std::shared_ptr<Device> gpu = *cuda::MakeCudaDevice(0);
    const auto engine = testing::MakeEngine({.devices = {sim, gpu}});
    const Variable x = engine->NewVariable("x");
    const Variable y = engine->NewVariable("y");
    float* const there = testing::Floats(*sim, kCount);
    float* const data = testing::Floats(*gpu, kCount);
    Tensor host = testing::VectorOf<float>(std::vector<float>(kCount, 0));
    const auto write = [&](const RunContext& ctx) {
      testing::Put(*ctx.stream, data, std::vector<float>(kCount, 1), ctx.work);
    };
    EXPECT_THAT(engine->Push(write, {.writes = {y}}, {.place = gpu->place()}), IsOk());
    EXPECT_THAT(
        engine->Push(
            [&](const RunContext& ctx) {
              return ctx.stream->CopyToHost(host.mutable_raw_data(), host.buffer(), data,
                                            host.size_bytes(), ctx.work);
            },
            {.reads = {y}}, {.place = gpu->place(), .property = engine::Property::kCopyFromDevice}),
        IsOk());
    EXPECT_THAT(engine->Push(
                    [&](const RunContext& ctx) {
                      testing::Put(*ctx.stream, there, std::vector<float>(kCount, 1), ctx.work);
                    },
                    {.writes = {x}}, {.place = sim->place()}),
                IsOk());
    absl::Status started;
    EXPECT_THAT(engine->Push(
                    [&](engine::Completion done) {
                      started = done.Start();
                      static_cast<void>(done.Done(started));
                    },
                    {.reads = {x}, .updates = {y}}, {.place = gpu->place()}),
                IsOk());
    EXPECT_THAT(engine->Push(write, {.writes = {y}}, {.place = gpu->place()}), IsOk());
    EXPECT_THAT(engine->WaitForVar(y), IsOk());
    EXPECT_THAT(engine->WaitForAll(), FailsWith(kUnavailable, "sim:0 is lost"));
    EXPECT_THAT(started, FailsWith(kUnavailable, "sim:0 is lost"));
    EXPECT_THAT((*machine)->TakeFindings(), ::testing::IsEmpty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace interp::cuda_test
