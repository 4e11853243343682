// Temporary memory of ops over sequences.
#include "tests/cuda/numbers.h"
#include "tests/cuda/one_op_program.h"

namespace interp::cuda_test {
namespace {

using CudaSequenceMemory = KernelTest;

// All windows together take 8 MB.
TEST_F(CudaSequenceMemory, WindowsAreThereAPieceAtATime) {
  constexpr int64_t kRows = 1000;
  constexpr int64_t kLength = 64;
  Tensor x = SomeNumbers(DType::kFloat32, {kRows, 32}, 1);
  x.lod = {{0, 300, kRows}};
  const Tensor filter = SomeNumbers(DType::kFloat32, {kLength * 32, 1}, 2);
  const testing::TestProgram::Attrs attrs = {{"contextStart", int32_t{-8}},
                                             {"contextLength", static_cast<int32_t>(kLength)}};
  constexpr size_t kMost = size_t{1} << 20;
  const auto out = RunOn({PlaceKind::kCuda, 0},
                         {"sequence_conv", {{"X", x}, {"Filter", filter}}, {"Out"}, attrs});
  ASSERT_THAT(out, testing::IsOk());
  EXPECT_TRUE(out->on_gpu);
  EXPECT_LT(out->device_peak_bytes, kMost);
  const auto grads =
      RunOn({PlaceKind::kCuda, 0}, {"sequence_conv_grad",
                                    {{"X", x}, {"Filter", filter}, {"Out@GRAD", out->outputs[0]}},
                                    {"X@GRAD", "Filter@GRAD"},
                                    attrs});
  ASSERT_THAT(grads, testing::IsOk());
  EXPECT_TRUE(grads->on_gpu);
  EXPECT_LT(grads->device_peak_bytes, kMost);
}

}  // namespace
}  // namespace interp::cuda_test
