#include "core/storage/aligned_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

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

}  // namespace
}  // namespace interp
