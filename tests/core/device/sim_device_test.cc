// Long because memory, order, time and traces of the device are each tested both ways it executes.
#include "core/device/sim_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/testing/devices.h"

namespace interp {
namespace {

using testing::AddOne;
using ::testing::ElementsAre;
using testing::Execution;
using testing::FailsWith;
using testing::Floats;
using testing::Get;
using ::testing::HasSubstr;
using testing::InOut;
using testing::IsOk;
using testing::Launch;
using testing::MakeDevice;
using testing::MakeEvent;
using testing::OnDevice;
using testing::OpenStream;
using testing::Put;
using testing::Read;

// What holds however streams are run.
class SimDeviceTest : public ::testing::TestWithParam<Execution> {
 protected:
  SimOptions Options() const { return {.capacity_bytes = 1 << 20, .execution = GetParam()}; }
  std::shared_ptr<Device> device_ = MakeDevice(Options());
};

INSTANTIATE_TEST_SUITE_P(Executions, SimDeviceTest,
                         ::testing::Values(Execution::kThreads, Execution::kInterleaved),
                         testing::NameOf);

TEST_P(SimDeviceTest, WorkOfAStreamRunsInOrder) {
  const auto stream = OpenStream(*device_);
  float* a = Floats(*device_, 3);
  float* b = Floats(*device_, 3);
  Put(*stream, a, {1, 2, 3});
  InOut args(OnDevice(*device_, a, 3), OnDevice(*device_, b, 3));
  ASSERT_THAT(Launch(*stream, AddOne, args), IsOk());
  ASSERT_THAT(stream->CopyOnDevice(a, b, 2 * sizeof(float), {}), IsOk());
  EXPECT_THAT(Read(*stream, a, 3), ElementsAre(2, 3, 3));
  ASSERT_THAT(stream->Fill(a, 0, 4), IsOk());
  EXPECT_THAT(Read(*stream, a, 3), ElementsAre(0, 3, 3));
}

// What a GPU leaves undefined is an error here.
TEST_P(SimDeviceTest, CopiesIntoWhatTheyOverlapAreRefused) {
  const auto stream = OpenStream(*device_);
  float* a = Floats(*device_, 4);
  Put(*stream, a, {1, 2, 3, 4});
  const auto refused = testing::FailsWith(absl::StatusCode::kInternal, "overlaps");
  EXPECT_THAT(stream->CopyOnDevice(a, a + 1, 2 * sizeof(float), {}), refused);
  EXPECT_THAT(stream->CopyOnDevice(a + 1, a, 2 * sizeof(float), {}), refused);
  EXPECT_THAT(stream->CopyOnDevice(a, a, sizeof(float), {}), refused);
  EXPECT_THAT(stream->CopyOnDevice(a, a, 0, {}), IsOk());
  EXPECT_THAT(stream->CopyOnDevice(a, a + 2, 2 * sizeof(float), {}), IsOk());
  EXPECT_THAT(Read(*stream, a, 4), ElementsAre(3, 4, 3, 4));
}

TEST_P(SimDeviceTest, AStreamHoldsMoreWorkThanAnyQueueIsLong) {
  const auto stream = OpenStream(*device_);
  float* a = Floats(*device_, 1);
  Put(*stream, a, {0});
  InOut args(OnDevice(*device_, a, 1), OnDevice(*device_, a, 1));
  for (int i = 0; i < 6000; ++i) ASSERT_THAT(Launch(*stream, AddOne, args), IsOk());
  EXPECT_THAT(Read(*stream, a, 1), ElementsAre(6000));
}

TEST_P(SimDeviceTest, AStreamThatGoesFinishesItsWork) {
  auto stream = OpenStream(*device_);
  float* a = Floats(*device_, 1);
  Put(*stream, a, {7});
  const Tensor out = Get(*stream, a, 1);
  stream.reset();
  EXPECT_THAT(testing::Values<float>(out), ElementsAre(7));
}

TEST_P(SimDeviceTest, TheDeviceWaitsForAllStreams) {
  const auto a = OpenStream(*device_, "a");
  const auto b = OpenStream(*device_, "b");
  float* memory = Floats(*device_, 64);
  Put(*a, memory, {1});
  Put(*b, memory + 32, {2});
  const Tensor one = Get(*a, memory, 1);
  const Tensor two = Get(*b, memory + 32, 1);
  ASSERT_THAT(device_->Synchronize(), IsOk());
  EXPECT_EQ(*one.data<float>(), 1);
  EXPECT_EQ(*two.data<float>(), 2);
}

TEST_P(SimDeviceTest, AnEventThatWasNeverRecordedHoldsNobodyUp) {
  const auto stream = OpenStream(*device_);
  const auto event = MakeEvent(*device_);
  ASSERT_THAT(event->Synchronize(), IsOk());
  ASSERT_THAT(stream->Wait(*event), IsOk());
  float* a = Floats(*device_, 1);
  Put(*stream, a, {1});
  EXPECT_THAT(Read(*stream, a, 1), ElementsAre(1));
}

TEST_P(SimDeviceTest, TheHostWaitsForAnEvent) {
  const auto stream = OpenStream(*device_);
  const auto event = MakeEvent(*device_);
  float* a = Floats(*device_, 1);
  for (float value = 1; value < 4; ++value) {
    Put(*stream, a, {value});
    const Tensor out = Get(*stream, a, 1);
    ASSERT_THAT(stream->Record(*event), IsOk());
    ASSERT_THAT(event->Synchronize(), IsOk());
    EXPECT_EQ(*out.data<float>(), value);
  }
}

// A wait stands for the record before it: the later one comes after a wait for the waiter itself.
TEST_P(SimDeviceTest, AWaitDoesNotSeeLaterRecords) {
  const auto a = OpenStream(*device_, "a");
  const auto b = OpenStream(*device_, "b");
  const auto event = MakeEvent(*device_);
  const auto done = MakeEvent(*device_);
  float* memory = Floats(*device_, 1);
  Put(*a, memory, {1});
  ASSERT_THAT(a->Record(*event), IsOk());
  ASSERT_THAT(b->Wait(*event), IsOk());
  const Tensor out = Get(*b, memory, 1);
  ASSERT_THAT(b->Record(*done), IsOk());
  ASSERT_THAT(a->Wait(*done), IsOk());
  Put(*a, memory, {2});
  ASSERT_THAT(a->Record(*event), IsOk());
  ASSERT_THAT(b->Wait(*event), IsOk());
  EXPECT_THAT(Read(*b, memory, 1), ElementsAre(2));
  EXPECT_EQ(*out.data<float>(), 1);
}

TEST_P(SimDeviceTest, AnEventMayDieBeforeItsRecord) {
  const auto a = OpenStream(*device_, "a");
  const auto b = OpenStream(*device_, "b");
  float* memory = Floats(*device_, 1);
  Put(*a, memory, {1});
  {
    const auto event = MakeEvent(*device_);
    ASSERT_THAT(a->Record(*event), IsOk());
    ASSERT_THAT(b->Wait(*event), IsOk());
  }
  EXPECT_THAT(Read(*b, memory, 1), ElementsAre(1));
}

TEST_P(SimDeviceTest, WithAnEventEveryOrderGivesTheRightNumber) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SimOptions options = Options();
    options.seed = seed;
    options.max_copy_delay_ns = 200'000;
    const auto device = MakeDevice(options);
    const auto a = OpenStream(*device, "a");
    const auto b = OpenStream(*device, "b");
    const auto event = MakeEvent(*device);
    float* memory = Floats(*device, 1);
    Put(*a, memory, {5});
    ASSERT_THAT(a->Record(*event), IsOk());
    ASSERT_THAT(b->Wait(*event), IsOk());
    EXPECT_THAT(Read(*b, memory, 1), ElementsAre(5)) << seed;
  }
}

