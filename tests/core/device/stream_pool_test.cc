// Long because what streams may do with memory is tested in both ways a device executes.
#include "core/device/stream_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <thread>

#include "core/device/device_heap.h"
#include "tests/testing/devices.h"

namespace interp {
namespace {

using testing::AddOne;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::Execution;
using testing::FailsWith;
using testing::Get;
using testing::InOut;
using testing::IsOk;
using testing::MakeDevice;
using testing::MakeEvent;
using testing::OpenStream;
using testing::Put;
using testing::Read;
using testing::Values;

float PoisonedFloat() {
  float value = 0;
  std::memset(&value, kPoison, sizeof(value));
  return value;
}

BufferRef Take(StreamPool& pool, Stream& stream, size_t bytes) {
  absl::StatusOr<BufferRef> buffer = pool.ForStream(stream).Allocate(bytes);
  EXPECT_THAT(buffer, IsOk());
  return buffer.ok() ? *std::move(buffer) : BufferRef();
}

Tensor Vector(const BufferRef& buffer) {
  Tensor tensor;
  tensor.dtype = DType::kFloat32;
  tensor.shape = {static_cast<int64_t>(buffer->size_bytes / sizeof(float))};
  tensor.SetMemory(buffer, buffer->data);
  return tensor;
}

// buffer[i] += 1
void AddOneTo(Stream& stream, const BufferRef& buffer) {
  InOut args(Vector(buffer), Vector(buffer));
  ASSERT_THAT(testing::Launch(stream, AddOne, args), IsOk());
}

// A device with two streams and a pool.
struct Rig {
  explicit Rig(const SimOptions& sim, const StreamPoolOptions& options = {})
      : device(MakeDevice(sim)),
        a(OpenStream(*device, "a")),
        b(OpenStream(*device, "b")),
        pool(StreamPool::Create(*device, options)) {}

