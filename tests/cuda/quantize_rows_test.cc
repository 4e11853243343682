// Rows of quantize and dequantize.
#include "tests/cuda/kernel_test.h"
#include "tests/cuda/one_op_program.h"

namespace interp::cuda_test {
namespace {

using QuantizeRows = KernelTest;

Tensor Floats(const std::vector<float>& values) {
  return Tensor::Of<float>(Shape({static_cast<int64_t>(values.size())}), values);
}

// What cuda:0 gives, which is what the host gives to the last bit: whole numbers differ by 1
// otherwise.
std::vector<Tensor> RunBoth(const OneOpProgram& op) {
  const auto got = RunOn({PlaceKind::kCuda, 0}, op);
  const auto want = RunOn({PlaceKind::kCpu, 0}, op);
  EXPECT_THAT(got, testing::IsOk());
  EXPECT_THAT(want, testing::IsOk());
  if (!got.ok() || !want.ok()) return {};
  EXPECT_TRUE(got->on_gpu);
  EXPECT_TRUE(testing::SameBits(got->outputs, want->outputs));
  return got->outputs;
}

TEST_F(QuantizeRows, WholeNumbersAreThoseOfTheHostAndBackAgain) {
  for (const int32_t round_type : {0, 1}) {
    for (const int32_t bits : {8, 3}) {
      SCOPED_TRACE(absl::StrCat(bits, " bits, round type ", round_type));
      for (const Tensor& x :
           {Floats(SomeValues<float>(2000)), Floats({0, -0.0f}),
            Floats({127, 0.5f, -1.5f, 2.5f, -126.5f, 0.49999997f}), Floats({1e-38f, -3e-38f})}) {
        const std::vector<Tensor> quantized =
            RunBoth({"quantize",
                     {{"X", x}},
                     {"Out", "OutScale"},
                     {{"bit_length", bits}, {"round_type", round_type}}});
        ASSERT_EQ(quantized.size(), 2u);
        RunBoth({"dequantize",
                 {{"X", quantized[0]}, {"Scale", quantized[1]}},
                 {"Out"},
                 {{"max_range", 127.0f}}});
      }
    }
  }
}

TEST_F(QuantizeRows, ThoseOfOneDnnAreLeftToTheHost) {
  const auto got = RunOn({PlaceKind::kCuda, 0}, {"quantize",
                                                 {{"Input", Floats({1, 2})}},
                                                 {"Output"},
                                                 {{"Scale", 3.0f}, {"is_negative_input", true}}});
  ASSERT_THAT(got, testing::IsOk());
  EXPECT_FALSE(got->on_gpu);
}

}  // namespace
}  // namespace interp::cuda_test