TEST_P(SimDeviceTest, WithoutAnEventSomeOrderGivesAWrongNumber) {
  if (GetParam() == Execution::kThreads && testing::kFindsRaces) GTEST_SKIP() << "races";
  int wrong = 0;
  for (uint64_t seed = 0; seed < 40 && wrong == 0; ++seed) {
    SimOptions options = Options();
    options.seed = seed;
    options.max_copy_delay_ns = 2'000'000;
    const auto device = MakeDevice(options);
    const auto a = OpenStream(*device, "a");
    const auto b = OpenStream(*device, "b");
    float* memory = Floats(*device, 1);
    Put(*a, memory, {5});
    wrong += Read(*b, memory, 1)[0] != 5;
  }
  EXPECT_GT(wrong, 0);
}

TEST_P(SimDeviceTest, StreamsOfTwoDevicesWaitForEachOther) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimOptions options = Options();
    options.seed = seed;
    const auto first = MakeDevice(options);
    options.index = 1;
    options.seed = seed + 1;
    const auto second = MakeDevice(options);
    const auto a = OpenStream(*first, "a");
    const auto b = OpenStream(*second, "b");
    const auto there = MakeEvent(*first);
    const auto back = MakeEvent(*second);
    float* at_first = Floats(*first, 1);
    float* at_second = Floats(*second, 1);
    Put(*a, at_first, {3});
    Tensor between = Get(*a, at_first, 1);
    ASSERT_THAT(a->Record(*there), IsOk());
    ASSERT_THAT(b->Wait(*there), IsOk());
    ASSERT_THAT(b->CopyToDevice(at_second, between.raw_data(), between.buffer(), 4, {}), IsOk());
    InOut args(OnDevice(*second, at_second, 1), OnDevice(*second, at_second, 1));
    ASSERT_THAT(Launch(*b, AddOne, args), IsOk());
    ASSERT_THAT(b->CopyToHost(between.mutable_raw_data(), between.buffer(), at_second, 4, {}),
                IsOk());
    ASSERT_THAT(b->Record(*back), IsOk());
    ASSERT_THAT(a->Wait(*back), IsOk());
    ASSERT_THAT(a->CopyToDevice(at_first, between.raw_data(), between.buffer(), 4, {}), IsOk());
    EXPECT_THAT(Read(*a, at_first, 1), ElementsAre(4));
    EXPECT_EQ(Name(first->place()), "sim:0");
    EXPECT_EQ(Name(b->place()), "sim:1");
  }
}