  std::shared_ptr<Device> device;
  std::unique_ptr<Stream> a;
  std::unique_ptr<Stream> b;
  std::shared_ptr<StreamPool> pool;
};

class StreamPoolTest : public ::testing::TestWithParam<Execution> {
 protected:
  SimOptions Sim(size_t capacity_bytes = 1 << 20, uint64_t seed = 0) const {
    return {.capacity_bytes = capacity_bytes,
            .seed = seed,
            .execution = GetParam(),
            .max_kernel_delay_ns = 0,
            .max_copy_delay_ns = seed == 0 ? 0 : 200'000};
  }
};
INSTANTIATE_TEST_SUITE_P(Executions, StreamPoolTest,
                         ::testing::Values(Execution::kThreads, Execution::kInterleaved),
                         testing::NameOf);

TEST_P(StreamPoolTest, BuffersLieOnTheDevice) {
  Rig rig(Sim());
  std::set<uint64_t> serials;
  for (const size_t bytes : {0, 1, 64, 65, 4000}) {
    const BufferRef buffer = Take(*rig.pool, *rig.a, bytes);
    EXPECT_EQ(buffer->place, rig.device->place());
    EXPECT_EQ(buffer->size_bytes, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data) % kBufferAlignment, 0u);
    EXPECT_NE(buffer->data, nullptr);
    EXPECT_TRUE(buffer->writable);
    EXPECT_TRUE(buffer.unique());
    EXPECT_TRUE(serials.insert(buffer->serial).second);
  }
}

TEST_P(StreamPoolTest, AStreamGetsItsMemoryBackAtOnce) {
  Rig rig(Sim());
  BufferRef x = Take(*rig.pool, *rig.a, 400);
  const void* address = x->data;
  Put(*rig.a, x->data, std::vector<float>(100, 1));
  const Tensor ones = Get(*rig.a, x->data, 100);
  x.reset();  // the copies may be queued still
  x = Take(*rig.pool, *rig.a, 400);
  EXPECT_EQ(x->data, address);
  Put(*rig.a, x->data, std::vector<float>(100, 2));
  EXPECT_THAT(Read(*rig.a, x->data, 100), Each(2));
  EXPECT_THAT(Values<float>(ones), Each(1));
}

TEST_P(StreamPoolTest, AnotherStreamGetsFreshMemoryWhileThereIsSome) {
  Rig rig(Sim(4096));
  BufferRef x = Take(*rig.pool, *rig.a, 2048);
  const void* address = x->data;
  x.reset();
  x = Take(*rig.pool, *rig.b, 2048);
  EXPECT_NE(x->data, address);
  EXPECT_EQ(rig.pool->stats().reserved_bytes, 4096u);
  EXPECT_EQ(Take(*rig.pool, *rig.a, 2048)->data, address);
}

// Freed while another stream uses it, as the clock has it: fresh memory, while there is some.
TEST_P(StreamPoolTest, FreshMemoryIsPreferredToWaiting) {
  Rig rig(Sim(2048));
  BufferRef x = Take(*rig.pool, *rig.a, 1024);
  const void* address = x->data;
  AddOneTo(*rig.b, x);
  rig.pool->RecordUse(*x.get(), *rig.b);
  x.reset();
  BufferRef fresh = Take(*rig.pool, *rig.a, 1024);
  EXPECT_NE(fresh->data, address);
  x = Take(*rig.pool, *rig.a, 1024);  // no more is left
  EXPECT_EQ(x->data, address);
  AddOneTo(*rig.b, x);
  rig.pool->RecordUse(*x.get(), *rig.b);
  x.reset();
  fresh.reset();
  EXPECT_THAT(rig.device->Synchronize(), IsOk());  // now b is done
  EXPECT_EQ(Take(*rig.pool, *rig.a, 1024)->data, address);
}

// a writes, frees; b gets the memory and writes: a's copy out must come first.
TEST_P(StreamPoolTest, AnotherStreamGetsMemoryBehindAnEvent) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rig rig(Sim(2048, seed));
    BufferRef x = Take(*rig.pool, *rig.a, 2048);
    const void* address = x->data;
    Put(*rig.a, x->data, std::vector<float>(512, 1));
    const Tensor ones = Get(*rig.a, x->data, 512);
    x.reset();
    x = Take(*rig.pool, *rig.b, 1024);
    EXPECT_EQ(x->data, address);
    // What was cut off is b's, too: a waits before it gets it back.
    const BufferRef rest = Take(*rig.pool, *rig.a, 1024);
    Put(*rig.b, x->data, std::vector<float>(256, 2));
    Put(*rig.a, rest->data, std::vector<float>(256, 3));
    EXPECT_THAT(Read(*rig.b, x->data, 256), Each(2));
    EXPECT_THAT(Read(*rig.a, rest->data, 256), Each(3));
    EXPECT_THAT(Values<float>(ones), Each(1)) << seed;
  }
}

// b reads what a's allocation holds, after which a overwrites the memory as another allocation.
std::vector<float> ReadElsewhereThenReuse(const SimOptions& sim, bool announce, bool poison) {
  Rig rig(sim, {.poison_freed = poison});
  const auto written = MakeEvent(*rig.device);
  BufferRef x = Take(*rig.pool, *rig.a, 400);
  Put(*rig.a, x->data, std::vector<float>(100, 1));
  EXPECT_THAT(rig.a->Record(*written), IsOk());
  EXPECT_THAT(rig.b->Wait(*written), IsOk());
  const Tensor out = Get(*rig.b, x->data, 100);
  if (announce) rig.pool->RecordUse(*x.get(), *rig.b);
  x.reset();
  if (!poison) {
    x = Take(*rig.pool, *rig.a, 400);
    Put(*rig.a, x->data, std::vector<float>(100, 2));
  }
  EXPECT_THAT(rig.device->Synchronize(), IsOk());
  return Values<float>(out);
}

