#include "kernels/util/transpose_plane.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace interp {
namespace {

// Transposes a plane of rows `src_gap` and `dst_gap` bytes longer than they need to be, and checks
// every byte, those between the rows, too.
template <int kBytes>
void ExpectTransposed(int64_t rows, int64_t columns, int64_t src_gap, int64_t dst_gap) {
  const int64_t src_stride = rows * kBytes + src_gap;
  const int64_t dst_stride = columns * kBytes + dst_gap;
  std::vector<char> src(static_cast<size_t>(columns * src_stride));
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<char>(i * 7 + i / 251);
  std::vector<char> expected(static_cast<size_t>(rows * dst_stride), 'x');
  std::vector<char> dst = expected;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      std::memcpy(expected.data() + r * dst_stride + c * kBytes,
                  src.data() + c * src_stride + r * kBytes, kBytes);
    }
  }
  TransposePlane<kBytes>(src.data(), src_stride, dst.data(), dst_stride, rows, columns);
  EXPECT_TRUE(dst == expected) << kBytes << " bytes, " << rows << " x " << columns << ", gaps "
                               << src_gap << ", " << dst_gap;
}

template <int kBytes>
void ExpectAllSizes() {
  for (int64_t rows = 1; rows <= 40; ++rows) {
    for (int64_t columns = 1; columns <= 40; ++columns) {
      ExpectTransposed<kBytes>(rows, columns, 0, 0);
      ExpectTransposed<kBytes>(rows, columns, 8, 16);
    }
  }
  for (const int64_t size : {63, 64, 65, 130}) ExpectTransposed<kBytes>(size, 70, 0, 0);
}

TEST(TransposePlaneTest, HasAnySize) {
  ExpectAllSizes<1>();
  ExpectAllSizes<2>();
  ExpectAllSizes<4>();
  ExpectAllSizes<8>();
  ExpectAllSizes<16>();
}

// Rows a power of two apart, planes beyond the L2 cache, and both.
TEST(TransposePlaneTest, HasAnyStride) {
  ExpectTransposed<4>(21, 4096, 0, 0);
  ExpectTransposed<4>(4096, 21, 0, 0);
  ExpectTransposed<4>(21, 16384, 0, 0);
  ExpectTransposed<4>(21, 16385, 4, 4);
  ExpectTransposed<2>(37, 32768, 0, 0);
  ExpectTransposed<1>(100, 12345, 0, 0);
}

}  // namespace
}  // namespace interp
