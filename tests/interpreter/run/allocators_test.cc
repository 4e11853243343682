// Results do not depend on how memory is kept or where it comes from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/device/device_memory.h"
#include "core/storage/pool.h"
#include "core/storage/shared_memory.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/devices.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/random_graph.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

CoreOptions Options(PoolKind allocator) {
  CoreOptions options;
  options.allocator = allocator;
  options.ops = &ProbeOps();
  return options;
}

std::vector<Tensor> RunTwice(uint64_t seed, const CoreOptions& options) {
  const RandomGraph graph = MakeRandomGraph(seed, {});
  const auto core =
      InterpreterCore::Create(graph.program, {}, {}, RandomScope(seed, graph), options);
  EXPECT_THAT(core, IsOk());
  if (!core.ok()) return {};
  for (int run = 0;; ++run) {
    const auto fetched = (*core)->Run(RandomFeeds(seed, {}, /*rows=*/4));
    EXPECT_THAT(fetched, IsOk());
    if (!fetched.ok()) return {};
    if (run == 1) return *fetched;
  }
}

TEST(AllocatorsTest, EveryAllocatorGivesTheSameBits) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const std::vector<Tensor> expected = RunTwice(seed, Options(PoolKind::kTlsf));
    for (const PoolKind kind :
         {PoolKind::kNaive, PoolKind::kPowerOfTwo, PoolKind::kLinear, PoolKind::kExact}) {
      CoreOptions options = Options(kind);
      EXPECT_TRUE(SameBits(RunTwice(seed, options), expected)) << Name(kind);
      options.scheduler = SchedulerKind::kAsync;
      options.num_workers = 4;
      EXPECT_TRUE(SameBits(RunTwice(seed, options), expected)) << Name(kind) << ", 4 workers";
    }
  }
}

TEST(AllocatorsTest, PinnedAndSharedMemoryGiveTheSameBits) {
  const std::vector<Tensor> expected = RunTwice(3, Options(PoolKind::kTlsf));
  for (const HostMemory memory : {HostMemory::kPinned, HostMemory::kShared}) {
    CoreOptions options = Options(PoolKind::kTlsf);
    options.host_memory = MakeHostMemory(memory);
    EXPECT_TRUE(SameBits(RunTwice(3, options), expected)) << Name(memory);
  }
}

// A result that another process can open where it lies.
TEST(AllocatorsTest, FetchesLieInTheSourceThatIsGiven) {
  const auto source = std::make_shared<SharedMemorySource>();
  CoreOptions options = Options(PoolKind::kTlsf);
  options.host_memory = source;
  const std::vector<Tensor> fetched = RunTwice(3, options);
  ASSERT_FALSE(fetched.empty());
  const auto at = source->Locate(fetched[0].raw_data());
  ASSERT_THAT(at, IsOk());
  const auto seen = SharedMemory::Open(at->segment, Access::kRead);
  ASSERT_THAT(seen, IsOk());
  EXPECT_EQ(std::memcmp(static_cast<char*>((*seen)->data()) + at->offset_bytes,
                        fetched[0].raw_data(), fetched[0].size_bytes()),
            0);
}

TEST(AllocatorsTest, MemoryOfADeviceIsNoHostMemory) {
  CoreOptions options = Options(PoolKind::kExact);
  options.host_memory = std::make_shared<DeviceMemory>(MakeDevice({}));
  const RandomGraph graph = MakeRandomGraph(1, {});
  EXPECT_THAT(InterpreterCore::Create(graph.program, {}, {}, RandomScope(1, graph), options),
              FailsWith(absl::StatusCode::kInvalidArgument, "sim:0"));
}

TEST(AllocatorsTest, EveryPoolTellsWhatItDid) {
  CoreOptions options = Options(PoolKind::kExact);
  options.plan.place = {PlaceKind::kSim, 0};
  const RandomGraph graph = MakeRandomGraph(2, {});
  const auto core = InterpreterCore::Create(graph.program, {}, {}, RandomScope(2, graph), options);
  ASSERT_THAT(core, IsOk());
  ASSERT_THAT((*core)->Run(RandomFeeds(2, {}, /*rows=*/4)), IsOk());
  const std::vector<PoolStats> pools = (*core)->pool_stats();
  ASSERT_THAT(pools,
              ElementsAre(Field(&PoolStats::name, "host"), Field(&PoolStats::name, "sim:0")));
  EXPECT_EQ(pools[0].kind, "exact");
  EXPECT_EQ(pools[1].kind, "stream");
  for (const PoolStats& pool : pools) {
    EXPECT_GT(pool.memory.allocations, 0) << pool.name;
    EXPECT_EQ(pool.hits + pool.misses, pool.memory.allocations) << pool.name;
    EXPECT_GE(pool.memory.reserved_bytes, pool.memory.current_bytes) << pool.name;
  }
}

}  // namespace
}  // namespace interp::testing