TEST_P(StreamPoolTest, AnnouncedUsesComeBeforeTheNextOwner) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    for (const bool poison : {false, true}) {
      EXPECT_THAT(ReadElsewhereThenReuse(Sim(1 << 20, seed), /*announce=*/true, poison), Each(1))
          << seed;
    }
  }
}

// Another device copies what a's allocation holds, after which a overwrites the memory as another
// allocation.
std::vector<float> CopyToPeerThenReuse(const SimOptions& sim, bool announce, bool poison) {
  Rig rig(sim, {.poison_freed = poison});
  SimOptions of_peer = sim;
  of_peer.index = 1;
  Rig peer(of_peer);
  const auto written = MakeEvent(*rig.device);
  BufferRef x = Take(*rig.pool, *rig.a, 400);
  const BufferRef copy = Take(*peer.pool, *peer.a, 400);
  Put(*rig.a, x->data, std::vector<float>(100, 1));
  EXPECT_THAT(rig.a->Record(*written), IsOk());
  EXPECT_THAT(peer.a->Wait(*written), IsOk());
  EXPECT_THAT(peer.a->CopyFromPeer(copy->data, x->data, rig.device->place(), 400, {}), IsOk());
  if (announce) rig.pool->RecordUse(*x.get(), *peer.a);
  x.reset();
  if (!poison) {
    x = Take(*rig.pool, *rig.a, 400);
    Put(*rig.a, x->data, std::vector<float>(100, 2));
  }
  EXPECT_THAT(rig.device->Synchronize(), IsOk());
  return Read(*peer.a, copy->data, 100);
}

TEST_P(StreamPoolTest, CopiesOfPeersComeBeforeTheNextOwner) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    for (const bool poison : {false, true}) {
      EXPECT_THAT(CopyToPeerThenReuse(Sim(1 << 20, seed), /*announce=*/true, poison), Each(1))
          << seed;
    }
  }
}

TEST_P(StreamPoolTest, ACopyOfAPeerThatIsNotAnnouncedReadsPoisonOrTheNextOwnersValues) {
  if (GetParam() == Execution::kThreads) return;  // a race, which a sanitizer would report
  for (const bool poison : {false, true}) {
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 60 && wrong == 0; ++seed) {
      wrong += CopyToPeerThenReuse(Sim(1 << 20, seed), /*announce=*/false, poison)[50] ==
               (poison ? PoisonedFloat() : 2);
    }
    EXPECT_GT(wrong, 0) << poison;
  }
}

// Memory of the heap is given back behind copies of peers, too: the device waits for them.
TEST_P(StreamPoolTest, TheDeviceWaitsForCopiesOfPeersFromItsHeap) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rig rig(Sim(1 << 20, seed));
    SimOptions of_peer = Sim(1 << 20, seed);
    of_peer.index = 1;
    Rig peer(of_peer);
    DeviceHeap heap(rig.device);
    absl::StatusOr<Tensor> x = heap.Upload(testing::VectorOf<float>(std::vector<float>(100, 1)));
    ASSERT_THAT(x, IsOk());
    const void* const address = x->raw_data();
    const BufferRef copy = Take(*peer.pool, *peer.a, 400);
    ASSERT_THAT(peer.a->CopyFromPeer(copy->data, address, rig.device->place(), 400, {}), IsOk());
    rig.pool->RecordUse(*x->buffer().get(), *peer.a);
    x->DropMemory();
    x = heap.Upload(testing::VectorOf<float>(std::vector<float>(100, 2)));
    ASSERT_THAT(x, IsOk());
    EXPECT_EQ(x->raw_data(), address);
    EXPECT_THAT(Read(*peer.a, copy->data, 100), Each(1)) << seed;
  }
}

