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

// Values with 12 bits of fraction, of which TF32 keeps 10, by factors of 1: what comes out tells
// how they were multiplied. Sums of one term, so nothing else rounds.
TEST_F(CudaLibraryRowCalls, MultiplyFloat32AsTf32WhereTheCoreIsToldSo) {
  constexpr float kFine = 1 + 0x1p-12f;
  const auto filled = [](DType dtype, float value) {
    Tensor tensor = SomeNumbers(dtype, {1, 1, 1, 1}, 1);
    if (dtype == DType::kFloat32) tensor.mutable_data<float>()[0] = value;
    if (dtype == DType::kFloat64) tensor.mutable_data<double>()[0] = value;
    return tensor;
  };
  const auto run = [&](const char* op, const char* x, const char* y, const char* out, DType dtype,
                       bool tf32) -> double {
    CoreOptions options;
    options.tf32 = tf32;
    const auto result =
        RunOn({PlaceKind::kCuda, 0},
              {op, {{x, filled(dtype, kFine)}, {y, filled(dtype, 1)}}, {out}}, options);
    EXPECT_THAT(result, testing::IsOk());
    if (!result.ok()) return 0;
    EXPECT_TRUE(result->on_gpu);
    const Tensor& value = result->outputs[0];
    return dtype == DType::kFloat64 ? value.data<double>()[0] : value.data<float>()[0];
  };
  const DType dtype = DType::kFloat32;
  EXPECT_EQ(run("matmul_v2", "X", "Y", "Out", dtype, /*tf32=*/false), kFine);
  EXPECT_EQ(run("matmul_v2", "X", "Y", "Out", dtype, /*tf32=*/true), 1);
  EXPECT_EQ(run("conv2d", "Input", "Filter", "Output", dtype, /*tf32=*/false), kFine);
  EXPECT_EQ(run("conv2d", "Input", "Filter", "Output", dtype, /*tf32=*/true), 1);
  EXPECT_EQ(run("matmul_v2", "X", "Y", "Out", DType::kFloat64, /*tf32=*/true), kFine);
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
