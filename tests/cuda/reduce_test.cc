#include "kernels/cuda/reduce.h"

#include <limits>
#include <string>
#include <vector>

#include "tests/cuda/kernel_test.h"
#include "tests/cuda/library_test.h"

namespace interp::cuda_test {
namespace {

using cuda::Reduce;
using cuda::ReduceOp;

absl::StatusOr<Workspace> TakeMemory(size_t bytes) {
  static DeviceWorkspaces memory;
  return Workspace::Take(memory, bytes);
}

template <typename T>
std::vector<T> Reduced(ReduceOp op, const std::vector<T>& values, const std::vector<int64_t>& dims,
                       const std::vector<int>& axes, size_t offset = 0) {
  uint32_t reduced = 0;
  for (const int axis : axes) reduced |= 1u << axis;
  int64_t kept = 1;
  for (size_t d = 0; d < dims.size(); ++d) kept *= (reduced >> d & 1) != 0 ? 1 : dims[d];
  const DeviceArray<T> x(values, offset);
  const DeviceArray<T> out(kept, offset);
  const absl::Status status =
      Reduce(DTypeOf<T>, op, x.data(), dims, reduced, out.data(), TakeMemory, /*stream=*/nullptr);
  EXPECT_TRUE(status.ok()) << status;
  return out.Read();
}

template <typename T>
class ReduceNumbers : public KernelTest {};
using Numbers = ::testing::Types<float, double, float16, bfloat16, int64_t>;
TYPED_TEST_SUITE(ReduceNumbers, Numbers);

TYPED_TEST(ReduceNumbers, GiveWhatTheHostGives) {
  const std::vector<std::pair<ReduceOp, std::string>> ops = {{ReduceOp::kSum, "reduce_sum"},
                                                             {ReduceOp::kMean, "reduce_mean"},
                                                             {ReduceOp::kMax, "reduce_max"},
                                                             {ReduceOp::kMin, "reduce_min"},
                                                             {ReduceOp::kProd, "reduce_prod"}};
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int>>> cases = {
      {{7}, {0}},          {{5, 9}, {1}},          {{5, 9}, {0}},          {{3, 4, 5}, {1}},
      {{3, 4, 5}, {0, 2}}, {{2, 3, 4, 5}, {1, 3}}, {{2, 3, 4, 5}, {0, 2}}, {{40, 70}, {0}},
      {{1, 6, 1}, {0, 2}},
  };
  for (const auto& [op, type] : ops) {
    for (const auto& [dims, axes] : cases) {
      if (op == ReduceOp::kProd && NumelOf(dims) > 200) continue;
      SCOPED_TRACE(absl::StrCat(type, " of ", ToString(Shape(dims)), ", axis ", axes[0]));
      const auto x = SomeValues<TypeParam>(NumelOf(dims));
      ExpectClose(Reduced(op, x, dims, axes),
                  OnHost<TypeParam>(type, {{"dim", std::vector<int32_t>(axes.begin(), axes.end())}},
                                    {{"X", TensorOf(dims, x)}}));
    }
  }
}

using ReduceIntegers = KernelTest;

TEST_F(ReduceIntegers, WrapAround) {
  constexpr int64_t kLarge = int64_t{1} << 62;
  EXPECT_EQ(Reduced<int64_t>(ReduceOp::kProd, {kLarge, 4}, {2}, {0}), std::vector<int64_t>{0});
  EXPECT_EQ(Reduced<int64_t>(ReduceOp::kSum, {kLarge, kLarge}, {2}, {0}),
            std::vector<int64_t>{std::numeric_limits<int64_t>::min()});
}

using ReduceFloats = KernelTest;

TEST_F(ReduceFloats, FoldLongRowsByABlock) {
  for (const size_t offset : {0, 1}) {
    const std::vector<int64_t> dims = {2, 5000};
    const auto x = SomeValues<float>(NumelOf(dims));
    ExpectClose(Reduced(ReduceOp::kMean, x, dims, {1}, offset),
                OnHost<float>("reduce_mean", {{"dim", std::vector<int32_t>{1}}},
                              {{"X", TensorOf(dims, x)}}));
  }
}

// Rows and columns; the last part is not the longest.
TYPED_TEST(ReduceNumbers, FoldFewLongOnesInParts) {
  for (const auto& [dims, axis] : {std::pair(std::vector<int64_t>{2, 24581}, 1),
                                   {std::vector<int64_t>{3075, 33}, 0},
                                   {std::vector<int64_t>{3, 8200, 2}, 1}}) {
    SCOPED_TRACE(ToString(Shape(dims)));
    const auto x = SomeValues<TypeParam>(NumelOf(dims));
    for (const auto& [op, type] : {std::pair(ReduceOp::kSum, std::string("reduce_sum")),
                                   {ReduceOp::kMax, std::string("reduce_max")}}) {
      ExpectClose(Reduced(op, x, dims, {axis}),
                  OnHost<TypeParam>(type, {{"dim", std::vector<int32_t>{axis}}},
                                    {{"X", TensorOf(dims, x)}}));
    }
  }
}

// As on the host: what is beyond the range or precision of float32 on the way is not lost.
TEST_F(ReduceFloats, FoldInDouble) {
  const std::vector<float> large = {3e38f, 3e38f};
  EXPECT_THAT(Reduced(ReduceOp::kMean, large, {2}, {0}), ::testing::ElementsAre(3e38f));
  const std::vector<float> factors = {1e30f, 1e-30f, 1e30f, 1e-30f};
  EXPECT_THAT(Reduced(ReduceOp::kProd, factors, {4}, {0}), ::testing::ElementsAre(1.0f));
  const std::vector<float> cancelling = {1e8f, -1e8f, 1.0f};
  EXPECT_THAT(Reduced(ReduceOp::kSum, cancelling, {3}, {0}), ::testing::ElementsAre(1.0f));
}

TEST_F(ReduceFloats, KeepNaN) {
  std::vector<float> x(300, 1.0f);
  x[123] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Reduced(ReduceOp::kMax, x, {300}, {0})[0]));
  EXPECT_TRUE(std::isnan(Reduced(ReduceOp::kMin, x, {3, 100}, {0})[23]));
}

TEST_F(ReduceFloats, FoldNothingToWhereTheyStart) {
  EXPECT_EQ(Reduced(ReduceOp::kSum, std::vector<float>(), {3, 0}, {1}),
            std::vector<float>(3, 0.0f));
  EXPECT_EQ(Reduced(ReduceOp::kProd, std::vector<float>(), {0, 3}, {0}),
            std::vector<float>(3, 1.0f));
  EXPECT_EQ(Reduced(ReduceOp::kSum, std::vector<float>(), {0, 3}, {1}), std::vector<float>());
  EXPECT_EQ(Reduce(DType::kInt64, ReduceOp::kMean, nullptr, {2, 0}, 2, nullptr, TakeMemory, nullptr)
                .message(),
            "the mean of no integers does not exist");
}

}  // namespace
}  // namespace interp::cuda_test