// A device without a stream to spare waits.
TEST_P(StreamPoolTest, CopiesOfPeersAreWaitedForWhereNoStreamIsLeft) {
  Rig rig(Sim());
  SimOptions of_peer = Sim();
  of_peer.index = 1;
  Rig peer(of_peer);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 2; i < kMaxStreams; ++i) streams.push_back(OpenStream(*rig.device));
  BufferRef x = Take(*rig.pool, *rig.a, 400);
  const BufferRef copy = Take(*peer.pool, *peer.a, 400);
  Put(*rig.a, x->data, std::vector<float>(100, 1));
  ASSERT_THAT(rig.a->Synchronize(), IsOk());
  ASSERT_THAT(peer.a->CopyFromPeer(copy->data, x->data, rig.device->place(), 400, {}), IsOk());
  rig.pool->RecordUse(*x.get(), *peer.a);
  x.reset();
  x = Take(*rig.pool, *rig.a, 400);
  Put(*rig.a, x->data, std::vector<float>(100, 2));
  ASSERT_THAT(rig.a->Synchronize(), IsOk());
  EXPECT_THAT(Read(*peer.a, copy->data, 100), Each(1));
}

TEST_P(StreamPoolTest, AUseThatIsNotAnnouncedReadsPoisonOrTheNextOwnersValues) {
  if (GetParam() == Execution::kThreads && testing::kFindsRaces) GTEST_SKIP() << "races";
  for (const bool poison : {false, true}) {
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 60 && wrong == 0; ++seed) {
      SimOptions sim = Sim(1 << 20, seed);
      sim.max_copy_delay_ns = 2'000'000;
      wrong += ReadElsewhereThenReuse(sim, /*announce=*/false, poison)[50] ==
               (poison ? PoisonedFloat() : 2);
    }
    EXPECT_GT(wrong, 0) << poison;
  }
}

TEST_P(StreamPoolTest, ALateReaderFindsPoison) {
  for (const bool elsewhere : {false, true}) {
    Rig rig(Sim(), {.poison_freed = true});
    BufferRef x = Take(*rig.pool, *rig.a, 400);
    const void* address = x->data;
    Put(*rig.a, x->data, std::vector<float>(100, 1));
    if (elsewhere) rig.pool->RecordUse(*x.get(), *rig.b);
    x.reset();
    EXPECT_THAT(rig.device->Synchronize(), IsOk());
    EXPECT_THAT(Read(*rig.a, address, 100), Each(PoisonedFloat()));
    // The next owner's first write comes after the poison.
    x = Take(*rig.pool, *rig.a, 400);
    ASSERT_EQ(x->data, address);
    Put(*rig.a, x->data, std::vector<float>(100, 2));
    EXPECT_THAT(Read(*rig.a, address, 100), Each(2));
  }
}

TEST_P(StreamPoolTest, PoisonNeverHitsTheNextOwner) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rig rig(Sim(1024, seed), {.poison_freed = true});
    for (int round = 0; round < 4; ++round) {
      Stream& home = round % 2 == 0 ? *rig.a : *rig.b;
      Stream& other = round % 2 == 0 ? *rig.b : *rig.a;
      const auto event = MakeEvent(*rig.device);
      const BufferRef x = Take(*rig.pool, home, 1024);
      Put(home, x->data, std::vector<float>(256, 1));
      ASSERT_THAT(home.Record(*event), IsOk());
      ASSERT_THAT(other.Wait(*event), IsOk());
      AddOneTo(other, x);
      rig.pool->RecordUse(*x.get(), other);
      EXPECT_THAT(Read(other, x->data, 256), Each(2));
    }
  }
}

TEST_P(StreamPoolTest, PoisonTakesNoSimulatedTime) {
  const auto run = [&](bool poison) {
    Rig rig(Sim(4096), {.poison_freed = poison});
    rig.device->StartTrace();
    for (int i = 0; i < 20; ++i) {
      const auto event = MakeEvent(*rig.device);
      const BufferRef x = Take(*rig.pool, i % 3 == 0 ? *rig.b : *rig.a, 1024 + 64 * i);
      const BufferRef y = Take(*rig.pool, *rig.a, 256);
      Put(*rig.a, y->data, std::vector<float>(64, 1));
      AddOneTo(*rig.a, y);
      EXPECT_THAT(rig.a->Record(*event), IsOk());
      EXPECT_THAT(rig.b->Wait(*event), IsOk());
      if (i % 2 == 0) {
        AddOneTo(*rig.b, y);
        rig.pool->RecordUse(*y.get(), *rig.b);
      }
    }
    std::string text;
    for (const DeviceSpan& s : rig.device->StopTrace()) {
      absl::StrAppend(&text, s.stream, " ", s.start_ns, " ", s.end_ns, "\n");
    }
    return absl::StrCat(text, rig.device->NowNs());
  };
  EXPECT_EQ(run(false), run(true));
}

