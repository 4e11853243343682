#include "core/storage/aligned_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "core/buffer.h"

namespace interp {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

TEST(AlignedMemoryTest, AllOfItMayBeWritten) {
  constexpr size_t kMiB = size_t{1} << 20;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{65}, 4 * kMiB - 1, 4 * kMiB,
                             4 * kMiB + 1, 9 * kMiB + 100}) {
    const std::unique_ptr<void, Free> memory(AllocateAligned(bytes));
    ASSERT_NE(memory, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % kBufferAlignment, 0u) << bytes;
    std::memset(memory.get(), 1, bytes);
  }
}

TEST(AlignedMemoryTest, PopulatedPagesKeepTheirValues) {
  constexpr size_t kMiB = size_t{1} << 20;
  std::vector<char> bytes(kMiB, 'x');
  // Ranges that begin and end inside pages, and small ones.
  PopulatePages(bytes.data() + 1, bytes.size() - 2);
  PopulatePages(bytes.data(), 1);
  PopulatePages(nullptr, 0);
  EXPECT_EQ(bytes, std::vector<char>(kMiB, 'x'));
}

}  // namespace
}  // namespace interp
