#include "kernels/cuda/product.h"

#include <cmath>
#include <optional>
#include <vector>

#include "tests/cuda/product_test.h"
#include "tests/testing/matchers.h"

namespace interp::cuda_test {
namespace {

using cuda::ProductActivation;
using cuda::ProductShape;
using testing::IsOk;

template <typename T>
class CudaProduct : public ProductTest {};
using ProductTypes = ::testing::Types<float, double, float16, bfloat16>;
TYPED_TEST_SUITE(CudaProduct, ProductTypes);

std::vector<int64_t> Sides(int64_t rows, int64_t columns, bool transposed) {
  return transposed ? std::vector{columns, rows} : std::vector{rows, columns};
}

// What the host multiplies.
template <typename T>
auto HostProduct(const ProductShape& shape, const std::vector<T>& x, const std::vector<T>& y) {
  return OnHost<T>("matmul_v2", {{"trans_x", shape.trans_x}, {"trans_y", shape.trans_y}},
                   {{"X", TensorOf(Sides(shape.m, shape.k, shape.trans_x), x)},
                    {"Y", TensorOf(Sides(shape.k, shape.n, shape.trans_y), y)}});
}

TYPED_TEST(CudaProduct, GivesWhatTheHostGivesHoweverTheFactorsLie) {
  struct Size {
    int64_t m, n, k;
  };
  for (const auto& [m, n, k] : {Size{1, 1, 1}, {3, 5, 7}, {8, 1, 40}, {1, 9, 4}, {17, 16, 33}}) {
    for (const int transposed : {0, 1, 2, 3}) {
      for (const size_t offset : {0, 1}) {
        SCOPED_TRACE(absl::StrCat(m, "x", n, "x", k, ", ", transposed, ", offset ", offset));
        const ProductShape shape = {.dtype = DTypeOf<TypeParam>,
                                    .out_dtype = DTypeOf<TypeParam>,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .trans_x = (transposed & 1) != 0,
                                    .trans_y = (transposed & 2) != 0};
        const auto x = SomeValues<TypeParam>(m * k, 1);
        const auto y = SomeValues<TypeParam>(k * n, 2);
        const DeviceArray<TypeParam> left(x, offset);
        const DeviceArray<TypeParam> right(y, offset);
        const DeviceArray<TypeParam> out(m * n, offset);
        const absl::Status done =
            this->Run(shape, {.x = left.data(), .y = right.data(), .out = out.data()});
        ASSERT_TRUE(done.ok()) << done;
        ExpectClose(out.Read(), HostProduct(shape, x, y));
      }
    }
  }
}

TYPED_TEST(CudaProduct, TakesBatchesWhoseFactorsAreSharedOrApart) {
  constexpr int64_t kCount = 3;
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared);
    const auto x = SomeValues<TypeParam>(kCount * 4 * 6, 1);
    const auto y = SomeValues<TypeParam>(shared ? 6 * 5 : kCount * 6 * 5, 2);
    const DeviceArray<TypeParam> left(x);
    const DeviceArray<TypeParam> right(y);
    const DeviceArray<TypeParam> out(kCount * 4 * 5);
    ASSERT_TRUE(this->Run({.dtype = DTypeOf<TypeParam>,
                           .out_dtype = DTypeOf<TypeParam>,
                           .m = 4,
                           .n = 5,
                           .k = 6,
                           .count = kCount,
                           .x_step = 24,
                           .y_step = shared ? 0 : 30,
                           .out_step = 20},
                          {.x = left.data(), .y = right.data(), .out = out.data()})
                    .ok());
    const std::vector<int64_t> y_dims = {shared ? 1 : kCount, 6, 5};
    ExpectClose(out.Read(), OnHost<TypeParam>(
                                "matmul_v2", {},
                                {{"X", TensorOf({kCount, 4, 6}, x)}, {"Y", TensorOf(y_dims, y)}}));
  }
}

TYPED_TEST(CudaProduct, AddsToWhatIsThere) {
  const ProductShape shape = {.dtype = DTypeOf<TypeParam>,
                              .out_dtype = DTypeOf<TypeParam>,
                              .m = 3,
                              .n = 4,
                              .k = 5,
                              .alpha = 0.5,
                              .beta = 2};
  const auto x = SomeValues<TypeParam>(15, 1);
  const auto y = SomeValues<TypeParam>(20, 2);
  const auto before = SomeValues<TypeParam>(12, 3);
  const DeviceArray<TypeParam> left(x);
  const DeviceArray<TypeParam> right(y);
  const DeviceArray<TypeParam> out(before);
  ASSERT_TRUE(this->Run(shape, {.x = left.data(), .y = right.data(), .out = out.data()}).ok());
  auto want = HostProduct(shape, x, y);
  for (size_t i = 0; i < want.size(); ++i) want[i] = want[i] * 0.5f + 2 * before[i];
  ExpectClose(out.Read(), want);
}

template <typename T>
class CudaProductEpilogue : public ProductTest {};
TYPED_TEST_SUITE(CudaProductEpilogue, Floats);