TEST_P(StreamPoolTest, FreeNeighboursAreJoined) {
  Rig rig(Sim(8192));
  BufferRef whole = Take(*rig.pool, *rig.a, 8192);
  const void* address = whole->data;
  whole.reset();
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<BufferRef> parts;
    for (int i = 0; i < 8; ++i) parts.push_back(Take(*rig.pool, *rig.a, 1024));
    if (round % 2 == 0) rig.pool->RecordUse(*parts[round % 8].get(), *rig.b);
    EXPECT_THAT(rig.pool->ForStream(*rig.a).Allocate(64),
                FailsWith(absl::StatusCode::kResourceExhausted, "8192 bytes are in use"));
    std::shuffle(parts.begin(), parts.end(), random);
    parts.clear();
    whole = Take(*rig.pool, *rig.a, 8192);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->data, address);
    whole.reset();
  }
}

// Of two uses on one stream the later stands for both, in whichever order the blocks were freed.
TEST_P(StreamPoolTest, JoinedMemoryIsFreeAfterTheLastUse) {
  for (const size_t first : {0, 1}) {
    Rig rig(Sim(2048));
    Take(*rig.pool, *rig.a, 2048).reset();
    BufferRef parts[] = {Take(*rig.pool, *rig.a, 1024), Take(*rig.pool, *rig.a, 1024)};
    for (const size_t i : {first, 1 - first}) {
      InOut args(Vector(parts[i]), Vector(parts[i]));
      const int64_t bytes = i == first ? 0 : 1'000'000'000;
      ASSERT_THAT(testing::Launch(*rig.b, AddOne, args, {.bytes = bytes}), IsOk());
      rig.pool->RecordUse(*parts[i].get(), *rig.b);
      args.input.DropMemory();
      args.output.DropMemory();
      parts[i].reset();
    }
    AddOneTo(*rig.a, Take(*rig.pool, *rig.a, 2048));
    EXPECT_THAT(rig.a->Synchronize(), IsOk());
    const int64_t after_a = rig.device->NowNs();
    EXPECT_THAT(rig.b->Synchronize(), IsOk());
    EXPECT_EQ(rig.device->NowNs(), after_a);  // b has been done for long
  }
}

TEST_P(StreamPoolTest, TheBestFitIsTaken) {
  Rig rig(Sim(), {.chunk_bytes = 0});
  BufferRef large = Take(*rig.pool, *rig.a, 4096);
  BufferRef small = Take(*rig.pool, *rig.a, 1024);
  const void* small_address = small->data;
  large.reset();
  small.reset();
  EXPECT_EQ(Take(*rig.pool, *rig.a, 1000)->data, small_address);
}

