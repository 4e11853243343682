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

}  // namespace
}  // namespace interp::cuda_test
