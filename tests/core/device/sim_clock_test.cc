// The simulated time of devices, as their users see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/testing/devices.h"

namespace interp {
namespace {

using testing::AddOne;
using testing::Execution;
using testing::Floats;
using testing::InOut;
using testing::IsOk;
using testing::Launch;
using testing::MakeDevice;
using testing::OnDevice;
using testing::OpenStream;

// Round numbers: a copy moves a byte per ns, a kernel two, and computes an operation per ns.
SimOptions RoundNumbers(Execution execution, uint64_t seed = 0) {
  return {.capacity_bytes = 1 << 20,
          .seed = seed,
          .execution = execution,
          .max_kernel_delay_ns = seed == 0 ? 0 : 300'000,
          .copy_bytes_per_s = 1e9,
          .memory_bytes_per_s = 2e9,
          .flops_per_s = 1e9,
          .latency_ns = 100,
          .launch_ns = 10};
}

class SimClockTest : public ::testing::TestWithParam<Execution> {};
INSTANTIATE_TEST_SUITE_P(Executions, SimClockTest,
                         ::testing::Values(Execution::kThreads, Execution::kInterleaved),
                         testing::NameOf);

std::string ToText(const std::vector<DeviceSpan>& spans) {
  std::string text;
  for (const DeviceSpan& span : spans) {
    absl::StrAppend(&text, span.stream, " #", span.tag, " ", Name(span.kind), " ", span.start_ns,
                    "-", span.end_ns, " ", span.bytes, "B\n");
  }
  return text;
}

TEST_P(SimClockTest, FollowsFromTheOrderOfWorkAlone) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const auto device = MakeDevice(RoundNumbers(GetParam(), seed));
    const auto a = OpenStream(*device, "a");
    const auto b = OpenStream(*device, "b");
    const auto copied = testing::MakeEvent(*device);
    const auto computed = testing::MakeEvent(*device);
    float* memory = Floats(*device, 1000);
    InOut args(OnDevice(*device, memory, 1), OnDevice(*device, memory, 1));
    InOut other(OnDevice(*device, memory + 500, 1), OnDevice(*device, memory + 500, 1));

    device->StartTrace();
    const Tensor host = testing::VectorOf<float>(std::vector<float>(250));
    EXPECT_THAT(a->CopyToDevice(memory, host.raw_data(), host.buffer(), 1000, {.tag = 1}), IsOk());
    EXPECT_THAT(a->Record(*copied), IsOk());
    ASSERT_THAT(Launch(*b, AddOne, other, {.tag = 2, .flops = 500}), IsOk());
    EXPECT_THAT(b->Wait(*copied), IsOk());
    ASSERT_THAT(Launch(*b, AddOne, args, {.tag = 3, .bytes = 4000, .flops = 100}), IsOk());
    EXPECT_THAT(b->Record(*computed), IsOk());
    EXPECT_THAT(a->CopyOnDevice(memory + 300, memory + 600, 400, {.tag = 4}), IsOk());
    EXPECT_EQ(device->NowNs(), 40);
    EXPECT_THAT(copied->Synchronize(), IsOk());
    EXPECT_EQ(device->NowNs(), 1110);
    EXPECT_THAT(computed->Synchronize(), IsOk());
    EXPECT_EQ(device->NowNs(), 3210);
    EXPECT_THAT(a->Wait(*computed),
                IsOk());  // long over: a's next kernel waits for its launch alone
    ASSERT_THAT(Launch(*a, AddOne, args, {.tag = 5}), IsOk());
    EXPECT_EQ(ToText(device->StopTrace()),
              "0 #1 h2d 10-1110 1000B\n"
              "1 #2 kernel 20-620 0B\n"
              "1 #3 kernel 1110-3210 4000B\n"
              "0 #4 d2d 1110-1410 400B\n"
              "0 #5 kernel 3220-3320 0B\n");
    EXPECT_EQ(device->NowNs(), 3320);
    EXPECT_TRUE(device->StopTrace().empty());
  }
}

TEST_P(SimClockTest, AnEventHasPassedOnceTheHostsClockIsThere) {
  const auto device = MakeDevice(RoundNumbers(GetParam()));
  const auto a = OpenStream(*device);
  const auto b = OpenStream(*device);
  const auto event = testing::MakeEvent(*device);
  EXPECT_TRUE(event->Passed());  // never recorded
  float* memory = Floats(*device, 64);
  testing::Put(*a, memory, {1});
  EXPECT_THAT(a->Record(*event), IsOk());
  EXPECT_FALSE(event->Passed());
  testing::Put(*b, memory + 32, std::vector<float>(32));
  EXPECT_THAT(b->Synchronize(), IsOk());
  EXPECT_TRUE(event->Passed());
}

TEST_P(SimClockTest, TracesCountFromTheirStart) {
  const auto device = MakeDevice(RoundNumbers(GetParam()));
  const auto a = OpenStream(*device);
  float* memory = Floats(*device, 1);
  testing::Put(*a, memory, {1});
  EXPECT_THAT(a->Synchronize(), IsOk());
  EXPECT_EQ(device->NowNs(), 114);
  device->StartTrace();
  testing::Put(*a, memory, {1}, {.tag = 7});
  EXPECT_EQ(ToText(device->StopTrace()), "0 #7 h2d 10-114 4B\n");
}

TEST_P(SimClockTest, FillsAndUntimedStreamsTakeNoTime) {
  const auto device = MakeDevice(RoundNumbers(GetParam()));
  const auto a = OpenStream(*device);
  absl::StatusOr<std::unique_ptr<Stream>> untimed = device->CreateUntimedStream("u");
  ASSERT_THAT(untimed, IsOk());
  const auto event = testing::MakeEvent(*device);
  float* memory = Floats(*device, 100);
  device->StartTrace();
  EXPECT_THAT(a->Fill(memory, 1, 400), IsOk());
  testing::Put(*a, memory, {1});
  EXPECT_THAT(a->Record(*event), IsOk());
  EXPECT_THAT((*untimed)->Wait(*event), IsOk());
  EXPECT_THAT((*untimed)->Fill(memory, 2, 4), IsOk());
  EXPECT_THAT((*untimed)->Record(*event), IsOk());
  const auto b = OpenStream(*device);
  EXPECT_THAT(b->Wait(*event), IsOk());
  InOut args(OnDevice(*device, memory, 1), OnDevice(*device, memory, 1));
  ASSERT_THAT(Launch(*b, AddOne, args), IsOk());
  EXPECT_EQ(ToText(device->StopTrace()),
            "0 #-1 h2d 10-114 4B\n"
            "2 #-1 kernel 20-120 0B\n");
}

TEST_P(SimClockTest, AbsurdAmountsOfWorkDoNotOverflow) {
  const auto device = MakeDevice(RoundNumbers(GetParam()));
  const auto a = OpenStream(*device);
  float* memory = Floats(*device, 1);
  InOut args(OnDevice(*device, memory, 1), OnDevice(*device, memory, 1));
  for (const int64_t flops : {std::numeric_limits<int64_t>::max(), int64_t{-5}}) {
    for (int i = 0; i < 100; ++i) {
      ASSERT_THAT(Launch(*a, AddOne, args, {.bytes = flops, .flops = flops}), IsOk());
    }
  }
  EXPECT_THAT(device->Synchronize(), IsOk());
  EXPECT_GT(device->NowNs(), 0);
}

}  // namespace
}  // namespace interp