TEST_P(StreamPoolTest, AnErrorSaysWhatIsInUseAndMemoryComesBack) {
  Rig rig(Sim(4096));
  std::vector<BufferRef> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(Take(*rig.pool, *rig.a, 1000));
  EXPECT_THAT(rig.pool->ForStream(*rig.b).Allocate(2000),
              FailsWith(absl::StatusCode::kResourceExhausted,
                        "cannot allocate 2000 bytes on sim:0: 3072 bytes are in use and the limit "
                        "is 4096"));
  // Another user of the device.
  const absl::StatusOr<void*> taken = rig.device->AllocateRaw(1024);
  ASSERT_THAT(taken, IsOk());
  EXPECT_THAT(rig.pool->ForStream(*rig.b).Allocate(128),
              FailsWith(absl::StatusCode::kResourceExhausted,
                        "cannot allocate 128 bytes on sim:0: 4096 of its 4096 bytes are in use and "
                        "the longest free range has 0 bytes; this pool has handed out 3072 bytes "
                        "and holds 0 free ones"));
  rig.device->FreeRaw(*taken, 1024);
  // Two blocks side by side, each of 1024 bytes: the pool trims and gets 2048 in one.
  Put(*rig.a, buffers[1]->data, {1});
  buffers[1].reset();
  buffers[2].reset();
  const BufferRef x = Take(*rig.pool, *rig.b, 2048);
  Put(*rig.b, x->data, std::vector<float>(512, 4));
  EXPECT_THAT(Read(*rig.b, x->data, 512), Each(4));
}

TEST_P(StreamPoolTest, TheLimitIsOnWhatIsHandedOut) {
  Rig rig(Sim(), {.limit_bytes = 1024});
  BufferRef x = Take(*rig.pool, *rig.a, 1000);
  EXPECT_THAT(rig.pool->ForStream(*rig.b).Allocate(1),
              FailsWith(absl::StatusCode::kResourceExhausted, "the limit is 1024"));
  x.reset();
  EXPECT_THAT(rig.pool->ForStream(*rig.b).Allocate(1024), IsOk());
  for (const size_t bytes : {size_t{1025}, std::numeric_limits<size_t>::max()}) {
    EXPECT_THAT(rig.pool->ForStream(*rig.b).Allocate(bytes),
                FailsWith(absl::StatusCode::kResourceExhausted, "cannot allocate"));
  }
}

TEST_P(StreamPoolTest, TestsMakeAllocationsFail) {
  int calls = 0;
  Rig rig(Sim(), {.fail = [&](size_t bytes) { return bytes == 100 && ++calls == 2; }});
  const BufferRef x = Take(*rig.pool, *rig.a, 100);
  EXPECT_THAT(rig.pool->ForStream(*rig.a).Allocate(100),
              FailsWith(absl::StatusCode::kResourceExhausted, "cannot allocate 100 bytes"));
  const BufferRef y = Take(*rig.pool, *rig.a, 100);
}

TEST_P(StreamPoolTest, CountsWhatIsHandedOutByAllStreams) {
  Rig rig(Sim(), {.chunk_bytes = 0});
  BufferRef x = Take(*rig.pool, *rig.a, 100);
  BufferRef y = Take(*rig.pool, *rig.b, 64);
  BufferRef z = Take(*rig.pool, *rig.b, 0);
  EXPECT_EQ(rig.pool->stats().current_bytes, 128u + 64u + 64u);
  EXPECT_EQ(rig.pool->stats().allocations, 3);
  EXPECT_EQ(rig.pool->ForStream(*rig.a).stats().current_bytes, 256u);
  std::thread([&x] { x.reset(); }).join();
  EXPECT_EQ(rig.pool->stats().current_bytes, 128u);
  EXPECT_EQ(rig.pool->stats().peak_bytes, 256u);
  rig.pool->ForStream(*rig.b).ResetPeak();
  EXPECT_EQ(rig.pool->stats().peak_bytes, 128u);
  EXPECT_EQ(rig.pool->stats().reserved_bytes, 256u);
}

TEST_P(StreamPoolTest, TrimGivesBackWhatIsFreeFromEndToEnd) {
  Rig rig(Sim(8192));
  BufferRef whole = Take(*rig.pool, *rig.a, 4096);
  whole.reset();
  BufferRef part = Take(*rig.pool, *rig.a, 1024);
  BufferRef other = Take(*rig.pool, *rig.b, 2048);
  Put(*rig.b, other->data, {1});
  const Tensor out = Get(*rig.b, other->data, 1);
  other.reset();
  EXPECT_EQ(rig.pool->Trim(), 2048u);
  EXPECT_EQ(*out.data<float>(), 1);  // it has waited
  EXPECT_EQ(rig.pool->stats().reserved_bytes, 4096u);
  part.reset();
  EXPECT_EQ(rig.pool->Trim(), 4096u);
  EXPECT_EQ(rig.pool->Trim(), 0u);
  EXPECT_THAT(rig.device->AllocateRaw(8192), IsOk());
}

