#include "core/storage/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "core/resource/workspace.h"
#include "tests/testing/matchers.h"

namespace interp::pool_test {
namespace {

using testing::FailsWith;
using testing::IsOk;

BufferRef Take(Allocator& pool, size_t size_bytes) {
  absl::StatusOr<BufferRef> buffer = pool.Allocate(size_bytes);
  EXPECT_THAT(buffer, IsOk());
  return buffer.ok() ? *std::move(buffer) : BufferRef();
}

size_t RoundUp(size_t bytes) { return std::max<size_t>(64, (bytes + 63) / 64 * 64); }

TEST(PoolTest, BuffersAreAlignedAndWritable) {
  const auto pool = Pool::OnHost();
  for (const size_t size : {0, 1, 63, 64, 65, 4096, 1'000'000, 5'000'000}) {
    const BufferRef buffer = Take(*pool, size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data) % kBufferAlignment, 0u);
    EXPECT_EQ(buffer->size_bytes, size);
    EXPECT_TRUE(buffer->writable);
    std::memset(buffer->data, 1, size);
  }
}

TEST(PoolTest, TheBlockFreedLastIsHandedOutNext) {
  const auto pool = Pool::OnHost();
  BufferRef a = Take(*pool, 1000);
  const BufferRef between = Take(*pool, 1000);
  const void* address = a->data;
  a.reset();
  EXPECT_EQ(Take(*pool, 1000)->data, address);
}

TEST(PoolTest, AllocationsAtOneAddressAreTellableApart) {
  const auto pool = Pool::OnHost();
  BufferRef a = Take(*pool, 1000);
  const uint64_t serial = a->serial;
  const void* address = a->data;
  a.reset();
  a = Take(*pool, 1000);
  EXPECT_EQ(a->data, address);
  EXPECT_NE(a->serial, serial);
}

TEST(PoolTest, CountsWhatIsHandedOut) {
  const auto pool = Pool::OnHost();
  BufferRef a = Take(*pool, 100);
  BufferRef b = Take(*pool, 64);
  EXPECT_EQ(pool->stats().current_bytes, 128u + 64u);
  EXPECT_EQ(pool->stats().allocations, 2);
  a.reset();
  EXPECT_EQ(pool->stats().current_bytes, 64u);
  EXPECT_EQ(pool->stats().peak_bytes, 192u);
  pool->ResetPeak();
  EXPECT_EQ(pool->stats().peak_bytes, 64u);
  EXPECT_GE(pool->stats().reserved_bytes, size_t{1} << 20);
}

TEST(PoolTest, CountsVariablesWithoutWorkspace) {
  const auto pool = Pool::OnHost({.limits = {.in_use_bytes = 1024}});
  const BufferRef a = Take(*pool, 64);
  {
    absl::StatusOr<Workspace> taken = Workspace::Take(*pool, 640);
    ASSERT_THAT(taken, IsOk());
    Workspace moved = *std::move(taken);
    const BufferRef b = Take(*pool, 128);
    EXPECT_EQ(pool->stats().peak_bytes, 64u + 640u + 128u);
    EXPECT_EQ(pool->stats().peak_variable_bytes, 64u + 128u);
    EXPECT_FALSE(Workspace::Take(*pool, 4096).ok());
    EXPECT_FALSE(Workspace::Take(*pool, std::numeric_limits<size_t>::max()).ok());
  }
  pool->ResetPeak();
  EXPECT_EQ(pool->stats().peak_variable_bytes, 64u);
  const BufferRef c = Take(*pool, 640);
  EXPECT_EQ(pool->stats().peak_variable_bytes, 64u + 640u);
}

TEST(PoolTest, FreeNeighboursAreJoined) {
  const auto pool = Pool::OnHost({.min_chunk_bytes = 64 * 1024});
  for (int order = 0; order < 3; ++order) {
    std::vector<BufferRef> buffers;
    for (int i = 0; i < 15; ++i) buffers.push_back(Take(*pool, 4000));
    const size_t reserved = pool->stats().reserved_bytes;
    if (order == 1) std::reverse(buffers.begin(), buffers.end());
    if (order == 2) std::shuffle(buffers.begin(), buffers.end(), std::mt19937(1));
    for (BufferRef& buffer : buffers) buffer.reset();
    const BufferRef whole = Take(*pool, 15 * 4000);
    EXPECT_EQ(pool->stats().reserved_bytes, reserved) << "order " << order;
  }
}

TEST(PoolTest, TheLimitIsExact) {
  const auto pool = Pool::OnHost({.limits = {.in_use_bytes = 1024}});
  BufferRef a = Take(*pool, 1000);
  EXPECT_THAT(pool->Allocate(1), FailsWith(absl::StatusCode::kResourceExhausted,
                                           "1024 bytes are in use and the limit is 1024"));
  a.reset();
  EXPECT_THAT(pool->Allocate(1025), FailsWith(absl::StatusCode::kResourceExhausted, "1025 bytes"));
  std::vector<BufferRef> buffers;
  for (int i = 0; i < 16; ++i) buffers.push_back(Take(*pool, 64));
  EXPECT_THAT(pool->Allocate(0), FailsWith(absl::StatusCode::kResourceExhausted, ""));
}

// The free block of two units is handed out whole: half of it could not hold a header and a byte.
TEST(PoolTest, WhatABlockHasTooMuchIsNotCounted) {
  const auto pool = Pool::OnHost();
  BufferRef two = Take(*pool, 128);
  const BufferRef fence = Take(*pool, 64);
  const void* address = two->data;
  two.reset();
  const BufferRef one = Take(*pool, 64);
  if (one->data == address) {
    EXPECT_EQ(pool->stats().current_bytes, 128u);
  }
}

TEST(PoolTest, HugeRequestsFail) {
  const auto pool = Pool::OnHost();
  const size_t max = std::numeric_limits<size_t>::max();
  for (const size_t size :
       {max, max - 63, max / 2, size_t{1} << 48, size_t{1} << 46, size_t{255} << 30}) {
    EXPECT_THAT(pool->Allocate(size), FailsWith(absl::StatusCode::kResourceExhausted, ""));
  }
  EXPECT_EQ(pool->stats().current_bytes, 0u);
  EXPECT_THAT(pool->Allocate(100), IsOk());
}

TEST(PoolTest, TrimGivesIdleChunksBack) {
  const auto pool = Pool::OnHost({.min_chunk_bytes = 4096});
  BufferRef small = Take(*pool, 100);
  BufferRef large = Take(*pool, 1'000'000);
  EXPECT_EQ(pool->Trim(), 0u);
  large.reset();
  EXPECT_GE(pool->Trim(), 1'000'000u);
  EXPECT_EQ(pool->stats().reserved_bytes, 4096u);
  small.reset();
  EXPECT_EQ(pool->Trim(), 4096u);
  EXPECT_EQ(pool->stats().reserved_bytes, 0u);
  EXPECT_THAT(pool->Allocate(100), IsOk());
}

// On its way to larger blocks a pool does not keep the chunks of all the smaller ones.
TEST(PoolTest, OutgrownChunksAreGivenBack) {
  const auto pool = Pool::OnHost({.min_chunk_bytes = 4096});
  for (size_t size = 10'000; size < 1'000'000; size = size * 5 / 4) Take(*pool, size);
  EXPECT_LT(pool->stats().reserved_bytes, 2'000'000u);
  EXPECT_GT(pool->pool_stats().trims, 5);
}

// Whatever the order of sizes, a repeated pattern is soon served without the system.
TEST(PoolTest, RepeatedPatternsStopMissing) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const auto pool = Pool::OnHost({.min_chunk_bytes = 4096});
    int64_t misses = 0;
    for (int run = 0; run < 30; ++run) {
      if (run == 20) misses = pool->pool_stats().misses;
      std::mt19937 random(seed);
      std::vector<BufferRef> live(6);
      for (int step = 0; step < 60; ++step) {
        BufferRef& slot = live[random() % live.size()];
        slot.reset();
        slot = Take(*pool, random() % (size_t{1} << (8 + random() % 13)));
      }
    }
    EXPECT_EQ(pool->pool_stats().misses, misses) << "seed " << seed;
  }
}