// The copy is the reader's; both devices' clocks know of it.
TEST_P(SimDeviceTest, DevicesCopyFromEachOther) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimOptions options = Options();
    options.seed = seed;
    const auto first = MakeDevice(options);
    options.index = 1;
    const auto second = MakeDevice(options);
    const auto a = OpenStream(*first, "a");
    const auto b = OpenStream(*second, "b");
    const absl::StatusOr<std::unique_ptr<DeviceEvent>> there = a->CreateEvent();
    ASSERT_THAT(there, IsOk());
    float* at_first = Floats(*first, 1);
    float* at_second = Floats(*second, 1);
    Put(*a, at_first, {3});
    InOut args(OnDevice(*first, at_first, 1), OnDevice(*first, at_first, 1));
    ASSERT_THAT(Launch(*a, AddOne, args), IsOk());
    ASSERT_THAT(a->Record(**there), IsOk());
    ASSERT_THAT(b->Wait(**there), IsOk());
    second->StartTrace();
    ASSERT_THAT(b->CopyFromPeer(at_second, at_first, first->place(), 4, {.tag = 7}), IsOk());
    EXPECT_THAT(Read(*b, at_second, 1), ElementsAre(4));
    const std::vector<DeviceSpan> spans = second->StopTrace();
    ASSERT_EQ(spans.size(), 2);
    EXPECT_EQ(Name(spans[0].kind), "p2p");
    EXPECT_EQ(spans[0].tag, 7);
    EXPECT_EQ(spans[0].bytes, 4);
  }
}

TEST_P(SimDeviceTest, CopiesFromOutsideAPeerAreErrors) {
  const auto stream = OpenStream(*device_);
  float* const here = Floats(*device_, 2);
  SimOptions options = Options();
  options.index = 1;
  auto peer = MakeDevice(options);
  float* const there = Floats(*peer, 2);
  const auto leaves = [](const char* place) {
    return FailsWith(absl::StatusCode::kInternal, absl::StrCat("leaves the memory of ", place));
  };
  const Place place = peer->place();
  EXPECT_THAT(stream->CopyFromPeer(here, here, place, 8, {}), leaves("sim:1"));
  EXPECT_THAT(stream->CopyFromPeer(here, there, {PlaceKind::kSim, 2}, 8, {}), leaves("sim:2"));
  EXPECT_THAT(stream->CopyFromPeer(here, there, place, size_t{1} << 30, {}), leaves("sim:0"));
  EXPECT_THAT(stream->CopyFromPeer(there, there, place, 8, {}), leaves("sim:0"));
  peer.reset();
  EXPECT_THAT(stream->CopyFromPeer(here, there, place, 8, {}), leaves("sim:1"));
}

TEST(SimDeviceOrderTest, DevicesRunInDifferentWaysTogether) {
  for (const bool threads_first : {false, true}) {
    const auto first =
        MakeDevice({.execution = threads_first ? Execution::kThreads : Execution::kInterleaved});
    const auto second = MakeDevice(
        {.index = 1, .execution = threads_first ? Execution::kInterleaved : Execution::kThreads});
    const auto a = OpenStream(*first);
    const auto b = OpenStream(*second);
    const auto event = MakeEvent(*first);
    float* at_first = Floats(*first, 1);
    Put(*a, at_first, {3});
    const Tensor between = Get(*a, at_first, 1);
    ASSERT_THAT(a->Record(*event), IsOk());
    ASSERT_THAT(b->Wait(*event), IsOk());
    float* at_second = Floats(*second, 1);
    ASSERT_THAT(b->CopyToDevice(at_second, between.raw_data(), between.buffer(), 4, {}), IsOk());
    EXPECT_THAT(Read(*b, at_second, 1), ElementsAre(3));
  }
}

// The order in which kernels of four streams run, as text.
std::string OrderOfWork(uint64_t seed) {
  static std::string order;
  order.clear();
  const auto device = MakeDevice({.seed = seed, .execution = Execution::kInterleaved});
  std::vector<std::unique_ptr<Stream>> streams;
  float* memory = Floats(*device, 4);
  for (int i = 0; i < 4; ++i) {
    streams.push_back(OpenStream(*device));
    Put(*streams[i], memory + i, {static_cast<float>(i)});
  }
  EXPECT_THAT(device->Synchronize(), IsOk());
  const KernelFn note = [](KernelContext& ctx) {
    absl::StrAppend(&order, *ctx.input(0).data<float>());
    return absl::OkStatus();
  };
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 4; ++i) {
      InOut args(OnDevice(*device, memory + i, 1), OnDevice(*device, memory + i, 1));
      EXPECT_THAT(Launch(*streams[i], note, args), IsOk());
    }
  }
  EXPECT_THAT(device->Synchronize(), IsOk());
  return order;
}