TEST_P(StreamPoolTest, KeepsWhatIsFreeWhereItIsNotToTrimByItself) {
  Rig rig(Sim(8192), {.trims_when_short = false});
  Take(*rig.pool, *rig.a, 2048).reset();
  const BufferRef rest = Take(*rig.pool, *rig.a, 4096);
  EXPECT_THAT(rig.pool->ForStream(*rig.a).Allocate(4096),
              FailsWith(absl::StatusCode::kResourceExhausted, "holds 2048 free ones"));
  EXPECT_EQ(rig.pool->stats().reserved_bytes, 6144u);
  EXPECT_EQ(rig.pool->Trim(), 2048u);
}

// Two streams take what they need of one chunk; it goes back once all of it is free.
TEST_P(StreamPoolTest, TheDeviceIsAskedForChunks) {
  Rig rig(Sim(65536), {.chunk_bytes = 4096});
  BufferRef x = Take(*rig.pool, *rig.a, 1024);
  BufferRef y = Take(*rig.pool, *rig.b, 1024);
  EXPECT_EQ(rig.pool->pool_stats().misses, 1);
  EXPECT_EQ(rig.pool->stats().reserved_bytes, 4096u);
  EXPECT_EQ(static_cast<const char*>(y->data) - static_cast<const char*>(x->data), 1024);
  // More than is left of it.
  const BufferRef z = Take(*rig.pool, *rig.a, 3072);
  EXPECT_EQ(rig.pool->stats().reserved_bytes, 8192u);
  const BufferRef rest = Take(*rig.pool, *rig.b, 2048);
  EXPECT_EQ(rig.pool->pool_stats().misses, 2);
  AddOneTo(*rig.b, y);
  x.reset();
  EXPECT_EQ(rig.pool->Trim(), 0u);
  y.reset();
  EXPECT_EQ(rig.pool->Trim(), 0u);
}

TEST_P(StreamPoolTest, AChunkIsASmallPartOfTheDevice) {
  Rig rig(Sim(65536));
  const BufferRef x = Take(*rig.pool, *rig.a, 64);
  EXPECT_EQ(rig.pool->stats().reserved_bytes, 4096u);
}

TEST_P(StreamPoolTest, TrimWaitsForWhatUsedAChunk) {
  Rig rig(Sim(65536), {.chunk_bytes = 4096});
  BufferRef x = Take(*rig.pool, *rig.a, 1024);
  BufferRef y = Take(*rig.pool, *rig.b, 1024);
  Put(*rig.a, x->data, {1});
  Put(*rig.b, y->data, {2});
  const Tensor one = Get(*rig.a, x->data, 1);
  const Tensor two = Get(*rig.b, y->data, 1);
  x.reset();
  y.reset();
  EXPECT_EQ(rig.pool->Trim(), 4096u);
  EXPECT_EQ(*one.data<float>(), 1);
  EXPECT_EQ(*two.data<float>(), 2);
  EXPECT_EQ(rig.pool->stats().reserved_bytes, 0u);
}

TEST_P(StreamPoolTest, LivesUntilItsLastBufferIsGone) {
  Rig rig(Sim(4096), {.poison_freed = true});
  BufferRef x = Take(*rig.pool, *rig.a, 400);
  BufferRef y = Take(*rig.pool, *rig.b, 400);
  rig.pool->RecordUse(*y.get(), *rig.a);
  rig.pool.reset();
  Put(*rig.a, x->data, {1});
  EXPECT_THAT(Read(*rig.a, x->data, 1), ElementsAre(1));
  x.reset();
  y.reset();
  EXPECT_THAT(rig.device->AllocateRaw(4096), IsOk());  // all memory is back
}

