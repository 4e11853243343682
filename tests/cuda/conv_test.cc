#include "kernels/cuda/conv.h"

#include <vector>

#include "tests/cuda/kernel_test.h"
#include "tests/cuda/library_test.h"

namespace interp::cuda_test {
namespace {

using cuda::ConvDirection;
using cuda::ConvTask;

// Convolutions of images [batch, channels, height, width] with filters [out, channels of a group,
// height, width].
struct ConvCase {
  const char* name;
  std::vector<int64_t> image;
  std::vector<int64_t> filter;
  std::vector<int32_t> strides = {1, 1};
  std::vector<int32_t> paddings = {0, 0};
  std::vector<int32_t> dilations = {1, 1};
  int32_t groups = 1;
  std::string padding_algorithm = "EXPLICIT";
};

const std::vector<ConvCase>& Cases() {
  static const auto& cases = *new std::vector<ConvCase>{
      {.name = "one pixel", .image = {1, 1, 1, 1}, .filter = {1, 1, 1, 1}},
      {.name = "plain", .image = {2, 3, 7, 6}, .filter = {4, 3, 3, 2}},
      {.name = "strides and padding",
       .image = {2, 3, 8, 9},
       .filter = {5, 3, 3, 3},
       .strides = {2, 3},
       .paddings = {1, 2}},
      {.name = "dilated",
       .image = {1, 2, 9, 9},
       .filter = {3, 2, 3, 3},
       .paddings = {2, 0},
       .dilations = {2, 3}},
      {.name = "groups", .image = {2, 6, 5, 5}, .filter = {4, 3, 3, 3}, .groups = 2},
      {.name = "depthwise",
       .image = {2, 4, 6, 5},
       .filter = {8, 1, 3, 3},
       .strides = {2, 2},
       .paddings = {1, 1},
       .groups = 4},
      {.name = "uneven padding",
       .image = {2, 3, 6, 7},
       .filter = {4, 3, 3, 3},
       .paddings = {0, 2, 3, 1}},
      {.name = "uneven padding and strides",
       .image = {1, 2, 7, 8},
       .filter = {3, 2, 3, 3},
       .strides = {2, 2},
       .paddings = {1, 0, 0, 1}},
      {.name = "same",
       .image = {2, 2, 7, 8},
       .filter = {3, 2, 4, 3},
       .strides = {2, 2},
       .padding_algorithm = "SAME"},
  };
  return cases;
}

std::vector<Attr> AttrsOf(const ConvCase& c) {
  return {{"strides", c.strides},
          {"paddings", c.paddings},
          {"dilations", c.dilations},
          {"groups", c.groups},
          {"padding_algorithm", c.padding_algorithm}};
}

nn::ConvProblem ProblemOf(const ConvCase& c) {
  nn::ConvAttrs attrs;
  attrs.window = {.strides = {c.strides.begin(), c.strides.end()},
                  .paddings = {c.paddings.begin(), c.paddings.end()},
                  .dilations = {c.dilations.begin(), c.dilations.end()},
                  .padding = c.padding_algorithm == "SAME" ? nn::PaddingAlgorithm::kSame
                                                           : nn::PaddingAlgorithm::kExplicit};
  attrs.groups = c.groups;
  auto problem = nn::ResolveConv(attrs, Shape(c.image), Shape(c.filter));
  EXPECT_TRUE(problem.ok()) << problem.status();
  return *problem;
}

// Runs convolutions on the null stream.
class ConvTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    auto cudnn = cuda::CudnnHandle::Make(/*stream=*/nullptr);
    ASSERT_TRUE(cudnn.ok()) << cudnn.status();
    cudnn_ = *std::move(cudnn);
  }
  void TearDown() override {
    cudnn_.reset();
    KernelTest::TearDown();
  }

  absl::Status Run(const ConvTask& task, const cuda::ConvOperands& operands) {
    return plans_.Run(*cudnn_, task, operands,
                      [this](size_t bytes) { return Workspace::Take(memory_, bytes); });
  }
  template <typename T>
  std::vector<T> Compute(const ConvTask& task, const std::vector<T>& first,
                         const std::vector<T>& second, size_t size, size_t offset = 0) {
    const DeviceArray<T> left(first, offset);
    const DeviceArray<T> right(second, offset);
    const DeviceArray<T> out(size, offset);
    const absl::Status done =
        Run(task, {.first = left.data(), .second = right.data(), .out = out.data()});
    EXPECT_TRUE(done.ok()) << done;
    return out.Read();
  }

  std::unique_ptr<cuda::CudnnHandle> cudnn_;
  cuda::ConvPlans plans_;
  DeviceWorkspaces memory_;
};

template <typename T>
class CudaConv : public ConvTest {};
TYPED_TEST_SUITE(CudaConv, Floats);