TEST(SimDeviceOrderTest, ASeedStandsForOneInterleaving) {
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    orders.insert(OrderOfWork(seed));
    EXPECT_EQ(OrderOfWork(seed), OrderOfWork(seed));
  }
  EXPECT_GT(orders.size(), 15u);
}

TEST_P(SimDeviceTest, MemoryIsAlignedAndLimited) {
  SimOptions options = Options();
  options.capacity_bytes = 1000;
  const auto device = MakeDevice(options);
  EXPECT_EQ(device->capacity_bytes(), 1000u);
  const absl::StatusOr<void*> a = device->AllocateRaw(1);
  const absl::StatusOr<void*> b = device->AllocateRaw(65);
  const absl::StatusOr<void*> c = device->AllocateRaw(0);
  for (const auto& address : {a, b, c}) {
    ASSERT_THAT(address, IsOk());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*address) % kBufferAlignment, 0u);
  }
  const absl::Status status = device->AllocateRaw(705).status();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kResourceExhausted, "705 bytes on sim:0"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("256 of its 1000 bytes are in use"));
  EXPECT_THAT(device->AllocateRaw(std::numeric_limits<size_t>::max()),
              FailsWith(absl::StatusCode::kResourceExhausted, "cannot allocate"));
  // Neighbours join in whatever order they are freed.
  device->FreeRaw(*a, 1);
  device->FreeRaw(*c, 0);
  device->FreeRaw(*b, 65);
  EXPECT_THAT(device->AllocateRaw(960), IsOk());
}

TEST_P(SimDeviceTest, OptionsWithoutSenseAreAnError) {
  const auto fails = [](const SimOptions& options) {
    EXPECT_THAT(MakeSimDevice(options), FailsWith(absl::StatusCode::kInvalidArgument, "expected"));
  };
  fails({.capacity_bytes = 0});
  fails({.capacity_bytes = std::numeric_limits<size_t>::max()});
  fails({.max_kernel_delay_ns = -1});
  fails({.copy_bytes_per_s = 0});
  fails({.flops_per_s = std::numeric_limits<double>::quiet_NaN()});
  fails({.latency_ns = std::numeric_limits<int64_t>::max()});
  EXPECT_THAT(MakeSimDevice({.index = 16}),
              FailsWith(absl::StatusCode::kInvalidArgument, "sim:16 is no device"));
}

TEST_P(SimDeviceTest, StreamsAreNumberedDenselyUpToAMost) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kMaxStreams; ++i) {
    streams.push_back(OpenStream(*device_, absl::StrCat("s", i)));
    EXPECT_EQ(streams.back()->index(), i);
    EXPECT_EQ(streams.back()->name(), absl::StrCat("s", i));
  }
  EXPECT_THAT(device_->CreateStream("more", 0),
              FailsWith(absl::StatusCode::kResourceExhausted, "'more'"));
  streams[5].reset();
  EXPECT_EQ(OpenStream(*device_)->index(), 5);
}

using SimDeviceDeathTest = SimDeviceTest;
INSTANTIATE_TEST_SUITE_P(Executions, SimDeviceDeathTest, ::testing::Values(Execution::kInterleaved),
                         testing::NameOf);

TEST_P(SimDeviceDeathTest, TheHostMayNotTouchDeviceMemory) {
  volatile float* a = Floats(*device_, 1);
  EXPECT_DEATH(*a = 1, "");
  EXPECT_DEATH(std::exit(*a > 0 ? 0 : 1), "");
}

TEST_P(SimDeviceTest, CopiesOutsideTheMemoryAreErrors) {
  const auto stream = OpenStream(*device_);
  const auto leaves = FailsWith(absl::StatusCode::kInternal, "leaves the memory of sim:0");
  float outside = 0;
  const Tensor one = testing::VectorOf<float>({1});
  EXPECT_THAT(stream->CopyToDevice(&outside, one.raw_data(), one.buffer(), 4, {}), leaves);
  EXPECT_THAT(stream->Fill(&outside, 1, 4), leaves);
  ASSERT_THAT(stream->Synchronize(), IsOk());
  EXPECT_EQ(outside, 0);
  // Across the end, too.
  float* a = Floats(*device_, 1);
  Tensor host = testing::VectorOf<float>(std::vector<float>((1 << 18) + 1));
  EXPECT_THAT(stream->CopyToHost(host.mutable_raw_data(), host.buffer(), a, host.size_bytes(), {}),
              leaves);
}

