#include "core/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace interp {
namespace {

TEST(BufferTest, AllocationsAreAlignedAndCounted) {
  const size_t before = SystemAllocator().stats().current_bytes;
  {
    const absl::StatusOr<BufferRef> buffer = SystemAllocator().Allocate(100);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*buffer)->data) % kBufferAlignment, 0);
    EXPECT_EQ((*buffer)->size_bytes, 100);
    EXPECT_TRUE((*buffer)->writable);
    std::memset((*buffer)->data, 1, 100);
    EXPECT_EQ(SystemAllocator().stats().current_bytes, before + 128);
  }
  EXPECT_EQ(SystemAllocator().stats().current_bytes, before);
}

TEST(BufferTest, PeakIsKeptUntilReset) {
  SystemAllocator().ResetPeak();
  const size_t before = SystemAllocator().stats().peak_bytes;
  ASSERT_TRUE(SystemAllocator().Allocate(1 << 16).ok());
  EXPECT_EQ(SystemAllocator().stats().peak_bytes, before + (1 << 16));
  SystemAllocator().ResetPeak();
  EXPECT_EQ(SystemAllocator().stats().peak_bytes, before);
}

TEST(BufferTest, EmptyAllocationsHaveAnAddress) {
  const absl::StatusOr<BufferRef> buffer = SystemAllocator().Allocate(0);
  ASSERT_TRUE(buffer.ok());
  EXPECT_NE((*buffer)->data, nullptr);
}

TEST(BufferTest, ImpossibleSizesAreAnError) {
  const absl::StatusOr<BufferRef> buffer =
      SystemAllocator().Allocate(std::numeric_limits<size_t>::max());
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(BufferTest, OnlyTheLastReferenceIsUnique) {
  BufferRef a = *SystemAllocator().Allocate(8);
  EXPECT_TRUE(a.unique());
  BufferRef b = a;
  EXPECT_FALSE(a.unique());
  const BufferRef c = std::move(b);
  EXPECT_FALSE(b);  // NOLINT(bugprone-use-after-move): moved-from references are empty
  EXPECT_FALSE(c.unique());
  a.reset();
  EXPECT_TRUE(c.unique());
  EXPECT_FALSE(a.unique());
}

TEST(BufferTest, BorrowedMemoryIsReleasedOnceByTheLastReference) {
  int released = 0;
  char bytes[4] = {};
  {
    BufferRef a = BorrowBuffer(bytes, sizeof(bytes), /*writable=*/false, [&] { ++released; });
    EXPECT_EQ(a->data, bytes);
    EXPECT_FALSE(a->writable);
    const BufferRef b = a;
    a.reset();
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  BorrowBuffer(bytes, sizeof(bytes), /*writable=*/true);  // no callback is fine
}

}  // namespace
}  // namespace interp
