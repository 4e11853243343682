// What tests of convolutions have in common: cases, and a fixture that runs them on the null
// stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/conv.h"
#include "tests/cuda/kernel_test.h"
#include "tests/cuda/library_test.h"

namespace interp::cuda_test {

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

inline std::vector<Attr> AttrsOf(const ConvCase& c) {
  return {{"strides", c.strides},
          {"paddings", c.paddings},
          {"dilations", c.dilations},
          {"groups", c.groups},
          {"padding_algorithm", c.padding_algorithm}};
}

inline nn::ConvProblem ProblemOf(const ConvCase& c) {
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

  absl::Status Run(const cuda::ConvTask& task, const cuda::ConvOperands& operands) {
    return plans_.Run(*cudnn_, task, operands,
                      [this](size_t bytes) { return Workspace::Take(memory_, bytes); });
  }
  template <typename T>
  std::vector<T> Compute(const cuda::ConvTask& task, const std::vector<T>& first,
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

}  // namespace interp::cuda_test
