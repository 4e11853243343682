// What every kind of pool promises, and what is special to each.
// Long because the kinds share the source that counts and the ways to fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "core/storage/pool.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using testing::FailsWith;
using testing::IsOk;

constexpr PoolKind kKinds[] = {PoolKind::kTlsf, PoolKind::kNaive, PoolKind::kPowerOfTwo,
                               PoolKind::kLinear, PoolKind::kExact};

BufferRef Take(Allocator& pool, size_t size_bytes) {
  absl::StatusOr<BufferRef> buffer = pool.Allocate(size_bytes);
  EXPECT_THAT(buffer, IsOk());
  return buffer.ok() ? *std::move(buffer) : BufferRef();
}

// The heap with a limit, which notes what is taken from it and checks what comes back.
class CountedSource final : public MemorySource {
 public:
  explicit CountedSource(size_t capacity_bytes = size_t{1} << 40, Place place = {})
      : capacity_bytes_(capacity_bytes), place_(place) {}
  ~CountedSource() override { EXPECT_EQ(taken_.size(), 0u) << "memory was not given back"; }

  std::string name() const override { return "counted"; }
  Place place() const override { return place_; }
  absl::StatusOr<void*> Take(size_t bytes) override {
    std::lock_guard<std::mutex> guard(mutex_);
    if (bytes > capacity_bytes_ - held_bytes_) {
      return ResourceExhausted("cannot allocate ", bytes, " bytes: that is all");
    }
    INTERP_ASSIGN_OR_RETURN(void* const memory, heap_->Take(bytes));
    EXPECT_TRUE(taken_.emplace(memory, bytes).second);
    held_bytes_ += bytes;
    ++takes_;
    return memory;
  }
  void Give(void* address, size_t bytes) override {
    std::lock_guard<std::mutex> guard(mutex_);
    const auto it = taken_.find(address);
    ASSERT_NE(it, taken_.end());
    EXPECT_EQ(it->second, bytes);
    taken_.erase(it);
    held_bytes_ -= bytes;
    heap_->Give(address, bytes);
  }
  void Quiesce() override { ++quiesces; }

  size_t held_bytes() {
    std::lock_guard<std::mutex> guard(mutex_);
    return held_bytes_;
  }
  int takes() {
    std::lock_guard<std::mutex> guard(mutex_);
    return takes_;
  }
  std::atomic<int> quiesces{0};

 private:
  const size_t capacity_bytes_;
  const Place place_;
  const std::shared_ptr<MemorySource> heap_ = MakeHostMemory(HostMemory::kOrdinary);
  std::mutex mutex_;  // guards what follows
  std::map<void*, size_t> taken_;
  size_t held_bytes_ = 0;
  int takes_ = 0;
};

std::shared_ptr<Pool> Make(std::shared_ptr<MemorySource> source, const PoolOptions& options) {
  absl::StatusOr<std::shared_ptr<Pool>> pool = Pool::Create(std::move(source), options);
  EXPECT_THAT(pool, IsOk());
  return *pool;
}

class PoolKindTest : public ::testing::TestWithParam<PoolKind> {
 protected:
  PoolOptions Options(PoolLimits limits = {}) const {
    return {.kind = GetParam(), .limits = limits, .min_chunk_bytes = 1};
  }
  bool keeps() const { return GetParam() != PoolKind::kNaive; }
};

TEST_P(PoolKindTest, BuffersAreAlignedWritableAndApart) {
  const auto source = std::make_shared<CountedSource>();
  const auto pool = Make(source, Options());
  std::vector<BufferRef> buffers;
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    buffers.push_back(Take(*pool, random() % 5000));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers[i]->data) % kBufferAlignment, 0u);
    EXPECT_TRUE(buffers[i]->writable);
    std::memset(buffers[i]->data, i, buffers[i]->size_bytes);
  }
  for (int i = 0; i < 200; ++i) {
    const auto* bytes = static_cast<unsigned char*>(buffers[i]->data);
    for (size_t b = 0; b < buffers[i]->size_bytes; ++b) ASSERT_EQ(bytes[b], i);
  }
}

