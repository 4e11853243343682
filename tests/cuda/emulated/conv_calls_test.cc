// What convolutions ask cuDNN for, and what happens when it fails.
#include <string>
#include <vector>

#include "tests/cuda/conv_test.h"

namespace interp::cuda_test {
namespace {

using cuda::ConvDirection;
using cuda::ConvTask;

class CudaConvCalls : public ConvTest {
 protected:
  absl::Status RunSome(int64_t size = 6) {
    const ConvCase c = {.name = "", .image = {1, 2, size, 6}, .filter = {3, 2, 3, 3}};
    const ConvTask task = {.problem = ProblemOf(c)};
    const DeviceArray<float> image(SomeValues<float>(NumelOf(c.image)));
    const DeviceArray<float> filter(SomeValues<float>(NumelOf(c.filter)));
    const DeviceArray<float> out(3 * (size - 2) * 4);
    return Run(task, {.first = image.data(), .second = filter.data(), .out = out.data()});
  }
};

// See FactsOf in tests/cuda_emulation/cudnn_conv.cc for what the engines are.
TEST_F(CudaConvCalls, LeavesOutEnginesThatChangeBitsNarrowInputsOrTakeTooMuch) {
  ASSERT_TRUE(RunSome().ok());
  EXPECT_EQ(plans_.engine(), "cudnn engine 5");
  const ConvCase c = {.name = "", .image = {1, 1, 3, 3}, .filter = {1, 1, 2, 2}};
  Compute({.dtype = DType::kBFloat16, .problem = ProblemOf(c)}, SomeValues<bfloat16>(9),
          SomeValues<bfloat16>(4), 4);
  EXPECT_EQ(plans_.engine(), "cudnn engine 1") << "tensor cores lose nothing of 16 bits";
}

TEST_F(CudaConvCalls, TakesTensorCoresForFloat32WhereTf32WillDo) {
  const ConvCase c = {.name = "", .image = {1, 1, 3, 3}, .filter = {1, 1, 2, 2}};
  for (const bool tf32 : {false, true}) {
    Compute({.tf32 = tf32, .problem = ProblemOf(c)}, SomeValues<float>(9), SomeValues<float>(4), 4);
    EXPECT_EQ(plans_.engine(), tf32 ? "cudnn engine 1" : "cudnn engine 5");
  }
}

TEST_F(CudaConvCalls, FallsBackWhereNoOtherEngineServes) {
  const ConvCase c = {.name = "", .image = {1, 4, 3, 3}, .filter = {4, 1, 2, 2}, .groups = 4};
  Compute({.problem = ProblemOf(c)}, SomeValues<float>(36), SomeValues<float>(16), 16);
  EXPECT_EQ(plans_.engine(), "cudnn engine 7");
}

TEST_F(CudaConvCalls, TransformsNothingWhereSumsAreToBeDirect) {
  const ConvCase c = {.name = "", .image = {1, 1, 3, 3}, .filter = {1, 1, 2, 2}};
  for (const auto algorithms : {Algorithms::kFast, Algorithms::kDirect}) {
    Compute({.algorithms = algorithms, .problem = ProblemOf(c)}, SomeValues<float>(9),
            SomeValues<float>(4), 4);
    EXPECT_EQ(plans_.engine(),
              algorithms == Algorithms::kFast ? "cudnn engine 5" : "cudnn engine 7");
  }
}

TEST_F(CudaConvCalls, PlansOncePerCase) {
  ASSERT_TRUE(RunSome().ok());
  machine().ResetCalls();
  ASSERT_TRUE(RunSome().ok());
  EXPECT_EQ(machine().calls("cudnnBackendFinalize"), 1) << "the memory of the run";
  ASSERT_TRUE(RunSome(7).ok());
  ASSERT_TRUE(RunSome(6).ok());
  EXPECT_EQ(machine().calls("cudnnBackendExecute"), 3);
}

TEST_F(CudaConvCalls, HasNoImagesAndAGradientOfZeroByThem) {
  const ConvCase c = {.name = "", .image = {0, 2, 6, 6}, .filter = {3, 2, 3, 3}};
  ConvTask task = {.problem = ProblemOf(c)};
  EXPECT_TRUE(Run(task, {}).ok());
  task.direction = ConvDirection::kDataGrad;
  EXPECT_TRUE(Run(task, {}).ok());
  task.direction = ConvDirection::kFilterGrad;
  const DeviceArray<float> grad(54);
  ASSERT_TRUE(Run(task, {.out = grad.data()}).ok());
  EXPECT_THAT(grad.Read(), ::testing::Each(0.0f));
  EXPECT_EQ(machine().calls("cudnnBackendExecute"), 0);
}

TEST_F(CudaConvCalls, TellsWhichCallFailed) {
  machine().FailCall("cudnnBackendExecute", 1, cudaErrorMemoryAllocation);
  const absl::Status failed = RunSome();
  EXPECT_EQ(failed.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(failed.message(),
            "cannot enqueue a convolution: cuDNN says "
            "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED");
  EXPECT_TRUE(RunSome().ok());
  machine().FailCall("cudnnBackendFinalize", 1, cudaErrorUnknown);
  EXPECT_THAT(std::string(RunSome(8).message()),
              ::testing::HasSubstr("cannot describe a tensor to cuDNN"));
  machine().FailCall("cudaMallocAsync", 1, cudaErrorMemoryAllocation);
  EXPECT_EQ(RunSome().code(), absl::StatusCode::kResourceExhausted);
  machine().FailCall("cudnnCreate", 1, cudaErrorInitializationError);
  EXPECT_FALSE(cuda::CudnnHandle::Make(nullptr).ok());
}

TEST_F(CudaConvCalls, LosesTheDeviceWhereAConvolutionDoes) {
  machine().FailCall("cudnnBackendExecute", 1, cudaErrorLaunchFailure);
  EXPECT_EQ(RunSome().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  device_is_lost_ = true;
}

TEST_F(CudaConvCalls, IsFoundToReadWhatNobodyWrote) {
  if (!cuda_emulation::kShadow) GTEST_SKIP() << "accesses are not checked in this build";
  const ConvCase c = {.name = "", .image = {1, 1, 3, 3}, .filter = {1, 1, 2, 2}};
  const DeviceArray<float> image(9);
  const DeviceArray<float> filter(SomeValues<float>(4));
  const DeviceArray<float> out(4);
  ASSERT_TRUE(Run({.problem = ProblemOf(c)},
                  {.first = image.data(), .second = filter.data(), .out = out.data()})
                  .ok());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto findings = machine().TakeFindings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].type, cuda_emulation::Finding::Type::kUninitialised);
  EXPECT_THAT(findings[0].text, ::testing::HasSubstr("cudnnBackendExecute of stream 0"));
}

}  // namespace
}  // namespace interp::cuda_test