// Work is lost from the third kernel or copy on; who waits is told, and memory can be given back.
TEST_P(SimDeviceTest, ALostDeviceTellsEverybody) {
  SimOptions options = Options();
  options.lose_at = 3;
  const auto device = MakeDevice(options);
  const auto lost = FailsWith(absl::StatusCode::kUnavailable,
                              "sim:0 is lost (as asked for, at kernel or copy 3)");
  const auto stream = OpenStream(*device);
  const auto other = OpenStream(*device);
  float* a = Floats(*device, 1);
  const auto event = MakeEvent(*device);
  WorkErrors first;
  WorkErrors second;
  Put(*stream, a, {1}, {.tag = 1, .errors = &first});
  InOut args(OnDevice(*device, a, 1), OnDevice(*device, a, 1));
  ASSERT_THAT(Launch(*stream, AddOne, args, {.tag = 2, .errors = &first}), IsOk());
  // It is told now or when it comes to that.
  const absl::Status launched = Launch(*stream, AddOne, args, {.tag = 3, .errors = &first});
  ASSERT_THAT(launched, IsOk());
  (void)Launch(*stream, AddOne, args, {.tag = 4, .errors = &second});
  (void)stream->Record(*event);
  (void)other->Wait(*event);
  EXPECT_THAT(event->Synchronize(), lost);
  EXPECT_THAT(other->Synchronize(), lost);
  EXPECT_THAT(device->Synchronize(), lost);
  EXPECT_THAT(device->status(), lost);
  ASSERT_TRUE(first.any());
  EXPECT_EQ(first.Get()->tag, 3);
  EXPECT_THAT(first.Get()->status, lost);
  // From here on nothing is enqueued or made.
  EXPECT_THAT(Launch(*other, AddOne, args), lost);
  EXPECT_THAT(other->Fill(a, 0, 4), lost);
  EXPECT_THAT(other->Record(*event), lost);
  EXPECT_THAT(other->Wait(*event), lost);
  EXPECT_THAT(device->CreateEvent(), lost);
  EXPECT_THAT(device->CreateStream("s", 0), lost);
  EXPECT_THAT(device->AllocateRaw(4), lost);
  device->FreeRaw(a, 4);
}

// The second user's work comes after the first one's, though it knows none of its events.
TEST_P(SimDeviceTest, UsersComeAfterEachOther) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto device = MakeDevice({.capacity_bytes = 1 << 20,
                                    .seed = seed,
                                    .execution = GetParam(),
                                    .max_kernel_delay_ns = 100'000});
    const auto first = OpenStream(*device, "first");
    auto second = OpenStream(*device, "second");
    Stream* const firsts[] = {first.get()};
    Stream* const seconds[] = {second.get()};
    float* a = Floats(*device, 1);
    InOut args(OnDevice(*device, a, 1), OnDevice(*device, a, 1));
    ASSERT_THAT(device->BeginUse(firsts, firsts), IsOk());
    Put(*first, a, {1});
    ASSERT_THAT(Launch(*first, AddOne, args), IsOk());
    ASSERT_THAT(device->BeginUse(seconds, seconds), IsOk());
    ASSERT_THAT(Launch(*second, AddOne, args), IsOk());
    ASSERT_THAT(device->BeginUse(firsts, firsts), IsOk());
    EXPECT_THAT(Read(*first, a, 1), ElementsAre(3));
    // Whose streams are gone is not waited for.
    ASSERT_THAT(device->BeginUse(seconds, seconds), IsOk());
    device->EndUse(seconds);
    second.reset();
    ASSERT_THAT(device->BeginUse(firsts, firsts), IsOk());
  }
}

// A device with a user of its own, and another device that reads its memory as another user.
struct ReadByPeer {
  ReadByPeer(const SimOptions& options, int64_t peer_lost_at) {
    SimOptions of_peer = options;
    of_peer.index = 1;
    of_peer.lose_at = peer_lost_at;
    device = MakeDevice(options);
    peer = MakeDevice(of_peer);
    reader = OpenStream(*peer, "reader");
    writer = OpenStream(*device, "writer");
    a = Floats(*device, 1);
    copy = Floats(*peer, 1);
  }
  ~ReadByPeer() {
    device->EndUse(&reader);
    device->EndUse(&writer);
  }

  static absl::Status Begin(Device& device, const std::unique_ptr<Stream>& user) {
    Stream* const streams[] = {user.get()};
    return device.BeginUse(&user, streams);
  }
  absl::Status ReaderBegins() { return Begin(*device, reader); }
  absl::Status WriterBegins() { return Begin(*device, writer); }
  absl::Status Copy() { return reader->CopyFromPeer(copy, a, device->place(), 4, {}); }

  std::shared_ptr<Device> device;
  std::shared_ptr<Device> peer;
  std::unique_ptr<Stream> reader;
  std::unique_ptr<Stream> writer;
  float* a;
  float* copy;
};

