// The training programs of the golden sets on a GPU: steps against Paddle's. What has no row for
// GPUs runs on the host, in the same plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/program_load.h"
#include "tests/cuda/kernel_test.h"
#include "tests/testing/golden_steps.h"

namespace interp::cuda_test {
namespace {

class CudaTrainingProgramTest : public KernelTest,
                                public ::testing::WithParamInterface<std::string> {};

TEST_P(CudaTrainingProgramTest, AgreesWithPaddle) {
  const absl::StatusOr<testing::GoldenProgram> golden = testing::ReadGoldenProgram(GetParam());
  ASSERT_THAT(golden, testing::IsOk());
  absl::StatusOr<Program> program = LoadProgram(golden->program);
  ASSERT_THAT(program, testing::IsOk());
  CoreOptions options;
  options.passes.disable = {"prune"};
  options.plan.place = {PlaceKind::kCuda, 0};
  EXPECT_THAT(testing::RunGoldenSteps(*golden, testing::NameOfGoldenProgram(GetParam()),
                                      *std::move(program), options),
              ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Goldens, CudaTrainingProgramTest,
                         ::testing::ValuesIn(testing::AllGoldenPrograms()),
                         [](const auto& info) { return testing::NameOfGoldenProgram(info.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaTrainingProgramTest);

}  // namespace
}  // namespace interp::cuda_test
