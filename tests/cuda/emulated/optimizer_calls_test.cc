#include "tests/cuda/many_updates.h"

namespace interp::cuda_test {
namespace {

using CudaOptimizerCalls = KernelTest;

TEST_F(CudaOptimizerCalls, StepManyParametersInFewLaunches) {
  const ManyUpdates updates(/*count=*/70);  // more than a launch takes
  machine().ResetCalls();
  ASSERT_TRUE(updates.Run(updates.tasks()).ok());
  EXPECT_EQ(machine().calls("cudaLaunchKernel"), 4);
}

}  // namespace
}  // namespace interp::cuda_test