// Also where the first user is another device that copies.
TEST_P(SimDeviceTest, UsersComeAfterCopiesOfPeers) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ReadByPeer rig({.capacity_bytes = 1 << 20,
                    .seed = seed,
                    .execution = GetParam(),
                    .max_copy_delay_ns = 200'000},
                   /*peer_lost_at=*/0);
    Put(*rig.writer, rig.a, {1});
    ASSERT_THAT(rig.writer->Synchronize(), IsOk());
    ASSERT_THAT(rig.ReaderBegins(), IsOk());
    ASSERT_THAT(rig.Copy(), IsOk());
    ASSERT_THAT(rig.WriterBegins(), IsOk());
    Put(*rig.writer, rig.a, {2});
    EXPECT_THAT(Read(*rig.reader, rig.copy, 1), ElementsAre(1)) << seed;
    ASSERT_THAT(rig.device->Synchronize(), IsOk());
  }
}

// The next user does without a peer that is lost: its own device goes on.
TEST_P(SimDeviceTest, UsersGoOnAfterAPeerIsLost) {
  ReadByPeer rig({.capacity_bytes = 1 << 20, .execution = GetParam()}, /*peer_lost_at=*/1);
  ASSERT_THAT(rig.ReaderBegins(), IsOk());
  (void)rig.Copy();
  (void)rig.reader->Synchronize();
  ASSERT_FALSE(rig.peer->status().ok());
  ASSERT_THAT(rig.WriterBegins(), IsOk());
  Put(*rig.writer, rig.a, {2});
  EXPECT_THAT(Read(*rig.writer, rig.a, 1), ElementsAre(2));
}

// An event that is no simulated device's.
class ForeignEvent final : public DeviceEvent {
 public:
  Place place() const override { return Place{}; }
  absl::StatusOr<bool> SynchronizeUntil(std::chrono::steady_clock::time_point) override {
    ++waits;
    return true;
  }
  bool Passed() override { return true; }
  int waits = 0;
};

TEST_P(SimDeviceTest, EventsOfAnotherKindGoThroughTheHost) {
  const auto stream = OpenStream(*device_);
  ForeignEvent event;
  EXPECT_THAT(stream->Wait(event), IsOk());
  EXPECT_EQ(event.waits, 1);
  EXPECT_THAT(stream->Record(event),
              FailsWith(absl::StatusCode::kInvalidArgument, "cannot be recorded on stream 's'"));
}

TEST_P(SimDeviceTest, EmptyCopiesDoNothing) {
  const auto stream = OpenStream(*device_);
  float* a = Floats(*device_, 1);
  ASSERT_THAT(stream->CopyToDevice(a, nullptr, BufferRef(), 0, {}), IsOk());
  ASSERT_THAT(stream->CopyToHost(nullptr, BufferRef(), a, 0, {}), IsOk());
  ASSERT_THAT(stream->Fill(a, 1, 0), IsOk());
  ASSERT_THAT(stream->Synchronize(), IsOk());
}

// ---- Kernels

TEST_P(SimDeviceTest, AKernelSeesItsArgumentsAsTheyWereAtTheLaunch) {
  const auto stream = OpenStream(*device_);
  float* a = Floats(*device_, 2);
  float* b = Floats(*device_, 2);
  Put(*stream, a, {1, 2});
  {
    InOut args(OnDevice(*device_, a, 2), OnDevice(*device_, b, 2));
    args.input.lod = {{0, 1, 2}};
    args.bound.constant[0] = true;
    const KernelFn kernel = [](KernelContext& ctx) {
      const Tensor& in = ctx.input(0);
      if (in.shape != Shape{2} || in.lod != Lod{{0, 1, 2}} || !ctx.input_is_constant(0)) {
        return absl::InternalError("other arguments");
      }
      if (!in.has_memory() || in.place() != Place{PlaceKind::kSim, 0} ||
          !ctx.output(0).buffer().unique()) {
        return absl::InternalError("other memory");
      }
      return AddOne(ctx);
    };
    WorkErrors errors;
    ASSERT_THAT(Launch(*stream, kernel, args, {.errors = &errors}), IsOk());
    args.input.shape = {1};
    args.input.lod.clear();
    args.input.SetMemory(BufferRef(), nullptr);
    args.output.DropMemory();
    args.bound.tensors.clear();
    args.bound.constant.clear();
    ASSERT_THAT(stream->Synchronize(), IsOk());
    EXPECT_FALSE(errors.any()) << errors.Take()->status;
  }
  EXPECT_THAT(Read(*stream, b, 2), ElementsAre(2, 3));
}

TEST_P(SimDeviceTest, AKernelMayWriteOverItsInputAndUseViews) {
  const auto stream = OpenStream(*device_);
  float* a = Floats(*device_, 4);
  Put(*stream, a, {1, 2, 3, 4});
  InOut args(OnDevice(*device_, a, 4), OnDevice(*device_, a, 4));
  args.output = args.input;
  ASSERT_THAT(Launch(*stream, AddOne, args), IsOk());
  args.input.shape = {2};  // the second half
  args.input.SetMemory(args.input.buffer(), a + 2);
  args.output = args.input;
  ASSERT_THAT(Launch(*stream, AddOne, args), IsOk());
  EXPECT_THAT(Read(*stream, a, 4), ElementsAre(2, 3, 5, 6));
}

