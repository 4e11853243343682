// Programs whose libraries fail.
#include <string>

#include "tests/cuda/numbers.h"
#include "tests/cuda/one_op_program.h"

namespace interp::cuda_test {
namespace {

using CudaLibraryRowCalls = KernelTest;

TEST_F(CudaLibraryRowCalls, TellWhichOpALibraryFailedIn) {
  machine().FailCall("cublasLtMatmul", 1, cudaErrorMemoryAllocation);
  const DType dtype = DType::kFloat32;
  const auto failed =
      RunOn({PlaceKind::kCuda, 0},
            {"matmul_v2",
             {{"X", SomeNumbers(dtype, {3, 4}, 1)}, {"Y", SomeNumbers(dtype, {4, 5}, 2)}},
             {"Out"}});
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(failed.status().message()),
              ::testing::AllOf(::testing::HasSubstr("matmul_v2"),
                               ::testing::HasSubstr("CUBLAS_STATUS_ALLOC_FAILED")));
}

// What the machine finds wrong otherwise.
TEST(CudaLibraryHandles, EndBeforeTheirStreamsWithTheirGpuAsTheCurrentOne) {
  const auto machine = Machine::Start({.devices = 2});
  ASSERT_TRUE(machine.ok()) << machine.status();
  const DType dtype = DType::kFloat32;
  const Tensor image = SomeNumbers(dtype, {1, 2, 5, 5}, 1);
  const Place place{PlaceKind::kCuda, 1};
  const auto product = RunOn(place, {"matmul_v2", {{"X", image}, {"Y", image}}, {"Out"}});
  EXPECT_THAT(product, testing::IsOk());
  const auto conv = RunOn(
      place,
      {"conv2d", {{"Input", image}, {"Filter", SomeNumbers(dtype, {3, 2, 3, 3}, 2)}}, {"Output"}});
  EXPECT_THAT(conv, testing::IsOk());
  EXPECT_GT((*machine)->calls("cublasLtCreate"), 0);
  EXPECT_GT((*machine)->calls("cudnnCreate"), 0);
  for (const Finding& finding : (*machine)->TakeFindings()) ADD_FAILURE() << finding.text;
}

}  // namespace
}  // namespace interp::cuda_test
