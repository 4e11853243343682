#include "interpreter/inspect/machine_limit.h"

#include "core/machine/usable_cpus.h"
#include "gtest/gtest.h"

namespace interp::testing::machine_limit_test {
namespace {

MachineLimit Limit() {
  return {.num_threads = 1,
          .products = {{DType::kFloat32, 100}, {DType::kInt8, 400}},
          .copies = {{1000, 50}, {1'000'000, 10}}};
}

TEST(MachineLimitTest, LeastTimeIsThatOfOperationsOrOfBytes) {
  EXPECT_EQ(LeastNs(Limit(), DType::kFloat32, /*flops=*/5000, /*bytes=*/1000), 50);
  EXPECT_EQ(LeastNs(Limit(), DType::kFloat32, /*flops=*/500, /*bytes=*/1000), 20);
  EXPECT_EQ(LeastNs(Limit(), DType::kInt8, /*flops=*/40'000, /*bytes=*/0), 100);
}

TEST(MachineLimitTest, BytesMoveAtTheRateOfTheirCache) {
  EXPECT_EQ(LeastNs(Limit(), DType::kFloat32, /*flops=*/0, /*bytes=*/1000), 20);
  EXPECT_EQ(LeastNs(Limit(), DType::kFloat32, /*flops=*/0, /*bytes=*/2000), 200);
  EXPECT_EQ(LeastNs(Limit(), DType::kFloat32, /*flops=*/0, /*bytes=*/1e7), 1e6);
}

TEST(MachineLimitTest, TypesWithoutProductsAreUnknown) {
  EXPECT_EQ(LeastNs(Limit(), DType::kInt64, /*flops=*/5000, /*bytes=*/1000), 0);
  EXPECT_EQ(LeastNs(Limit(), DType::kInt64, /*flops=*/0, /*bytes=*/1000), 20);
}

TEST(MachineLimitTest, MeasuresCopiesOfEachSize) {
  const MachineLimit limit = MeasureMachineLimit(/*num_threads=*/1000, {});
  EXPECT_EQ(limit.num_threads, UsableCpus());
  ASSERT_FALSE(limit.copies.empty());
  for (size_t i = 0; i < limit.copies.size(); ++i) {
    EXPECT_GT(limit.copies[i].bytes_per_ns, 0);
    EXPECT_GT(limit.copies[i].bytes, i == 0 ? 0 : limit.copies[i - 1].bytes);
  }
}

}  // namespace
}  // namespace interp::testing::machine_limit_test