TEST_P(SimDeviceTest, HostArgumentsLiveUntilTheKernelHasRun) {
  const auto stream = OpenStream(*device_);
  float* b = Floats(*device_, 1);
  float value = 41;
  std::atomic<bool> released = false;
  Tensor host;
  host.shape = {1};
  host.dtype = DType::kFloat32;
  host.SetMemory(BorrowBuffer(&value, 4, /*writable=*/true, [&] { released = true; }), &value);
  InOut args(host, OnDevice(*device_, b, 1));
  const KernelFn kernel = [](KernelContext& ctx) {
    if (ctx.input(0).buffer()->refs < 1) return absl::InternalError("gone");
    return AddOne(ctx);
  };
  ASSERT_THAT(Launch(*stream, kernel, args), IsOk());
  host.DropMemory();
  args.input.DropMemory();
  EXPECT_THAT(Read(*stream, b, 1), ElementsAre(42));
  EXPECT_TRUE(released);
}

TEST_P(SimDeviceTest, HostMemoryOfACopyLivesUntilItIsDone) {
  const auto stream = OpenStream(*device_);
  float* a = Floats(*device_, 1);
  float value = 41;
  std::atomic<bool> released = false;
  EXPECT_THAT(stream->CopyToDevice(a, &value,
                                   BorrowBuffer(&value, 4, false, [&] { released = true; }), 4, {}),
              IsOk());
  EXPECT_THAT(Read(*stream, a, 1), ElementsAre(41));
  EXPECT_TRUE(released);
}

TEST_P(SimDeviceTest, KernelsGetScratchMemoryAndKeepState) {
  struct Count : KernelState {
    float runs = 0;
  };
  const auto stream = OpenStream(*device_);
  float* a = Floats(*device_, 1);
  std::unique_ptr<KernelState> state;
  const int attrs = 10;
  InOut args(OnDevice(*device_, a, 1), OnDevice(*device_, a, 1));
  const KernelFn kernel = [](KernelContext& ctx) {
    Tensor scratch;
    scratch.shape = {1};
    scratch.dtype = DType::kFloat32;
    INTERP_RETURN_IF_ERROR(ctx.Allocate(scratch));
    *scratch.mutable_data<float>() = ++ctx.state<Count>().runs;
    *ctx.output(0).mutable_data<float>() =
        *scratch.data<float>() + static_cast<float>(ctx.attrs<int>() + ctx.instruction());
    return absl::OkStatus();
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(LaunchHostKernel(*stream, kernel, args.bound, &attrs,
                                 {.state = &state, .instruction = 100}, {}),
                IsOk());
  }
  EXPECT_THAT(Read(*stream, a, 1), ElementsAre(113));
}

TEST_P(SimDeviceTest, AbsentArgumentsStayAbsent) {
  const auto stream = OpenStream(*device_);
  float* a = Floats(*device_, 1);
  Tensor shape_only;
  shape_only.shape = {7};
  InOut args(shape_only, OnDevice(*device_, a, 1));
  args.bound.input_slots.push_back({2, 1});
  args.bound.tensors.push_back(nullptr);
  args.bound.variables.push_back(nullptr);
  args.bound.constant.push_back(false);
  const KernelFn kernel = [](KernelContext& ctx) {
    if (ctx.has_input(1) || ctx.input(0).has_memory()) return absl::InternalError("not absent");
    *ctx.output(0).mutable_data<float>() = static_cast<float>(ctx.input(0).shape[0]);
    return absl::OkStatus();
  };
  ASSERT_THAT(Launch(*stream, kernel, args), IsOk());
  EXPECT_THAT(Read(*stream, a, 1), ElementsAre(7));
}

TEST_P(SimDeviceTest, ArgumentsOfAnotherDeviceAreAnError) {
  const auto stream = OpenStream(*device_);
  const auto other = MakeDevice({.index = 1, .execution = GetParam()});
  InOut args(OnDevice(*other, Floats(*other, 1), 1), OnDevice(*device_, Floats(*device_, 1), 1));
  EXPECT_THAT(Launch(*stream, AddOne, args),
              FailsWith(absl::StatusCode::kInternal, "argument 0: lies on sim:1"));
}

// ---- Failures