// Any program of allocations, uses on both streams and frees gives the numbers of the program, with
// little memory, so that blocks are split, joined, taken over and trimmed. `seed` is the program.
void RunRandomProgram(const SimOptions& sim, bool poison, uint64_t seed) {
  struct Value {
    BufferRef buffer;
    float expected = 0;
    int last_stream = 0;
  };
  Rig rig(sim, {.poison_freed = poison});
  Stream* const streams[] = {rig.a.get(), rig.b.get()};
  const auto event = MakeEvent(*rig.device);
  std::mt19937_64 random(seed);
  std::vector<Value> values;
  std::vector<std::pair<Tensor, float>> results;
  for (int step = 0; step < 120; ++step) {
    const int at = static_cast<int>(random() % 2);
    const uint64_t choice = random() % 8;
    if (choice < 3) {
      absl::StatusOr<BufferRef> buffer =
          rig.pool->ForStream(*streams[at]).Allocate(64 + random() % 40 * 64);
      if (!buffer.ok()) {
        values.clear();
        continue;
      }
      values.push_back({*std::move(buffer), static_cast<float>(step), at});
      Put(*streams[at], values.back().buffer->data,
          std::vector<float>(values.back().buffer->size_bytes / 4, values.back().expected));
    } else if (!values.empty()) {
      const size_t i = random() % values.size();
      Value& value = values[i];
      if (choice == 7) {
        values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      if (value.last_stream != at) {
        EXPECT_THAT(streams[value.last_stream]->Record(*event), IsOk());
        ASSERT_THAT(streams[at]->Wait(*event), IsOk());
        value.last_stream = at;
      }
      rig.pool->RecordUse(*value.buffer.get(), *streams[at]);
      AddOneTo(*streams[at], value.buffer);
      value.expected += 1;
      results.emplace_back(Get(*streams[at], value.buffer->data, value.buffer->size_bytes / 4),
                           value.expected);
    }
  }
  EXPECT_THAT(rig.device->Synchronize(), IsOk());
  for (const auto& [tensor, expected] : results) EXPECT_THAT(Values<float>(tensor), Each(expected));
}

TEST_P(StreamPoolTest, RandomProgramsGiveTheirNumbers) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SimOptions sim = Sim(seed % 3 == 0 ? 1 << 20 : 16 << 10, seed);
    sim.max_copy_delay_ns = 20'000;
    RunRandomProgram(sim, /*poison=*/seed % 2 == 0, seed);
  }
}

TEST_P(StreamPoolTest, ThreadsShareAPool) {
  Rig rig(Sim(256 << 10), {.poison_freed = true});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&rig, t] {
      const auto event = MakeEvent(*rig.device);
      std::mt19937_64 random(t);
      for (int i = 0; i < 60; ++i) {
        Stream& home = random() % 2 == 0 ? *rig.a : *rig.b;
        Stream& other = random() % 2 == 0 ? *rig.a : *rig.b;
        BufferRef x = Take(*rig.pool, home, 64 + random() % 8000);
        const auto count = x->size_bytes / sizeof(float);
        const float value = static_cast<float>(t * 100 + i);
        Put(home, x->data, std::vector<float>(count, value));
        ASSERT_THAT(home.Record(*event), IsOk());
        ASSERT_THAT(other.Wait(*event), IsOk());
        const Tensor out = Get(other, x->data, count);
        rig.pool->RecordUse(*x.get(), other);
        if (i % 16 == 0) rig.pool->Trim();
        if (i % 3 != 0) x.reset();
        ASSERT_THAT(other.Synchronize(), IsOk());
        EXPECT_THAT(Values<float>(out), Each(value));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rig.pool->stats().current_bytes, 0u);
  EXPECT_EQ(rig.pool->stats().allocations, 240);
}

}  // namespace
}  // namespace interp