float Activated(ProductActivation activation, float x) {
  switch (activation) {
    case ProductActivation::kRelu:
      return std::max(x, 0.0f);
    case ProductActivation::kGeluTanh:
      return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
    case ProductActivation::kNone:
      break;
  }
  return x;
}

TYPED_TEST(CudaProductEpilogue, AddsABiasAndActivates) {
  for (const int64_t k : {0, 6, 40}) {
    for (const auto activation :
         {ProductActivation::kNone, ProductActivation::kRelu, ProductActivation::kGeluTanh}) {
      for (const bool biased : {false, true}) {
        SCOPED_TRACE(absl::StrCat(k, " terms, ", static_cast<int>(activation), ", ", biased));
        const ProductShape shape = {.dtype = DTypeOf<TypeParam>,
                                    .out_dtype = DTypeOf<TypeParam>,
                                    .m = 4,
                                    .n = 7,
                                    .k = k,
                                    .bias = biased,
                                    .activation = activation};
        const auto x = SomeValues<TypeParam>(4 * k, 1);
        const auto y = SomeValues<TypeParam>(k * 7, 2);
        const auto bias = SomeValues<TypeParam>(7, 3);
        const DeviceArray<TypeParam> left(x);
        const DeviceArray<TypeParam> right(y);
        const DeviceArray<TypeParam> biases(bias, /*offset=*/1);
        const DeviceArray<TypeParam> out(28);
        ASSERT_TRUE(this->Run(shape, {.x = left.data(),
                                      .y = right.data(),
                                      .bias = biased ? biases.data() : nullptr,
                                      .out = out.data()})
                        .ok());
        std::vector<float> want(28, 0.0f);
        if (k > 0) want = HostProduct(shape, x, y);
        for (size_t i = 0; i < want.size(); ++i) {
          want[i] = Activated(activation, want[i] + (biased ? float{bias[i % 7]} : 0.0f));
        }
        ExpectClose(out.Read(), want);
      }
    }
  }
}

TEST_F(ProductTest, KeepsSumsOf16BitsAsFloat32WhereAskedTo) {
  const auto x = SomeValues<bfloat16>(4 * 9, 1);
  const auto y = SomeValues<bfloat16>(9 * 4, 2);
  const DeviceArray<bfloat16> left(x);
  const DeviceArray<bfloat16> right(y);
  const DeviceArray<float> out(16);
  const ProductShape shape = {.dtype = DType::kBFloat16, .m = 4, .n = 4, .k = 9};
  ASSERT_TRUE(Run(shape, {.x = left.data(), .y = right.data(), .out = out.data()}).ok());
  ExpectClose(out.Read(), HostProduct(shape, x, y));
}

// Each half of the sum is beyond the largest float16, 65504.
TEST_F(ProductTest, AddsPartsOfSumsOf16BitsInFloat32) {
  constexpr int64_t kDepth = 2048;
  std::vector<float16> x(kDepth, float16(70.0F));
  std::fill(x.begin() + kDepth / 2, x.end(), float16(-70.0F));
  const DeviceArray<float16> left(x);
  const DeviceArray<float16> right(std::vector<float16>(kDepth * 2, float16(1.0F)));
  const DeviceArray<float16> out(2);
  ASSERT_THAT(
      Run({.dtype = DType::kFloat16, .out_dtype = DType::kFloat16, .m = 1, .n = 2, .k = kDepth},
          {.x = left.data(), .y = right.data(), .out = out.data()}),
      IsOk());
  for (const float16 value : out.Read()) EXPECT_EQ(static_cast<float>(value), 0.0F);
}

TEST_F(ProductTest, TakesMoreMatricesThanACallDoes) {
  constexpr int64_t kCount = 70001;
  const auto x = SomeValues<float>(kCount, 1);
  const auto y = SomeValues<float>(kCount, 2);
  const DeviceArray<float> left(x);
  const DeviceArray<float> right(y);
  const DeviceArray<float> out(kCount);
  ASSERT_THAT(
      Run({.m = 1, .n = 1, .k = 1, .count = kCount, .x_step = 1, .y_step = 1, .out_step = 1},
          {.x = left.data(), .y = right.data(), .out = out.data()}),
      IsOk());
  std::vector<float> want(kCount);
  for (size_t i = 0; i < want.size(); ++i) want[i] = x[i] * y[i];
  ExpectClose(out.Read(), want);
}

TEST_F(ProductTest, RejectsWhatTheLibraryDoesNotCompute) {
  EXPECT_EQ(
      Run({.dtype = DType::kInt32, .out_dtype = DType::kInt32, .m = 1, .n = 1, .k = 1}, {}).code(),
      absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Run({.dtype = DType::kFloat64,
                 .out_dtype = DType::kFloat64,
                 .m = 1,
                 .n = 1,
                 .k = 1,
                 .bias = true},
                {})
                .code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Run({.m = int64_t{1} << 31, .n = 1, .k = 1}, {}).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace interp::cuda_test