TEST(PoolTest, BuffersKeepTheMemoryAlive) {
  auto pool = Pool::OnHost();
  BufferRef a = Take(*pool, 1000);
  BufferRef b = Take(*pool, 1000);
  pool.reset();
  std::memset(a->data, 1, 1000);
  a.reset();
  std::memset(b->data, 2, 1000);
  EXPECT_EQ(static_cast<char*>(b->data)[999], 2);
}

// What the pool should do, in terms of addresses and sizes alone.
class Model {
 public:
  explicit Model(Pool& pool) : pool_(pool) {}

  void Allocate(size_t size, unsigned char pattern) {
    BufferRef buffer = Take(pool_, size);
    auto* data = static_cast<unsigned char*>(buffer->data);
    // The blocks on either side end before and begin after this one.
    const auto after = live_.lower_bound(data);
    if (after != live_.end()) {
      ASSERT_LE(data + size, after->first);
    }
    if (after != live_.begin()) {
      const auto before = std::prev(after);
      ASSERT_LE(before->first + before->second.buffer->size_bytes, data);
    }
    std::memset(data, pattern, size);
    bytes_ += RoundUp(size);
    live_.emplace(data, Live{std::move(buffer), pattern});
  }

  void FreeAny(std::mt19937_64& random) {
    if (live_.empty()) return;
    const auto it = std::next(live_.begin(), static_cast<int64_t>(random() % live_.size()));
    const size_t size = it->second.buffer->size_bytes;
    for (size_t i = 0; i < size; ++i) {
      ASSERT_EQ(it->first[i], it->second.pattern) << "somebody else wrote here";
    }
    bytes_ -= RoundUp(size);
    live_.erase(it);
  }

