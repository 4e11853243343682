#include "kernels/product/product_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace interp::nn {
namespace {

constexpr int64_t kPanelWidth = 16;

Product ProductOf(int64_t m, int64_t k, int64_t n, int64_t count = 1) {
  Product product;
  product.m = m;
  product.k = k;
  product.n = n;
  product.batch = {count};
  return product;
}

// How often each element of the result is in a block, and the elements of each thread, as
// ParallelFor cuts the work.
struct Cover {
  std::vector<int> times;
  std::vector<int64_t> of_threads;
};

Cover CoverOf(const Product& p, int threads) {
  Cover cover;
  cover.times.resize(static_cast<size_t>(p.count() * p.m * p.n));
  const product_internal::Deal deal = product_internal::DealOf(p, kPanelWidth, threads);
  const auto count = [&](const ProductBlock& at) {
    EXPECT_EQ(at.j % kPanelWidth, 0);
    for (int64_t i = at.i; i < at.i + at.rows; ++i) {
      for (int64_t j = at.j; j < at.j + at.columns; ++j) {
        ++cover.times[static_cast<size_t>((at.b * p.m + i) * p.n + j)];
      }
    }
    cover.of_threads.back() += at.rows * at.columns;
  };
  const int64_t units = p.count() * deal.units;
  const int64_t ranges = CountRanges(threads, units, deal.grain);
  for (int64_t c = 0; c < ranges; ++c) {
    cover.of_threads.push_back(0);
    product_internal::ForEachBlockOf(p, deal, units * c / ranges, units * (c + 1) / ranges, count);
  }
  return cover;
}

TEST(ProductBlocks, CoverTheResultOnce) {
  std::mt19937 rng(1);
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(rng() % most) + 1; };
  for (int i = 0; i < 200; ++i) {
    const Product p = ProductOf(up_to(i % 2 == 0 ? 10 : 300), up_to(5000), up_to(100), up_to(5));
    for (const int threads : {1, 2, 3, 8}) {
      const std::vector<int> times = CoverOf(p, threads).times;
      EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }));
    }
  }
}

// One matrix of few rows, a few of many, a row of many columns.
TEST(ProductBlocks, GiveEachThreadAsMuch) {
  const std::vector<Product> products = {ProductOf(196, 256, 1024), ProductOf(197, 64, 197, 3),
                                         ProductOf(1, 4096, 1000), ProductOf(30, 512, 512)};
  for (const Product& p : products) {
    for (const int threads : {2, 4}) {
      const std::vector<int64_t> shares = CoverOf(p, threads).of_threads;
      ASSERT_EQ(std::ssize(shares), threads);
      const double even = static_cast<double>(p.count() * p.m * p.n) / threads;
      for (const int64_t share : shares) {
        EXPECT_LE(static_cast<double>(share), 1.15 * even) << p.m << " rows, " << threads;
      }
    }
  }
}

}  // namespace
}  // namespace interp::nn