TEST_P(PoolKindTest, EmptyBuffersHaveAnAddressOfTheirOwn) {
  const auto pool = Make(std::make_shared<CountedSource>(), Options());
  const BufferRef a = Take(*pool, 0);
  const BufferRef b = Take(*pool, 0);
  EXPECT_NE(a->data, nullptr);
  EXPECT_NE(a->data, b->data);
  EXPECT_EQ(a->size_bytes, 0u);
  EXPECT_EQ(pool->stats().current_bytes, 2 * kBufferAlignment);
}

TEST_P(PoolKindTest, HugeSizesAreAnErrorAndChangeNothing) {
  const auto pool = Make(std::make_shared<CountedSource>(1 << 20), Options());
  const size_t max = std::numeric_limits<size_t>::max();
  for (const size_t size : {max, max - 63, max - 64, max / 2, max / 2 + 1, max / 4, max / 4 + 1,
                            size_t{1} << 48, (size_t{1} << 20) + 1}) {
    EXPECT_THAT(pool->Allocate(size), FailsWith(absl::StatusCode::kResourceExhausted, ""));
  }
  EXPECT_EQ(pool->stats().current_bytes, 0u);
  EXPECT_EQ(pool->stats().reserved_bytes, 0u);
  EXPECT_EQ(pool->stats().peak_bytes, 0u);
  EXPECT_EQ(pool->pool_stats().failures, 9);
  EXPECT_THAT(pool->Allocate(100), IsOk());
}