  void Check() const {
    const MemoryStats stats = pool_.stats();
    ASSERT_EQ(stats.current_bytes, bytes_);
    ASSERT_LE(stats.current_bytes, stats.peak_bytes);
    ASSERT_LE(stats.current_bytes, stats.reserved_bytes);
  }
  size_t live() const { return live_.size(); }

 private:
  struct Live {
    BufferRef buffer;
    unsigned char pattern;
  };
  Pool& pool_;
  size_t bytes_ = 0;
  std::map<unsigned char*, Live> live_;
};

TEST(PoolTest, RandomUseAgreesWithTheModel) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    std::mt19937_64 random(seed);
    const auto pool = Pool::OnHost({.min_chunk_bytes = seed * 10'000});
    {
      Model model(*pool);
      for (int step = 0; step < 10'000; ++step) {
        const bool grow = step / 500 % 2 == 0;
        if (random() % 100 < (grow ? 70u : 30u)) {
          const size_t size = random() % (size_t{1} << (random() % 15));
          model.Allocate(size, static_cast<unsigned char>(random()));
        } else {
          model.FreeAny(random);
        }
        if (step % 64 == 0) model.Check();
        if (step % 1000 == 999) pool->Trim();
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
    // Everything joins up again: each chunk is one free block.
    EXPECT_EQ(pool->stats().current_bytes, 0u);
    pool->Trim();
    EXPECT_EQ(pool->stats().reserved_bytes, 0u);
  }
}

TEST(PoolTest, ThreadsShareAPool) {
  const auto pool = Pool::OnHost();
  std::vector<std::thread> threads;
  for (unsigned char t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<BufferRef> mine(20);
      for (int step = 0; step < 5000; ++step) {
        BufferRef& buffer = mine[random() % mine.size()];
        if (buffer) {
          const auto* data = static_cast<unsigned char*>(buffer->data);
          for (size_t i = 0; i < buffer->size_bytes; ++i) ASSERT_EQ(data[i], t);
        }
        buffer = Take(*pool, random() % 2000);
        std::memset(buffer->data, t, buffer->size_bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->stats().current_bytes, 0u);
}

}  // namespace
}  // namespace interp::pool_test
