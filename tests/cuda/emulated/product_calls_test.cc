// What products ask cuBLASLt for, what happens when it fails, and what is found of their memory.
#include <string>
#include <vector>

#include "tests/cuda/product_test.h"

namespace interp::cuda_test {
namespace {

using cuda::ProductShape;

class CudaProductCalls : public ProductTest {
 protected:
  absl::Status RunSome(int64_t k = 40) {
    const DeviceArray<float> x(SomeValues<float>(4 * k));
    const DeviceArray<float> y(SomeValues<float>(k * 4));
    const DeviceArray<float> out(16);
    return Run({.m = 4, .n = 4, .k = k}, {.x = x.data(), .y = y.data(), .out = out.data()});
  }
};

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

TEST_F(CudaProductCalls, AsksAnewForABiasThatIsAlignedToLess) {
  const DeviceArray<float> x(SomeValues<float>(16));
  const DeviceArray<float> y(SomeValues<float>(16));
  const DeviceArray<float> bias(SomeValues<float>(5));
  const DeviceArray<float> out(16);
  for (const int first : {0, 1}) {
    EXPECT_TRUE(Run({.m = 4, .n = 4, .k = 4, .bias = true},
                    {.x = x.data(), .y = y.data(), .bias = bias.data() + first, .out = out.data()})
                    .ok());
  }
  EXPECT_EQ(machine().calls("cublasLtMatmulAlgoGetHeuristic"), 2);
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
