#include "core/storage/lasting_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/testing/matchers.h"

namespace interp::lasting_memory_test {
namespace {

using testing::IsOk;

constexpr size_t kMiB = size_t{1} << 20;

struct Array {
  char* address = nullptr;
  size_t bytes = 0;
  char value = 0;

  bool Holds() const {
    return std::all_of(address, address + bytes, [this](char c) { return c == value; });
  }
};

Array Take(LastingMemory& memory, size_t bytes, char value) {
  const absl::StatusOr<void*> address = memory.Take(bytes);
  EXPECT_THAT(address, IsOk());
  if (!address.ok()) return {};
  EXPECT_EQ(reinterpret_cast<uintptr_t>(*address) % kBufferAlignment, 0u) << bytes;
  std::memset(*address, value, bytes);
  return {static_cast<char*>(*address), bytes, value};
}

TEST(LastingMemory, SmallModelsTakeOneMiB) {
  LastingMemory memory;
  const Array first = Take(memory, 100, 'a');
  const Array second = Take(memory, kMiB / 2, 'b');
  EXPECT_EQ(memory.span_bytes(), kMiB);
  EXPECT_TRUE(first.Holds());
  memory.Give(first.address, first.bytes);
  EXPECT_EQ(memory.span_bytes(), kMiB) << "the second array is in it";
  EXPECT_TRUE(second.Holds());
  memory.Give(second.address, second.bytes);
  EXPECT_EQ(memory.span_bytes(), 0u);
}

TEST(LastingMemory, SpansBeginWithAHugePage) {
  LastingMemory memory;
  const Array array = Take(memory, kMiB + 1, 'a');
  EXPECT_EQ(memory.span_bytes(), 8 * kMiB);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(array.address) % (2 * kMiB), 0u);
  memory.Give(array.address, array.bytes);
}

TEST(LastingMemory, LargeArraysAreOfTheHeap) {
  LastingMemory memory;
  const Array array = Take(memory, 2 * kMiB, 'a');
  EXPECT_EQ(memory.span_bytes(), 0u);
  EXPECT_TRUE(array.Holds());
  memory.Give(array.address, array.bytes);
}

TEST(LastingMemory, SaysWhatItCannotGive) {
  LastingMemory memory;
  EXPECT_THAT(memory.Take(SIZE_MAX - 100),
              testing::FailsWith(absl::StatusCode::kResourceExhausted, "cannot allocate"));
}

// Takes and gives at random and looks at what the arrays hold meanwhile.
void UseAtRandom(LastingMemory& memory, int seed) {
  std::mt19937 random(seed);
  std::vector<Array> arrays;
  for (int i = 0; i < 300; ++i) {
    if (arrays.empty() || random() % 3 != 0) {
      const size_t most = size_t{64} << (random() % 15);  // up to 1 MiB
      arrays.push_back(Take(memory, 1 + random() % most, static_cast<char>(random())));
      continue;
    }
    std::swap(arrays[random() % arrays.size()], arrays.back());
    EXPECT_TRUE(arrays.back().Holds());
    memory.Give(arrays.back().address, arrays.back().bytes);
    arrays.pop_back();
  }
  for (const Array& array : arrays) {
    EXPECT_TRUE(array.Holds());
    memory.Give(array.address, array.bytes);
  }
}

TEST(LastingMemory, ArraysKeepTheirValues) {
  LastingMemory memory;
  for (int seed = 0; seed < 8; ++seed) UseAtRandom(memory, seed);
  EXPECT_EQ(memory.span_bytes(), 0u);
}

TEST(LastingMemory, ThreadsMayUseItAtOnce) {
  LastingMemory memory;
  std::vector<std::thread> threads;
  for (int seed = 0; seed < 4; ++seed) threads.emplace_back(UseAtRandom, std::ref(memory), seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.span_bytes(), 0u);
}

TEST(LastingMemory, AllocatorCountsWhatItHandsOut) {
  Allocator& allocator = LastingAllocator();
  const size_t before = allocator.stats().current_bytes;
  {
    const absl::StatusOr<BufferRef> buffer = allocator.Allocate(1000);
    ASSERT_THAT(buffer, IsOk());
    EXPECT_EQ(allocator.stats().current_bytes, before + 1024);
  }
  EXPECT_EQ(allocator.stats().current_bytes, before);
}

}  // namespace
}  // namespace interp::lasting_memory_test
