// Long because all that engines do with devices is tested with one set of helpers.
// Engines with devices: order across streams is the device's business where it can be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/testing/devices.h"
#include "tests/testing/engines.h"
#include "tests/testing/sample.h"

namespace interp::engine::engine_device_test {
namespace {

using testing::Execution;
using testing::Floats;
using testing::InOut;
using testing::IsOk;
using testing::MakeDevice;
using testing::MakeEngine;
using testing::OnDevice;

constexpr int kCount = 16;  // floats of a buffer

// out = out / 4 + in / 2 + 1: what comes first shows in the result.
absl::Status MixIn(KernelContext& ctx) {
  const float* in = ctx.input(0).data<float>();
  float* out = ctx.output(0).mutable_data<float>();
  for (int i = 0; i < kCount; ++i) out[i] = out[i] / 4 + in[i] / 2 + 1;
  return absl::OkStatus();
}

// What an operation that runs a kernel on two buffers does.
auto Launching(Device& device, KernelFn kernel, float* in, float* out) {
  return [&device, kernel, in, out](const RunContext& ctx) {
    InOut args(OnDevice(device, in, kCount), OnDevice(device, out, kCount));
    return testing::Launch(*ctx.stream, kernel, args, ctx.work);
  };
}

// Buffers on a device, a variable each.
struct Buffers {
  Buffers(Engine& engine, Device& device, int count) {
    for (int i = 0; i < count; ++i) {
      memory.push_back(Floats(device, kCount));
      variables.push_back(engine.NewVariable("buffer " + std::to_string(i)));
      const Variable v = variables.back();
      float* at = memory.back();
      EXPECT_THAT(
          engine.Push(
              [at, i](const RunContext& ctx) {
                testing::Put(*ctx.stream, at, std::vector<float>(kCount, i), ctx.work);
              },
              {.writes = {v}}, {.place = device.place(), .property = Property::kCopyToDevice}),
          IsOk());
    }
  }
  std::vector<float*> memory;
  std::vector<Variable> variables;
};

class EngineOnDevices : public ::testing::TestWithParam<Execution> {};
INSTANTIATE_TEST_SUITE_P(Engine, EngineOnDevices,
                         ::testing::Values(Execution::kThreads, Execution::kInterleaved),
                         testing::NameOf);

TEST_P(EngineOnDevices, RandomOperationsOnAllStreamsEqualTheSequentialOnes) {
  constexpr int kBuffers = 6;
  for (uint64_t seed = 0; seed < testing::SampleOf<uint64_t>(6, 20); ++seed) {
    const auto device = MakeDevice({.seed = seed,
                                    .execution = GetParam(),
                                    .max_kernel_delay_ns = 20'000,
                                    .max_copy_delay_ns = 20'000});
    const PolicyKind policy = static_cast<PolicyKind>(seed % 3);
    auto engine = MakeEngine({.policy = policy, .workers = 2, .devices = {device}});
    Buffers buffers(*engine, *device, kBuffers);
    std::vector<float> expected;
    for (int i = 0; i < kBuffers; ++i) expected.push_back(static_cast<float>(i));
    // Copied out by operations, looked at by operations of the host.
    constexpr int kLooks = 20;
    std::vector<Tensor> copies(kLooks);
    std::vector<float> seen(kLooks);
    std::vector<float> expected_seen(kLooks);
    std::mt19937_64 random(seed);
    constexpr Property kProperties[] = {Property::kNormal, Property::kDeviceUrgent,
                                        Property::kCopyFromDevice, Property::kCopyToDevice,
                                        Property::kAsync};
    for (int step = 0; step < 200; ++step) {
      const size_t from = random() % kBuffers;
      const size_t to = (from + 1 + random() % (kBuffers - 1)) % kBuffers;
      float* const in = buffers.memory[from];
      float* const out = buffers.memory[to];
      ASSERT_THAT(engine->Push(Launching(*device, &MixIn, in, out),
                               {.reads = {buffers.variables[from], buffers.variables[to]},
                                .writes = {buffers.variables[to]}},
                               {.place = device->place(), .property = kProperties[random() % 5]}),
                  IsOk());
      expected[to] = expected[to] / 4 + expected[from] / 2 + 1;
      if (step % 10 != 0) continue;
      const int look = step / 10;
      expected_seen[look] = expected[to];
      const Variable copy = engine->NewVariable();
      ASSERT_THAT(engine->Push(
                      [&copies, look, out](const RunContext& ctx) {
                        copies[look] = testing::Get(*ctx.stream, out, kCount, ctx.work);
                      },
                      {.reads = {buffers.variables[to]}, .writes = {copy}},
                      {.place = device->place(), .property = Property::kCopyFromDevice}),
                  IsOk());
      ASSERT_THAT(engine->Push([&, look] { seen[look] = copies[look].data<float>()[kCount - 1]; },
                               {.reads = {copy}}),
                  IsOk());
      ASSERT_THAT(engine->DeleteVariable(copy), IsOk());
    }
    EXPECT_THAT(engine->WaitForAll(), IsOk());
    EXPECT_EQ(seen, expected_seen) << "seed " << seed;
    const auto stream = testing::OpenStream(*device);
    for (int i = 0; i < kBuffers; ++i) {
      EXPECT_EQ(testing::Read(*stream, buffers.memory[i], kCount),
                std::vector<float>(kCount, expected[i]));
    }
  }
}

std::atomic<bool> kernel_may_end{false};
absl::Status Hold(KernelContext& /*ctx*/) {
  while (!kernel_may_end) std::this_thread::yield();
  return absl::OkStatus();
}

TEST(EngineDevice, DependentsAreReleasedWhenTheWorkIsIssued) {
  const auto device = MakeDevice({});
  auto engine = MakeEngine({.devices = {device}});
  Buffers buffers(*engine, *device, 2);
  const auto launch = [&](KernelFn kernel, Property property, std::atomic<bool>* issued) {
    EXPECT_THAT(engine->Push(
                    [&, kernel, issued](const RunContext& ctx) {
                      InOut args(OnDevice(*device, buffers.memory[0], kCount),
                                 OnDevice(*device, buffers.memory[1], kCount));
                      const absl::Status status =
                          testing::Launch(*ctx.stream, kernel, args, ctx.work);
                      *issued = true;
                      return status;
                    },
                    {.reads = {buffers.variables[0], buffers.variables[1]},
                     .writes = {buffers.variables[1]}},
                    {.place = device->place(), .property = property}),
                IsOk());
  };
  kernel_may_end = false;
  std::atomic<bool> held{false};
  std::atomic<bool> same_stream{false};
  std::atomic<bool> other_stream{false};
  std::atomic<bool> on_host{false};
  launch(&Hold, Property::kNormal, &held);
  launch(&MixIn, Property::kNormal, &same_stream);
  launch(&MixIn, Property::kDeviceUrgent, &other_stream);
  EXPECT_THAT(engine->Push([&] { on_host = true; }, {.reads = {buffers.variables[1]}}), IsOk());
  // These would not come to pass if anybody waited for the kernel.
  while (!same_stream || !other_stream) std::this_thread::yield();
  EXPECT_FALSE(on_host);
  kernel_may_end = true;
  EXPECT_THAT(engine->WaitForVar(buffers.variables[1]), IsOk());
  const auto stream = testing::OpenStream(*device);
  EXPECT_EQ(testing::Read(*stream, buffers.memory[1], 1), std::vector<float>{1.3125F});
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_TRUE(on_host);
}

absl::Status FailOnDevice(KernelContext& /*ctx*/) { return absl::DataLossError("bits flipped"); }
absl::Status FailToo(KernelContext& /*ctx*/) { return absl::AbortedError("again"); }

const char* NameOf(KernelFn kernel) {
  if (kernel == &FailOnDevice) return "flips";
  return kernel == &FailToo ? "fails too" : "mixes";
}

// A device with four buffers, and pushes of kernels that read one and write another.
struct FailingWork {
  explicit FailingWork(Execution execution)
      : device(MakeDevice({.execution = execution})),
        engine(MakeEngine({.devices = {device}})),
        buffers(*engine, *device, 4) {}

  // As an operation that overwrites, or with `updates` mixes in.
  void Push(KernelFn kernel, int from, int to, bool updates = false,
            Property property = Property::kNormal) {
    std::vector<Variable> reads{buffers.variables[from]};
    if (updates) reads.push_back(buffers.variables[to]);
    EXPECT_THAT(
        engine->Push(Launching(*device, kernel, buffers.memory[from], buffers.memory[to]),
                     {.reads = reads, .writes = {buffers.variables[to]}},
                     {.name = NameOf(kernel), .place = device->place(), .property = property}),
        IsOk());
  }
  absl::Status Wait(int buffer) const { return engine->WaitForVar(buffers.variables[buffer]); }

  std::shared_ptr<Device> device;
  std::unique_ptr<Engine> engine;
  Buffers buffers;
};

const auto kFlipped = testing::FailsWith(absl::StatusCode::kDataLoss, "operation 'flips' (#");

TEST_P(EngineOnDevices, FailuresOfWorkSpoilWhatItWrites) {
  FailingWork work(GetParam());
  work.Push(&FailOnDevice, 0, 1);
  EXPECT_THAT(work.Wait(1), kFlipped);
  EXPECT_THAT(work.Wait(1), kFlipped);
  EXPECT_THAT(work.Wait(0), IsOk());
  // A wait has told of it.
  EXPECT_THAT(work.engine->WaitForAll(), IsOk());
  EXPECT_THAT(work.Wait(1), kFlipped);
  EXPECT_EQ(work.engine->counters().failed, 1);
  EXPECT_EQ(work.engine->counters().skipped, 0);
}

TEST_P(EngineOnDevices, FailuresOfWorkComeOutAtWaitForAll) {
  FailingWork work(GetParam());
  work.Push(&FailOnDevice, 0, 1);
  EXPECT_THAT(work.engine->WaitForAll(), kFlipped);
  EXPECT_THAT(work.engine->WaitForAll(), IsOk());
  EXPECT_THAT(work.Wait(1), kFlipped);
}

TEST_P(EngineOnDevices, FailuresOfWorkFlowToWhatReadsIt) {
  FailingWork work(GetParam());
  std::atomic<bool> read{false};
  const Variable host = work.engine->NewVariable("host");
  work.Push(&FailOnDevice, 0, 1);
  work.Push(&MixIn, 1, 2, /*updates=*/true, Property::kDeviceUrgent);
  work.Push(&MixIn, 2, 3);
  EXPECT_THAT(work.engine->Push([&] { read = true; },
                                {.reads = {work.buffers.variables[3]}, .writes = {host}}),
              IsOk());
  EXPECT_THAT(work.engine->WaitForVar(host), kFlipped);
  EXPECT_FALSE(read);
  EXPECT_THAT(work.Wait(2), kFlipped);
  EXPECT_THAT(work.Wait(3), kFlipped);
  // Known by now: not even enqueued.
  const uint64_t skipped = work.engine->counters().skipped;
  work.Push(&MixIn, 1, 0, /*updates=*/true);
  EXPECT_THAT(work.Wait(0), kFlipped);
  EXPECT_EQ(work.engine->counters().skipped, skipped + 1);
}

// What the device had to do is lost; another one and the host go on, and nothing hangs.
TEST_P(EngineOnDevices, ALostDeviceSpoilsWhatItWasToWrite) {
  for (int64_t lose_at = 1; lose_at <= 12; ++lose_at) {
    const auto lost = MakeDevice({.execution = GetParam(), .lose_at = lose_at});
    const auto kept = MakeDevice({.index = 1, .execution = GetParam()});
    auto engine = MakeEngine({.workers = 2, .devices = {lost, kept}});
    std::vector<Variable> chain;
    float* const memory = Floats(*lost, 12 * kCount);
    for (int i = 0; i < 12; ++i) {
      chain.push_back(engine->NewVariable("value " + std::to_string(i)));
      float* const at = memory + i * kCount;
      engine::Accesses accesses{.writes = {&chain[i], 1}};
      if (i > 0) accesses.reads = {&chain[i - 1], 1};
      ASSERT_THAT(engine->Push(
                      [at](const RunContext& ctx) {
                        const Tensor one = testing::VectorOf<float>({1});
                        return ctx.stream->CopyToDevice(at, one.raw_data(), one.buffer(), 4,
                                                        ctx.work);
                      },
                      accesses,
                      {.place = lost->place(),
                       .property = i % 2 == 0 ? Property::kNormal : Property::kCopyToDevice}),
                  IsOk());
    }
    Buffers others(*engine, *kept, 2);
    EXPECT_THAT(engine->WaitForVar(chain[11]),
                testing::FailsWith(absl::StatusCode::kUnavailable, "sim:0 is lost"));
    EXPECT_THAT(engine->WaitForVar(others.variables[1]), IsOk());
    EXPECT_THAT(engine->Push([] {}, {.writes = {others.variables[0]}}), IsOk());
    EXPECT_THAT(engine->WaitForVar(others.variables[0]), IsOk());
    (void)engine->WaitForAll();
  }
}

// Rubbish that has come to another device by way of the host, and to a second stream there.
TEST_P(EngineOnDevices, FailuresAreFollowedThroughStreamsOfAnotherDevice) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const SimOptions options{
        .seed = seed, .execution = GetParam(), .max_kernel_delay_ns = 2'000'000};
    const auto first = MakeDevice(options);
    const auto second = MakeDevice({.index = 1, .execution = GetParam()});
    auto engine = MakeEngine({.workers = 2, .devices = {first, second}});
    Buffers on_first(*engine, *first, 2);
    Buffers on_second(*engine, *second, 3);
    Tensor staging = testing::VectorOf<float>(std::vector<float>(kCount, -1));
    const Variable host = engine->NewVariable("staging");
    const auto push = [&](auto function, Variable read, Variable written, const Device& device,
                          Property property) {
      EXPECT_THAT(engine->Push(function, {.reads = {read}, .writes = {written}},
                               {.place = device.place(), .property = property}),
                  IsOk());
    };
    push(Launching(*first, &FailOnDevice, on_first.memory[0], on_first.memory[1]),
         on_first.variables[0], on_first.variables[1], *first, Property::kNormal);
    push(
        [&](const RunContext& ctx) {
          return ctx.stream->CopyToHost(staging.mutable_raw_data(), staging.buffer(),
                                        on_first.memory[1], staging.size_bytes(), ctx.work);
        },
        on_first.variables[1], host, *first, Property::kCopyFromDevice);
    push(
        [&](const RunContext& ctx) {
          return ctx.stream->CopyToDevice(on_second.memory[0], staging.raw_data(), staging.buffer(),
                                          staging.size_bytes(), ctx.work);
        },
        host, on_second.variables[0], *second, Property::kCopyToDevice);
    for (int i = 0; i < 2; ++i) {
      push(Launching(*second, &MixIn, on_second.memory[i], on_second.memory[i + 1]),
           on_second.variables[i], on_second.variables[i + 1], *second,
           i == 0 ? Property::kNormal : Property::kDeviceUrgent);
    }
    EXPECT_THAT(engine->WaitForVar(on_second.variables[2]),
                testing::FailsWith(absl::StatusCode::kDataLoss, ""));
    (void)engine->WaitForAll();
  }
}

TEST_P(EngineOnDevices, OverwritingMakesGoodWhatFailedWorkSpoilt) {
  FailingWork work(GetParam());
  work.Push(&FailOnDevice, 0, 1);
  work.Push(&MixIn, 1, 2, /*updates=*/true);
  EXPECT_THAT(work.Wait(2), kFlipped);
  work.Push(&MixIn, 0, 1);
  EXPECT_THAT(work.Wait(1), IsOk());
  EXPECT_THAT(work.engine->Push([] {}, {.writes = {work.buffers.variables[2]}}), IsOk());
  EXPECT_THAT(work.Wait(2), IsOk());
  // It was never written, so it holds what it was given.
  const auto stream = testing::OpenStream(*work.device);
  EXPECT_EQ(testing::Read(*stream, work.buffers.memory[1], 1), std::vector<float>{1.25F});
  EXPECT_THAT(work.engine->WaitForAll(), IsOk());
}

// Neither of an operation of the host nor of the device's own.
TEST_P(EngineOnDevices, UpdatingDoesNotMakeGoodWhatFailedWorkSpoilt) {
  FailingWork work(GetParam());
  const Variable spoilt = work.buffers.variables[1];
  for (const Place place : {Place{}, work.device->place()}) {
    for (const bool known : {false, true}) {
      work.Push(&FailOnDevice, 0, 1);
      if (known) {
        EXPECT_THAT(work.Wait(1), kFlipped);
      }
      bool ran = false;
      EXPECT_THAT(work.engine->Push([&ran] { ran = true; }, {.updates = {spoilt}},
                                    {.place = place, .property = Property::kNoSkip}),
                  IsOk());
      EXPECT_THAT(work.Wait(1), kFlipped);
      EXPECT_TRUE(ran);
      EXPECT_TRUE(work.engine->ErrorOf(spoilt));
      work.Push(&MixIn, 1, 2, /*updates=*/true);
      EXPECT_THAT(work.Wait(2), kFlipped);
      for (const int overwritten : {1, 2}) {
        work.Push(&MixIn, 0, overwritten);
        EXPECT_THAT(work.Wait(overwritten), IsOk());
      }
    }
  }
}

TEST_P(EngineOnDevices, EveryFailureOfWorkIsKept) {
  FailingWork work(GetParam());
  work.Push(&FailOnDevice, 0, 1);
  EXPECT_THAT(work.Wait(1), kFlipped);
  work.Push(&FailToo, 0, 2);
  const auto second = testing::FailsWith(absl::StatusCode::kAborted, "operation 'fails too' (#");
  EXPECT_THAT(work.engine->WaitForAll(), second);
  EXPECT_THAT(work.Wait(2), second);
  EXPECT_THAT(work.Wait(1), kFlipped);
  EXPECT_EQ(work.engine->counters().failed, 2);
}

TEST_P(EngineOnDevices, SkippedOperationsLeaveTheOrderOfOthersAlone) {
  FailingWork work(GetParam());
  const Variable bad = work.engine->NewVariable("bad");
  kernel_may_end = GetParam() == Execution::kInterleaved;
  work.Push(&Hold, 1, 0, /*updates=*/true, Property::kDeviceUrgent);
  EXPECT_THAT(work.engine->Push([] { throw 1; }, {.writes = {bad}}), IsOk());
  // Skipped: they must not pass for the last user of what the kernel still reads.
  EXPECT_THAT(work.engine->Push([] {}, {.reads = {bad}, .writes = {work.buffers.variables[1]}}),
              IsOk());
  EXPECT_THAT(work.engine->Push([](const RunContext&) {},
                                {.reads = {bad}, .writes = {work.buffers.variables[1]}},
                                {.place = work.device->place()}),
              IsOk());
  std::atomic<bool> written{false};
  EXPECT_THAT(work.engine->Push([&] { written = true; }, {.writes = {work.buffers.variables[1]}}),
              IsOk());
  if (GetParam() == Execution::kInterleaved) {
    while (!written) std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(written);
  }
  kernel_may_end = true;
  EXPECT_THAT(work.Wait(1), IsOk());
  EXPECT_TRUE(written);
}

TEST(EngineDevice, WaitsForWorkEndWithTheirTime) {
  FailingWork work(Execution::kThreads);
  kernel_may_end = false;
  work.Push(&Hold, 0, 1);
  // Only the work is late from here on.
  while (work.engine->counters().completed < work.engine->counters().pushed) {
    std::this_thread::yield();
  }
  const auto late = testing::FailsWith(absl::StatusCode::kDeadlineExceeded, "a device");
  EXPECT_THAT(work.engine->WaitForVar(work.buffers.variables[1], std::chrono::milliseconds(5)),
              late);
  EXPECT_THAT(work.engine->WaitForWrite(work.buffers.variables[0], std::chrono::milliseconds(5)),
              late);
  EXPECT_THAT(work.engine->WaitForAll(std::chrono::milliseconds(5)),
              testing::FailsWith(absl::StatusCode::kDeadlineExceeded, "devices"));
  kernel_may_end = true;
  EXPECT_THAT(work.Wait(1), IsOk());
  EXPECT_THAT(work.engine->WaitForAll(), IsOk());
}

TEST(EngineDevice, AsynchronousOperationsWaitWhenTheyStart) {
  const auto device = MakeDevice({});
  auto engine = MakeEngine({.devices = {device}});
  Buffers buffers(*engine, *device, 2);
  kernel_may_end = false;
  EXPECT_THAT(engine->Push(Launching(*device, &Hold, buffers.memory[0], buffers.memory[1]),
                           {.reads = {buffers.variables[1]}}, {.place = device->place()}),
              IsOk());
  std::thread other;
  std::atomic<bool> called{false};
  std::atomic<bool> started{false};
  EXPECT_THAT(engine->Push(
                  [&](Completion completion) {
                    called = true;
                    other = std::thread([&, completion = std::move(completion)]() mutable {
                      EXPECT_THAT(completion.Start(), IsOk());
                      started = true;
                      EXPECT_THAT(completion.Done(), IsOk());
                    });
                  },
                  {.writes = {buffers.variables[1]}}),
              IsOk());
  while (!called) std::this_thread::yield();
  EXPECT_FALSE(started);
  kernel_may_end = true;
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  EXPECT_TRUE(started);
  other.join();
}

TEST_P(EngineOnDevices, TheErrorOfAVariableIsAValue) {
  FailingWork work(GetParam());
  const Variable failed = work.buffers.variables[1];
  EXPECT_FALSE(work.engine->ErrorOf(failed));
  work.Push(&FailOnDevice, 0, 1);
  ASSERT_THAT(work.engine->WaitForWrite(work.buffers.variables[0]), IsOk());
  const ErrorRef error = work.engine->ErrorOf(failed);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->operation, "flips");
  EXPECT_FALSE(error->reported);
  EXPECT_THAT(work.Wait(1), kFlipped);
  EXPECT_TRUE(work.engine->ErrorOf(failed) == error);
  EXPECT_TRUE(error->reported);
  EXPECT_THAT(work.engine->DeleteVariable(failed), IsOk());
  EXPECT_FALSE(work.engine->ErrorOf(failed));
}

// Whether deleting returns while a kernel that uses the variable runs, and when `last` runs.
TEST(EngineDevice, DeletingWaitsForNoDevice) {
  for (const PolicyKind policy : {PolicyKind::kPooled, PolicyKind::kPerDevice}) {
    const auto device = MakeDevice({});
    auto engine = MakeEngine({.policy = policy, .workers = 2, .devices = {device}});
    Buffers buffers(*engine, *device, 2);
    kernel_may_end = false;
    ASSERT_THAT(engine->Push(Launching(*device, &Hold, buffers.memory[0], buffers.memory[1]),
                             {.reads = {buffers.variables[0]}, .writes = {buffers.variables[1]}},
                             {.place = device->place()}),
                IsOk());
    while (engine->counters().completed < engine->counters().pushed) std::this_thread::yield();
    std::atomic<bool> deleted{false};
    std::atomic<bool> ended_before{false};
    EXPECT_THAT(engine->DeleteVariable(buffers.variables[0]), IsOk());
    EXPECT_THAT(engine->DeleteVariable(buffers.variables[1],
                                       [&] {
                                         ended_before = kernel_may_end.load();
                                         deleted = true;
                                       }),
                IsOk());
    EXPECT_FALSE(deleted);
    kernel_may_end = true;
    EXPECT_THAT(engine->WaitForAll(), IsOk());
    EXPECT_TRUE(deleted);
    EXPECT_TRUE(ended_before);
  }
}

// x is written, then the same stream is kept busy: whoever asks for x only then does not wait for
// what came after it.
TEST(EngineDevice, LaterWorkOfAStreamIsNotWaitedFor) {
  const auto device = MakeDevice({});
  auto engine = MakeEngine({.devices = {device}});
  Buffers buffers(*engine, *device, 4);
  const auto launch = [&](KernelFn kernel, int from, int to, Property property) {
    ASSERT_THAT(
        engine->Push(Launching(*device, kernel, buffers.memory[from], buffers.memory[to]),
                     {.reads = {buffers.variables[from]}, .updates = {buffers.variables[to]}},
                     {.place = device->place(), .property = property}),
        IsOk());
  };
  kernel_may_end = false;
  launch(&MixIn, 0, 1, Property::kNormal);
  launch(&Hold, 0, 2, Property::kNormal);
  while (engine->counters().completed < engine->counters().pushed) std::this_thread::yield();
  launch(&MixIn, 1, 3, Property::kDeviceUrgent);
  EXPECT_THAT(engine->WaitForVar(buffers.variables[3], std::chrono::seconds(20)), IsOk());
  EXPECT_THAT(engine->WaitForVar(buffers.variables[1], std::chrono::seconds(20)), IsOk());
  kernel_may_end = true;
  EXPECT_THAT(engine->WaitForAll(), IsOk());
}

TEST(EngineDevice, TwoDevices) {
  const auto first = MakeDevice({.index = 0, .max_kernel_delay_ns = 50'000});
  const auto second = MakeDevice({.index = 1, .max_kernel_delay_ns = 50'000});
  auto engine = MakeEngine({.devices = {first, second}});
  Buffers on_first(*engine, *first, 2);
  Buffers on_second(*engine, *second, 2);
  const Variable host = engine->NewVariable("staging");
  Tensor staging;
  // sim:0 computes, the host carries over, sim:1 computes; again and again.
  for (int i = 0; i < 10; ++i) {
    for (const auto& [device, buffers] :
         {std::pair(first, &on_first), std::pair(second, &on_second)}) {
      ASSERT_THAT(engine->Push(Launching(*device, &MixIn, buffers->memory[0], buffers->memory[1]),
                               {.reads = {buffers->variables[0], buffers->variables[1]},
                                .writes = {buffers->variables[1]}},
                               {.place = device->place()}),
                  IsOk());
    }
    ASSERT_THAT(engine->Push(
                    [&](const RunContext& ctx) {
                      staging = testing::Get(*ctx.stream, on_first.memory[1], kCount, ctx.work);
                    },
                    {.reads = {on_first.variables[1]}, .writes = {host}},
                    {.place = first->place(), .property = Property::kCopyFromDevice}),
                IsOk());
    ASSERT_THAT(engine->Push(
                    [&](const RunContext& ctx) {
                      return ctx.stream->CopyToDevice(on_second.memory[0], staging.raw_data(),
                                                      staging.buffer(), staging.size_bytes(),
                                                      ctx.work);
                    },
                    {.reads = {host}, .writes = {on_second.variables[0]}},
                    {.place = second->place(), .property = Property::kCopyToDevice}),
                IsOk());
  }
  EXPECT_THAT(engine->WaitForAll(), IsOk());
  float a = 1;
  float b0 = 0;
  float b1 = 1;
  for (int i = 0; i < 10; ++i) {
    a = a / 4 + 0.0F / 2 + 1;
    b1 = b1 / 4 + b0 / 2 + 1;
    b0 = a;
  }
  const auto stream = testing::OpenStream(*second);
  EXPECT_EQ(testing::Read(*stream, on_second.memory[1], 1), std::vector<float>{b1});
}

}  // namespace
}  // namespace interp::engine::engine_device_test