TYPED_TEST(CudaConv, GivesWhatTheHostGives) {
  for (const ConvCase& c : Cases()) {
    for (const size_t offset : {0, 1}) {
      SCOPED_TRACE(absl::StrCat(c.name, ", offset ", offset));
      const ConvTask task = {.direction = ConvDirection::kForward,
                             .dtype = DTypeOf<TypeParam>,
                             .problem = ProblemOf(c)};
      const auto image = SomeValues<TypeParam>(NumelOf(c.image), 1);
      const auto filter = SomeValues<TypeParam>(NumelOf(c.filter), 2);
      const auto want = OnHost<TypeParam>(
          "conv2d", AttrsOf(c),
          {{"Input", TensorOf(c.image, image)}, {"Filter", TensorOf(c.filter, filter)}});
      ExpectClose(this->Compute(task, image, filter, want.size(), offset), want);
    }
  }
}

TYPED_TEST(CudaConv, GivesTheGradientsThatTheHostGives) {
  for (const ConvCase& c : Cases()) {
    SCOPED_TRACE(c.name);
    ConvTask task = {.dtype = DTypeOf<TypeParam>, .problem = ProblemOf(c)};
    const Shape result = nn::ConvOutputShape(task.problem, /*channels_last_dims=*/false);
    const std::vector<int64_t> dims(result.begin(), result.end());
    const auto image = SomeValues<TypeParam>(NumelOf(c.image), 1);
    const auto filter = SomeValues<TypeParam>(NumelOf(c.filter), 2);
    const auto grad = SomeValues<TypeParam>(NumelOf(dims), 3);
    const auto bias = SomeValues<TypeParam>(dims[1], 4);  // the host's op wants one
    const std::vector<testing::OneOp::Input> inputs = {{"Input", TensorOf(c.image, image)},
                                                       {"Filter", TensorOf(c.filter, filter)},
                                                       {"Bias", TensorOf({dims[1]}, bias)},
                                                       {"Output@GRAD", TensorOf(dims, grad)}};
    task.direction = ConvDirection::kDataGrad;
    ExpectClose(this->Compute(task, filter, grad, image.size()),
                OnHost<TypeParam>("conv2d_grad", AttrsOf(c), inputs, 0));
    task.direction = ConvDirection::kFilterGrad;
    ExpectClose(this->Compute(task, image, grad, filter.size()),
                OnHost<TypeParam>("conv2d_grad", AttrsOf(c), inputs, 1));
  }
}

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

TEST_F(CudaConvCalls, FallsBackWhereNoOtherEngineServes) {
  const ConvCase c = {.name = "", .image = {1, 4, 3, 3}, .filter = {4, 1, 2, 2}, .groups = 4};
  Compute({.problem = ProblemOf(c)}, SomeValues<float>(36), SomeValues<float>(16), 16);
  EXPECT_EQ(plans_.engine(), "cudnn engine 6");
}

TEST_F(CudaConvCalls, TransformsNothingWhereSumsAreToBeDirect) {
  const ConvCase c = {.name = "", .image = {1, 1, 3, 3}, .filter = {1, 1, 2, 2}};
  for (const auto algorithms : {Algorithms::kFast, Algorithms::kDirect}) {
    Compute({.algorithms = algorithms, .problem = ProblemOf(c)}, SomeValues<float>(9),
            SomeValues<float>(4), 4);
    EXPECT_EQ(plans_.engine(),
              algorithms == Algorithms::kFast ? "cudnn engine 5" : "cudnn engine 6");
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

TEST_F(CudaConvCalls, TakesVolumes) {
  nn::ConvAttrs attrs;
  attrs.window = {.strides = {1, 2, 1}, .paddings = {1, 0, 1}, .dilations = {}};
  const std::vector<int64_t> image_dims = {1, 2, 3, 5, 4};
  const std::vector<int64_t> filter_dims = {3, 2, 2, 3, 3};
  const auto problem = nn::ResolveConv(attrs, Shape(image_dims), Shape(filter_dims));
  ASSERT_TRUE(problem.ok());
  const auto image = SomeValues<float>(NumelOf(image_dims), 1);
  const auto filter = SomeValues<float>(NumelOf(filter_dims), 2);
  const auto want = OnHost<float>(
      "conv3d",
      {{"strides", std::vector<int32_t>{1, 2, 1}}, {"paddings", std::vector<int32_t>{1, 0, 1}}},
      {{"Input", TensorOf(image_dims, image)}, {"Filter", TensorOf(filter_dims, filter)}});
  ExpectClose(Compute({.problem = *problem}, image, filter, want.size()), want);
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

TEST_F(CudaConvCalls, RejectsDTypesThatItDoesNotCompute) {
  const ConvCase c = {.name = "", .image = {1, 2, 6, 6}, .filter = {3, 2, 3, 3}};
  const ConvTask task = {.dtype = DType::kFloat64, .problem = ProblemOf(c)};
  EXPECT_EQ(Run(task, {}).code(), absl::StatusCode::kUnimplemented);
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
