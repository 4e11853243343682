// Engines with a GPU that is lost, or with a device of another kind that is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/device/cuda/cuda_device.h"
#include "tests/cuda_emulation/emulation.h"
#include "tests/testing/devices.h"
#include "tests/testing/engines.h"

namespace interp::cuda_test {
namespace {

using engine::Engine;
using engine::RunContext;
using testing::FailsWith;
using testing::IsOk;

constexpr int kFloats = 16;

// An engine with a GPU and a float buffer there, of which a kernel that faults may spoil the GPU:
// the launch is well, what it touches was freed.
class FaultingWork {
 public:
  explicit FaultingWork(uint64_t seed)
      : machine_(*cuda_emulation::Machine::Start({.seed = seed})),
        gpu_(*cuda::MakeCudaDevice(0)),
        engine_(testing::MakeEngine({.workers = 2, .devices = {gpu_}})),
        value_(engine_->NewVariable("value")),
        data_(testing::Floats(*gpu_, kFloats)),
        freed_(testing::Floats(*gpu_, kFloats)) {
    gpu_->FreeRaw(freed_, kFloats * sizeof(float));
  }
  ~FaultingWork() { static_cast<void>(machine_->TakeFindings()); }

  // The fault comes when the fill runs, not when it is enqueued.
  void PushFault() {
    EXPECT_THAT(engine_->Push(
                    [this](const RunContext& ctx) {
                      return ctx.stream->Fill(freed_, 0, kFloats * sizeof(float));
                    },
                    {.writes = {value_}}, {.name = "faults", .place = gpu_->place()}),
                IsOk());
  }

  Engine& engine() { return *engine_; }
  Device& gpu() { return *gpu_; }
  engine::Variable value() const { return value_; }
  float* data() { return data_; }

 private:
  std::unique_ptr<cuda_emulation::Machine> machine_;
  std::shared_ptr<Device> gpu_;
  std::unique_ptr<Engine> engine_;
  engine::Variable value_;
  float* data_;
  float* freed_;
};

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

TEST(CudaEngineLosses, TellsOfAGpuThatIsLostAfterAnOperationHasCompleted) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FaultingWork work(seed);
    work.PushFault();
    EXPECT_THAT(work.engine().WaitForAll(), FailsWith(kUnavailable, "cuda:0 is lost"));
    EXPECT_THAT(work.engine().WaitForVar(work.value()), FailsWith(kUnavailable, "cuda:0 is lost"));
    EXPECT_EQ(work.engine().counters().failed, 1) << "one loss, one error";
    EXPECT_THAT(work.engine().WaitForAll(), IsOk());
  }
}

TEST(CudaEngineLosses, OperationsThatRunOnErrorsSeeThatTheirInputIsLostWithItsGpu) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FaultingWork work(seed);
    const engine::Variable answered = work.engine().NewVariable();
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

TEST(CudaEngineLosses, WhatWasWaitedForBeforeALossStaysGood) {
  FaultingWork work(0);
  const engine::Variable before = work.engine().NewVariable("before");
  const engine::Variable after = work.engine().NewVariable("after");
  const auto fill = [&](const RunContext& ctx) {
    return ctx.stream->Fill(work.data(), 0, kFloats * sizeof(float));
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
TEST(CudaEngineLosses, OrdersItsStreamsAlthoughADeviceOfAnotherKindIsLost) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto machine = cuda_emulation::Machine::Start({.seed = seed});
    ASSERT_THAT(machine, IsOk());
    const auto sim = testing::MakeDevice({.lose_at = 1});
    const std::shared_ptr<Device> gpu = *cuda::MakeCudaDevice(0);
    const auto engine = testing::MakeEngine({.devices = {sim, gpu}});
    const engine::Variable x = engine->NewVariable("x");
    const engine::Variable y = engine->NewVariable("y");
    float* const there = testing::Floats(*sim, kFloats);
    float* const data = testing::Floats(*gpu, kFloats);
    Tensor host = testing::VectorOf<float>(std::vector<float>(kFloats, 0));
    const auto write = [&](const RunContext& ctx) {
      testing::Put(*ctx.stream, data, std::vector<float>(kFloats, 1), ctx.work);
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
                      testing::Put(*ctx.stream, there, std::vector<float>(kFloats, 1), ctx.work);
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
