// Convolutions of bfloat16 beside those of float32 of the same numbers.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/util/convert_elements.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing::conv_bfloat16_test {
namespace {

template <typename From, typename To>
Tensor Converted(const Tensor& from) {
  Tensor to;
  to.shape = from.shape;
  to.dtype = DTypeOf<To>;
  EXPECT_THAT(to.Allocate(SystemAllocator()), IsOk());
  ConvertElements(1, from.data<From>(), from.numel(), to.mutable_data<To>());
  return to;
}

Tensor Rounded(const Tensor& wide) { return Converted<float, bfloat16>(wide); }
Tensor Widened(const Tensor& narrow) { return Converted<bfloat16, float>(narrow); }

// The largest difference by the largest number.
float Error(const Tensor& got, const Tensor& want) {
  float difference = 0;
  float largest = 0;
  for (int64_t i = 0; i < want.numel(); ++i) {
    difference = std::max(difference, std::abs(got.data<float>()[i] - want.data<float>()[i]));
    largest = std::max(largest, std::abs(want.data<float>()[i]));
  }
  return difference / largest;
}

// oneDNN has kernels that are wrong for some of these numbers of pixels.
TEST(ConvBfloat16, AddsUpFewAndOddChannels) {
  for (const int64_t channels : {1, 3, 7, 15, 16}) {
    for (int64_t pixels = 117; pixels <= 150; pixels += 1) {
      const Tensor x = Rounded(Numbers({1, channels, 1, pixels}, 1));
      const Tensor w = Rounded(Numbers({8, channels, 1, 1}, 2));
      const Tensor g = Rounded(Numbers({1, 8, 1, pixels}, 3));
      const OpRun narrow = {"conv2d", {{"Input", x}, {"Filter", w}}, {"Output"}};
      const OpRun wide = {"conv2d", {{"Input", Widened(x)}, {"Filter", Widened(w)}}, {"Output"}};
      EXPECT_LT(Error(Widened(OutputsOf(narrow)[0]), OutputsOf(wide)[0]), 1.0F / 64)
          << channels << " channels, " << pixels << " pixels";
      const std::vector<std::string> gradients = {"Input@GRAD", "Filter@GRAD"};
      const OpRun narrow_grad = {
          "conv2d_grad", {{"Input", x}, {"Filter", w}, {"Output@GRAD", g}}, gradients};
      const OpRun wide_grad = {
          "conv2d_grad",
          {{"Input", Widened(x)}, {"Filter", Widened(w)}, {"Output@GRAD", Widened(g)}},
          gradients};
      const std::vector<Tensor> got = OutputsOf(narrow_grad);
      const std::vector<Tensor> want = OutputsOf(wide_grad);
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_LT(Error(Widened(got[i]), want[i]), 1.0F / 64)
            << gradients[i] << ", " << channels << " channels, " << pixels << " pixels";
      }
    }
  }
}

}  // namespace
}  // namespace interp::testing::conv_bfloat16_test