TEST_P(PoolKindTest, AFreedBlockServesTheSameSizeAgain) {
  const auto source = std::make_shared<CountedSource>();
  const auto pool = Make(source, Options());
  void* const address = Take(*pool, 10'000)->data;
  const BufferRef again = Take(*pool, 10'000);
  const PoolStats stats = pool->pool_stats();
  EXPECT_EQ(stats.kind, Name(GetParam()));
  EXPECT_EQ(stats.name, "counted");
  EXPECT_EQ(stats.memory.allocations, 2);
  EXPECT_EQ(stats.hits, keeps() ? 1 : 0);
  EXPECT_EQ(stats.misses, keeps() ? 1 : 2);
  EXPECT_EQ(source->takes(), keeps() ? 1 : 2);
  if (keeps()) {
    EXPECT_EQ(again->data, address);
  }
}

TEST_P(PoolKindTest, TheLimitOnUseIsExact) {
  const auto pool = Make(std::make_shared<CountedSource>(), Options({.in_use_bytes = 1024}));
  BufferRef a = Take(*pool, 1000);
  EXPECT_THAT(pool->Allocate(1),
              FailsWith(absl::StatusCode::kResourceExhausted,
                        "cannot allocate 1 bytes: 1024 bytes are in use and the limit is 1024"));
  a.reset();
  EXPECT_THAT(pool->Allocate(1025), FailsWith(absl::StatusCode::kResourceExhausted, ""));
  EXPECT_THAT(pool->Allocate(1024), IsOk());
}

// Blocks of one size do not serve another in most kinds, and would be all that may be held.
TEST_P(PoolKindTest, OverTheReserveFreeBlocksOfOtherSizesMakeRoom) {
  const auto source = std::make_shared<CountedSource>();
  const auto pool = Make(source, Options({.reserved_bytes = 100'000}));
  std::vector<BufferRef> small;
  for (int i = 0; i < 10; ++i) small.push_back(Take(*pool, 4000));
  small.clear();
  BufferRef large = Take(*pool, 60'000);
  EXPECT_LE(source->held_bytes(), 100'000u);
  const PoolStats stats = pool->pool_stats();
  EXPECT_LE(stats.peak_reserved_bytes, 100'000u);
  EXPECT_EQ(stats.memory.reserved_bytes, source->held_bytes());
  EXPECT_THAT(pool->Allocate(60'000),
              FailsWith(absl::StatusCode::kResourceExhausted, "may hold 100000 bytes at most"));
  EXPECT_EQ(pool->stats().reserved_bytes, source->held_bytes());
  EXPECT_GT(pool->pool_stats().retries, 0);
  EXPECT_EQ(pool->pool_stats().failures, 1);
}

TEST_P(PoolKindTest, AShortSourceIsAskedAgainAfterATrim) {
  const auto source = std::make_shared<CountedSource>(100'000);
  const auto pool = Make(source, Options());
  { const std::vector<BufferRef> small = {Take(*pool, 30'000), Take(*pool, 30'000)}; }
  const BufferRef large = Take(*pool, 60'000);
  EXPECT_LE(source->held_bytes(), 100'000u);
  // tlsf has given back what it has outgrown before it asked.
  EXPECT_EQ(pool->pool_stats().retries, keeps() && GetParam() != PoolKind::kTlsf ? 1 : 0);
  EXPECT_EQ(pool->pool_stats().trims, keeps() ? 1 : 0);
  const absl::StatusOr<BufferRef> more = pool->Allocate(60'000);
  EXPECT_THAT(more, FailsWith(absl::StatusCode::kResourceExhausted, "that is all"));
  EXPECT_THAT(more, FailsWith(absl::StatusCode::kResourceExhausted, "this pool has handed out"));
}

TEST_P(PoolKindTest, TrimGivesBackWhatIsFreeAndTellsHowMuch) {
  const auto source = std::make_shared<CountedSource>();
  const auto pool = Make(source, Options());
  BufferRef kept = Take(*pool, 5000);
  Take(*pool, 100'000);
  Take(*pool, 3000);
  const size_t held = source->held_bytes();
  const size_t trimmed = pool->Trim();
  EXPECT_EQ(trimmed, held - source->held_bytes());
  EXPECT_EQ(pool->stats().reserved_bytes, source->held_bytes());
  if (keeps()) {
    EXPECT_GE(trimmed, 100'000u);
  }
  kept.reset();
  pool->Trim();
  EXPECT_EQ(source->held_bytes(), 0u);
  EXPECT_EQ(pool->pool_stats().cached_bytes, 0u);
  EXPECT_EQ(pool->Trim(), 0u);
}

TEST_P(PoolKindTest, TrimStopsAtItsTarget) {
  const auto source = std::make_shared<CountedSource>();
  const auto pool = Make(source, Options());
  {
    std::vector<BufferRef> buffers;
    for (int i = 0; i < 10; ++i) buffers.push_back(Take(*pool, 10'000));
  }
  if (!keeps()) return;
  EXPECT_GE(pool->pool_stats().cached_bytes, 100'000u);
  pool->Trim(/*keep_bytes=*/60'000);
  EXPECT_LE(source->held_bytes(), 60'000u);
  EXPECT_GE(source->held_bytes(), 30'000u);
  EXPECT_EQ(pool->Trim(/*keep_bytes=*/1'000'000), 0u);
}

TEST_P(PoolKindTest, DirectlyFreedMemoryGoesToTheSourceWithTheLastReference) {
  const auto source = std::make_shared<CountedSource>();
  const auto pool = Make(source, Options());
  BufferRef buffer = Take(*pool, 100'000);
  BufferRef other = buffer;
  pool->FreeDirect(std::move(buffer));
  EXPECT_GE(source->held_bytes(), 100'000u);
  other.reset();
  EXPECT_EQ(source->held_bytes(), 0u);
  EXPECT_EQ(pool->stats().reserved_bytes, 0u);
  // The next buffer is an ordinary one.
  Take(*pool, 100'000);
  EXPECT_EQ(source->held_bytes() > 0, keeps());
  pool->FreeDirect(BufferRef());
  pool->FreeDirect(Take(SystemAllocator(), 10));
}

TEST_P(PoolKindTest, BuffersKeepPoolAndSourceAlive) {
  std::vector<BufferRef> buffers;
  {
    const auto pool = Make(std::make_shared<CountedSource>(), Options());
    for (const size_t size : {0, 10, 5000}) buffers.push_back(Take(*pool, size));
    Take(*pool, 777);
  }
  std::memset(buffers[2]->data, 1, 5000);
  while (!buffers.empty()) buffers.pop_back();  // the source checks that all came back
}

TEST_P(PoolKindTest, TheFaultHookRefuses) {
  bool fail = false;
  PoolOptions options = Options();
  options.fail = [&](size_t bytes) { return fail && bytes == 7; };
  const auto pool = Make(std::make_shared<CountedSource>(), options);
  EXPECT_THAT(pool->Allocate(7), IsOk());
  fail = true;
  EXPECT_THAT(pool->Allocate(7), FailsWith(absl::StatusCode::kResourceExhausted, "7 bytes"));
  EXPECT_THAT(pool->Allocate(8), IsOk());
  EXPECT_EQ(pool->stats().current_bytes, 0u);
}

TEST_P(PoolKindTest, SerialsTellAllAllocationsOfTheProcessApart) {
  const auto source = std::make_shared<CountedSource>();
  std::set<uint64_t> serials;
  for (int p = 0; p < 3; ++p) {
    const auto pool = Make(source, Options());
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(serials.insert(Take(*pool, 64)->serial).second);
  }
}

// Threads allocate, write, hand to each other, drop and trim, under a limit that bites.
TEST_P(PoolKindTest, ThreadsShareAPool) {
  const auto source = std::make_shared<CountedSource>(2 << 20);
  const auto pool = Make(source, Options({.in_use_bytes = 1 << 20, .reserved_bytes = 1536 << 10}));
  std::mutex mutex;
  std::vector<BufferRef> passed(8);
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int step = 0; step < 3000; ++step) {
        absl::StatusOr<BufferRef> buffer = pool->Allocate(random() % 60'000);
        if (!buffer.ok()) {
          ASSERT_THAT(buffer, FailsWith(absl::StatusCode::kResourceExhausted, ""));
          continue;
        }
        std::memset((*buffer)->data, t, std::min<size_t>((*buffer)->size_bytes, 100));
        if (step % 50 == 0) pool->Trim(1 << 19);
        if (step % 7 == 0) pool->FreeDirect(*buffer);
        std::lock_guard<std::mutex> guard(mutex);
        std::swap(passed[random() % passed.size()], *buffer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  passed.clear();
  EXPECT_EQ(pool->stats().current_bytes, 0u);
  EXPECT_LE(pool->pool_stats().peak_reserved_bytes, size_t{1536} << 10);
  pool->Trim();
  EXPECT_EQ(pool->stats().reserved_bytes, 0u);
  EXPECT_EQ(source->held_bytes(), 0u);
}

// Buffers made on one thread and dropped on others, the pool's owner gone.
TEST_P(PoolKindTest, OrphansDieOnAnyThread) {
  for (int round = 0; round < 200; ++round) {
    auto pool = Make(std::make_shared<CountedSource>(), Options());
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([buffer = Take(*pool, 100)]() mutable { buffer.reset(); });
    }
    pool.reset();
    for (std::thread& thread : threads) thread.join();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PoolKindTest, ::testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(Name(info.param)); });

// Sizes that share a block, as MXNet's "Round" pool (power of two, linear above a cut-off) and its
// "Naive" one (pages, then multiples of a larger step).
bool ShareABlock(const PoolOptions& options, size_t a, size_t b) {
  const auto pool = Pool::OnHost(options);
  const void* address = Take(*pool, a)->data;
  return Take(*pool, b)->data == address && pool->pool_stats().hits == 1;
}

TEST(PoolRoundingTest, PowersOfTwoAndMultiplesOfTheCutOff) {
  const PoolOptions options{
      .kind = PoolKind::kPowerOfTwo, .page_bytes = 4096, .cutoff_bytes = 1 << 20};
  EXPECT_TRUE(ShareABlock(options, 32, 4095));
  EXPECT_TRUE(ShareABlock(options, 0, 4096));
  EXPECT_FALSE(ShareABlock(options, 4096, 4097));
  EXPECT_TRUE(ShareABlock(options, 5000, 8192));
  EXPECT_TRUE(ShareABlock(options, (512 << 10) + 1, 1 << 20));
  EXPECT_TRUE(ShareABlock(options, 2097153, 3145728));
  EXPECT_FALSE(ShareABlock(options, 2097153, 2097152));
  EXPECT_FALSE(ShareABlock(options, 3145728, 3145729));
}

TEST(PoolRoundingTest, PagesAndMultiplesOfTheCutOff) {
  const PoolOptions options{.kind = PoolKind::kLinear};
  EXPECT_TRUE(ShareABlock(options, 1, 4096));
  EXPECT_TRUE(ShareABlock(options, 8193, 12288));
  EXPECT_FALSE(ShareABlock(options, 8192, 8193));
  EXPECT_TRUE(ShareABlock(options, (2 << 20) + 1, 4 << 20));
  EXPECT_FALSE(ShareABlock(options, (4 << 20) + 1, 4 << 20));
}

TEST(PoolRoundingTest, ExactSizesAreCacheLines) {
  const PoolOptions options{.kind = PoolKind::kExact};
  EXPECT_TRUE(ShareABlock(options, 65, 128));
  EXPECT_FALSE(ShareABlock(options, 64, 65));
}

TEST(PoolOptionsTest, NamesAreReadAndListed) {
  for (const PoolKind kind : kKinds) {
    const absl::StatusOr<PoolKind> read = PoolKindFromName(Name(kind));
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(*read, kind);
  }
  EXPECT_THAT(PoolKindFromName("slab"),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "no allocator is named 'slab'; there are tlsf, naive, power_of_two, linear "
                        "and exact"));
  for (const HostMemory memory :
       {HostMemory::kOrdinary, HostMemory::kPinned, HostMemory::kShared}) {
    EXPECT_EQ(*HostMemoryFromName(Name(memory)), memory);
  }
  EXPECT_THAT(HostMemoryFromName("gpu"),
              FailsWith(absl::StatusCode::kInvalidArgument, "ordinary, pinned and shared"));
}

TEST(PoolOptionsTest, OddRoundingIsAnError) {
  const auto heap = MakeHostMemory(HostMemory::kOrdinary);
  EXPECT_THAT(Pool::Create(heap, {.kind = PoolKind::kLinear, .page_bytes = 5000}),
              FailsWith(absl::StatusCode::kInvalidArgument, "5000"));
  EXPECT_THAT(Pool::Create(heap, {.kind = PoolKind::kPowerOfTwo, .cutoff_bytes = 3}),
              FailsWith(absl::StatusCode::kInvalidArgument, "powers of two"));
}

// A place whose memory the host must not touch: blocks are used anew only after its work is done.
TEST(PoolOnDeviceTest, WaitsBeforeMemoryIsUsedAnew) {
  const Place sim = {PlaceKind::kSim, 1};
  const auto source = std::make_shared<CountedSource>(1 << 20, sim);
  EXPECT_THAT(Pool::Create(source, {.kind = PoolKind::kTlsf}),
              FailsWith(absl::StatusCode::kInvalidArgument, "sim:1"));
  const auto pool = Make(source, {.kind = PoolKind::kExact, .name = "weights"});
  BufferRef buffer = Take(*pool, 1000);
  EXPECT_EQ(buffer->place, sim);
  EXPECT_EQ(source->held_bytes(), 1024u) << "the header lies elsewhere";
  EXPECT_EQ(source->quiesces, 0);
  buffer.reset();
  EXPECT_EQ(source->quiesces, 1);
  pool->FreeDirect(Take(*pool, 1000));
  EXPECT_EQ(source->held_bytes(), 0u);
  EXPECT_EQ(pool->pool_stats().name, "weights");
  EXPECT_THAT(pool->Allocate(2 << 20), FailsWith(absl::StatusCode::kResourceExhausted, ""));
}

}  // namespace
}  // namespace interp