TEST_P(SimDeviceTest, TheFirstFailureIsKeptAndLaterWorkSkipped) {
  const auto stream = OpenStream(*device_);
  const auto event = MakeEvent(*device_);
  float* a = Floats(*device_, 1);
  WorkErrors errors;
  Put(*stream, a, {1}, {.tag = 0, .errors = &errors});
  InOut args(OnDevice(*device_, a, 1), OnDevice(*device_, a, 1));
  const KernelFn fails = [](KernelContext& ctx) {
    return InvalidArgument("bad ", *ctx.input(0).data<float>());
  };
  ASSERT_THAT(Launch(*stream, fails, args, {.tag = 1, .errors = &errors}), IsOk());
  ASSERT_THAT(Launch(*stream, AddOne, args, {.tag = 2, .errors = &errors}), IsOk());
  Put(*stream, a, {9}, {.tag = 3, .errors = &errors});
  ASSERT_THAT(Launch(*stream, fails, args, {.tag = 4, .errors = &errors}), IsOk());
  ASSERT_THAT(stream->Record(*event), IsOk());
  ASSERT_THAT(event->Synchronize(), IsOk());
  EXPECT_TRUE(errors.any());
  const std::optional<WorkError> error = errors.Take();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->tag, 1);
  EXPECT_THAT(error->status, FailsWith(absl::StatusCode::kInvalidArgument, "bad 1"));
  EXPECT_FALSE(errors.any());
  EXPECT_FALSE(errors.Take().has_value());
  // Once taken, work goes on; what was skipped has left no trace.
  ASSERT_THAT(Launch(*stream, AddOne, args, {.tag = 5, .errors = &errors}), IsOk());
  EXPECT_THAT(Read(*stream, a, 1), ElementsAre(2));
}

TEST_P(SimDeviceTest, OnesErrorsAreNotAnothers) {
  const auto stream = OpenStream(*device_);
  float* a = Floats(*device_, 1);
  WorkErrors mine;
  WorkErrors yours;
  Put(*stream, a, {1});
  InOut args(OnDevice(*device_, a, 1), OnDevice(*device_, a, 1));
  const KernelFn fails = [](KernelContext&) { return NotFound("x"); };
  ASSERT_THAT(Launch(*stream, fails, args, {.errors = &mine}), IsOk());
  ASSERT_THAT(Launch(*stream, fails, args), IsOk());  // nobody wants to know
  ASSERT_THAT(Launch(*stream, AddOne, args, {.errors = &yours}), IsOk());
  EXPECT_THAT(Read(*stream, a, 1), ElementsAre(2));
  EXPECT_TRUE(mine.any());
  EXPECT_FALSE(yours.any());
}

TEST_P(SimDeviceTest, ExceptionsAndStolenOutputsAreFailures) {
  struct Case {
    KernelFn kernel;
    absl::StatusCode code;
    const char* message;
  };
  const Case cases[] = {
      {[](KernelContext&) -> absl::Status { throw std::bad_alloc(); },
       absl::StatusCode::kResourceExhausted, "no memory left"},
      {[](KernelContext&) -> absl::Status { throw std::runtime_error("thrown"); },
       absl::StatusCode::kInternal, "thrown"},
      {[](KernelContext&) -> absl::Status { throw 1; }, absl::StatusCode::kInternal, "threw"},
      {[](KernelContext& ctx) {
         ctx.output(0).DropMemory();
         return ctx.Allocate(ctx.output(0));
       },
       absl::StatusCode::kInternal, "output 0 of slot 0 memory of its own"}};
  const auto stream = OpenStream(*device_);
  float* a = Floats(*device_, 1);
  InOut args(OnDevice(*device_, a, 1), OnDevice(*device_, a, 1));
  for (const Case& c : cases) {
    WorkErrors errors;
    ASSERT_THAT(Launch(*stream, c.kernel, args, {.errors = &errors}), IsOk());
    ASSERT_THAT(stream->Synchronize(), IsOk());
    const std::optional<WorkError> error = errors.Take();
    ASSERT_TRUE(error.has_value());
    EXPECT_THAT(error->status, FailsWith(c.code, c.message));
  }
}

// ---- Many threads

TEST_P(SimDeviceTest, ThreadsEnqueueSideBySide) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  const auto shared = OpenStream(*device_, "shared");
  const auto chain = MakeEvent(*device_);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    float* a = Floats(*device_, 1);
    threads.emplace_back([&, a] {
      const auto own = OpenStream(*device_, "own");
      const auto event = MakeEvent(*device_);
      Put(*own, a, {0});
      InOut args(OnDevice(*device_, a, 1), OnDevice(*device_, a, 1));
      for (int i = 0; i < kRounds; ++i) {
        Stream& stream = i % 2 == 0 ? *own : *shared;
        ASSERT_THAT(stream.Wait(*event), IsOk());
        EXPECT_THAT(Launch(stream, AddOne, args), IsOk());
        ASSERT_THAT(stream.Record(*event), IsOk());
        ASSERT_THAT(stream.Record(*chain), IsOk());
        if (i % 10 == 0) {
          EXPECT_THAT(chain->Synchronize(), IsOk());
        }
        if (i % 16 == 0) {
          EXPECT_THAT(device_->Synchronize(), IsOk());
        }
        device_->NowNs();
      }
      ASSERT_THAT(own->Wait(*event), IsOk());
      EXPECT_THAT(Read(*own, a, 1), ElementsAre(kRounds));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace interp
