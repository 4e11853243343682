#include "kernels/cuda/product.h"

#include <cmath>
#include <optional>
#include <vector>

#include "tests/cuda/kernel_test.h"
#include "tests/cuda/library_test.h"

namespace interp::cuda_test {
namespace {

using cuda::ProductActivation;
using cuda::ProductShape;

// Runs products on the null stream.
class ProductTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    auto blas = cuda::BlasHandle::Make();
    ASSERT_TRUE(blas.ok()) << blas.status();
    blas_ = *std::move(blas);
  }
  void TearDown() override {
    blas_.reset();
    KernelTest::TearDown();
  }

  absl::Status Run(const ProductShape& shape, const cuda::ProductOperands& operands) {
    return plans_.Run(*blas_, shape, operands, /*stream=*/nullptr,
                      [this](size_t bytes) { return Workspace::Take(memory_, bytes); });
  }

  std::unique_ptr<cuda::BlasHandle> blas_;
  cuda::ProductPlans plans_;
  DeviceWorkspaces memory_;
};

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

class CudaProductCalls : public ProductTest {
 protected:
  absl::Status RunSome(int64_t k = 40) {
    const DeviceArray<float> x(SomeValues<float>(4 * k));
    const DeviceArray<float> y(SomeValues<float>(k * 4));
    const DeviceArray<float> out(16);
    return Run({.m = 4, .n = 4, .k = k}, {.x = x.data(), .y = y.data(), .out = out.data()});
  }
};

TEST_F(CudaProductCalls, KeepsSumsOf16BitsAsFloat32WhereAskedTo) {
  const auto x = SomeValues<bfloat16>(4 * 9, 1);
  const auto y = SomeValues<bfloat16>(9 * 4, 2);
  const DeviceArray<bfloat16> left(x);
  const DeviceArray<bfloat16> right(y);
  const DeviceArray<float> out(16);
  const ProductShape shape = {.dtype = DType::kBFloat16, .m = 4, .n = 4, .k = 9};
  ASSERT_TRUE(Run(shape, {.x = left.data(), .y = right.data(), .out = out.data()}).ok());
  ExpectClose(out.Read(), HostProduct(shape, x, y));
}

TEST_F(CudaProductCalls, LaunchesNothingForNothing) {
  for (const ProductShape& shape : {ProductShape{.m = 0, .n = 4, .k = 3},
                                    {.m = 4, .n = 0, .k = 3},
                                    {.m = 4, .n = 4, .k = 3, .count = 0}}) {
    EXPECT_TRUE(Run(shape, {}).ok());
  }
  EXPECT_EQ(machine().calls("cublasLtMatmul"), 0);
}

TEST_F(CudaProductCalls, AsksTheHeuristicOncePerShape) {
  for (const int64_t k : {40, 40, 41, 40}) EXPECT_TRUE(RunSome(k).ok());
  EXPECT_EQ(machine().calls("cublasLtMatmulAlgoGetHeuristic"), 2);
  EXPECT_EQ(machine().calls("cublasLtMatmul"), 4);
}

TEST_F(CudaProductCalls, TellsWhichCallFailed) {
  machine().FailCall("cublasLtMatmulAlgoGetHeuristic", 1, cudaErrorUnknown);
  EXPECT_THAT(std::string(RunSome().message()),
              ::testing::HasSubstr(
                  "cuBLASLt finds no algorithm for 1 products of float32, 4 x 40 by 40 x 4"));
  machine().FailCall("cublasLtMatmul", 1, cudaErrorMemoryAllocation);
  const absl::Status failed = RunSome();
  EXPECT_EQ(failed.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      failed.message(),
      "cannot enqueue a product: the resource allocation failed (CUBLAS_STATUS_ALLOC_FAILED)");
  EXPECT_TRUE(RunSome().ok());
  machine().FailCall("cublasLtCreate", 1, cudaErrorMemoryAllocation);
  EXPECT_EQ(cuda::BlasHandle::Make().status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(CudaProductCalls, FailsWithoutMemoryForAWorkspace) {
  EXPECT_TRUE(RunSome().ok());
  EXPECT_EQ(memory_.stats().allocations, 1);
  machine().FailCall("cudaMallocAsync", 1, cudaErrorMemoryAllocation);
  EXPECT_EQ(RunSome().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(CudaProductCalls, RejectsWhatTheLibraryDoesNotCompute) {
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

TEST_F(CudaProductCalls, ReadsWhatAnotherStreamWritesAfterAnEventAlone) {
  if (!cuda_emulation::kShadow) GTEST_SKIP() << "accesses are not checked in this build";
  const DeviceArray<float> x(SomeValues<float>(16));
  const DeviceArray<float> out(16);
  cudaStream_t writer = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&writer, cudaStreamNonBlocking, 0), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(x.data(), 0, 16 * sizeof(float), writer), cudaSuccess);
  ASSERT_TRUE(
      Run({.m = 4, .n = 4, .k = 4}, {.x = x.data(), .y = x.data(), .out = out.data()}).ok());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto findings = machine().TakeFindings();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].type, cuda_emulation::Finding::Type::kUnordered);
  EXPECT_THAT(findings[0].text, ::testing::HasSubstr("cublasLtMatmul of stream 0 of device 0"));
}

TEST_F(CudaProductCalls, IsFoundToReadWhatNobodyWrote) {
  if (!cuda_emulation::kShadow) GTEST_SKIP() << "accesses are not checked in this build";
  const DeviceArray<float> x(16);
  const DeviceArray<float> out(16);
  ASSERT_TRUE(
      Run({.m = 4, .n = 4, .k = 4}, {.x = x.data(), .y = x.data(), .out = out.data()}).ok());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto findings = machine().TakeFindings();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].type, cuda_emulation::Finding::Type::kUninitialised);
}

TEST_F(CudaProductCalls, IsFoundToLeaveAnAllocation) {
  const DeviceArray<float> x(SomeValues<float>(15));
  const DeviceArray<float> out(16);
  ASSERT_TRUE(
      Run({.m = 4, .n = 4, .k = 4}, {.x = x.data(), .y = x.data(), .out = out.data()}).ok());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  const auto findings = machine().TakeFindings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].type, cuda_emulation::Finding::Type::kOutOfBounds);
  device_is_lost_ = true;
}

}  // namespace
}  // namespace interp::cuda_test
