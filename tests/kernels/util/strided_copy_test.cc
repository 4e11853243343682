#include "kernels/util/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace interp {
namespace {

using Random = std::mt19937;

int64_t Pick(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

// A box with memory for both sides.
struct Job {
  CopyDims dims;
  size_t element_bytes = 1;
  int64_t src_first = 0;  // the element dimension index 0 starts at
  std::vector<char> src;
  std::vector<char> dst;
};

// Gives the dimensions strides as they would have in memory, in random order and with gaps.
template <typename SetStride>
int64_t LayOut(Random& random, CopyDims& dims, const SetStride& set_stride) {
  std::vector<size_t> order(dims.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  int64_t extent = 1;
  for (const size_t d : order) {
    extent = set_stride(dims[d], extent);
    if (Pick(random, 0, 5) == 0) extent += Pick(random, 0, 3);
  }
  return extent + 4;
}

Job MakeJob(Random& random, int64_t longest) {
  Job job;
  job.element_bytes = size_t{1} << Pick(random, 0, 4);
  job.dims.resize(Pick(random, 0, 5));
  for (CopyDim& dim : job.dims) {
    dim.size = Pick(random, 0, 3) == 0 ? Pick(random, 1, longest) : Pick(random, 1, 4);
    if (Pick(random, 0, 40) == 0) dim.size = 0;
  }
  const int64_t dst_size = LayOut(random, job.dims, [](CopyDim& dim, int64_t extent) {
    dim.dst_stride = extent;
    return extent * std::max<int64_t>(dim.size, 1);
  });
  const int64_t src_size = LayOut(random, job.dims, [&](CopyDim& dim, int64_t extent) {
    const int64_t kind = Pick(random, 0, 9);
    if (kind == 0) return extent;  // repeats
    dim.src_stride = kind == 1 ? -extent : extent;
    if (kind == 1) job.src_first += extent * std::max<int64_t>(dim.size - 1, 0);
    return extent * std::max<int64_t>(dim.size, 1);
  });
  job.src.resize(src_size * job.element_bytes);
  job.dst.resize(dst_size * job.element_bytes, 77);
  for (char& c : job.src) c = static_cast<char>(random());
  return job;
}

const char* FirstSource(const Job& job) {
  return job.src.data() + job.src_first * static_cast<int64_t>(job.element_bytes);
}

// What CopyStrided should do, one element after the other.
std::vector<char> Expected(const Job& job) {
  std::vector<char> dst = job.dst;
  int64_t count = 1;
  for (const CopyDim& dim : job.dims) count *= dim.size;
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n;
    int64_t from = 0;
    int64_t to = 0;
    for (const CopyDim& dim : job.dims) {
      from += rest % dim.size * dim.src_stride;
      to += rest % dim.size * dim.dst_stride;
      rest /= dim.size;
    }
    const int64_t bytes = static_cast<int64_t>(job.element_bytes);
    std::memcpy(dst.data() + to * bytes, FirstSource(job) + from * bytes, bytes);
  }
  return dst;
}

TEST(CopyStridedTest, MovesEveryBoxLikeOneElementAfterTheOther) {
  Random random(1);
  for (int i = 0; i < 3000; ++i) {
    Job job = MakeJob(random, /*longest=*/20);
    const std::vector<char> expected = Expected(job);
    CopyStrided(/*num_threads=*/1, job.element_bytes, job.dims, FirstSource(job), job.dst.data());
    ASSERT_EQ(job.dst, expected) << "job " << i;
  }
}

TEST(CopyStridedTest, ThreadsShareLargeBoxes) {
  Random random(2);
  for (int i = 0; i < 20; ++i) {
    Job job = MakeJob(random, /*longest=*/300);
    const std::vector<char> expected = Expected(job);
    CopyStrided(/*num_threads=*/3, job.element_bytes, job.dims, FirstSource(job), job.dst.data());
    ASSERT_EQ(job.dst, expected) << "job " << i;
  }
}

// Register blocks, their edges and the narrow special cases, for every element size.
TEST(CopyStridedTest, TransposesPlanesOfAnySize) {
  Random random(3);
  for (const size_t bytes : {1, 2, 4, 8, 16}) {
    for (const int64_t rows : {1, 2, 3, 4, 7, 8, 16, 17, 33, 70}) {
      for (const int64_t columns : {1, 2, 3, 4, 5, 8, 16, 31, 65}) {
        Job job;
        job.element_bytes = bytes;
        job.dims = {{rows, columns, 1}, {columns, 1, rows}};
        job.src.resize(rows * columns * bytes);
        job.dst.resize(rows * columns * bytes);
        for (char& c : job.src) c = static_cast<char>(random());
        const std::vector<char> expected = Expected(job);
        CopyStrided(/*num_threads=*/1, bytes, job.dims, job.src.data(), job.dst.data());
        ASSERT_EQ(job.dst, expected) << rows << " x " << columns << " of " << bytes;
      }
    }
  }
}

TEST(CopyStridedTest, FillsWithOneElement) {
  std::vector<uint32_t> out(1000, 0);
  const uint32_t value = 0x01020304;
  FillElements(/*num_threads=*/2, sizeof(value), &value, out.data(), 999);
  EXPECT_TRUE(std::all_of(out.begin(), out.end() - 1, [](uint32_t v) { return v == 0x01020304; }));
  EXPECT_EQ(out.back(), 0u);
}

}  // namespace
}  // namespace interp
