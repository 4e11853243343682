// softmax and log_softmax along a last axis of any length: short rows are computed side by side.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/op_runs.h"
#include "tests/kernels/run_op.h"

namespace interp::testing {
namespace {

// In float64, of rows of n.
std::vector<double> SoftmaxOf(const Tensor& x, int64_t n, bool log) {
  std::vector<double> y(static_cast<size_t>(x.numel()));
  for (int64_t begin = 0; begin < x.numel(); begin += n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(double{x.data<float>()[begin + i]});
    for (int64_t i = 0; i < n; ++i) {
      const double value = x.data<float>()[begin + i];
      y[begin + i] = log ? value - std::log(sum) : std::exp(value) / sum;
    }
  }
  return y;
}

TEST(SoftmaxRowsTest, HaveAnyLengthAndNumber) {
  for (int64_t n = 1; n <= 20; ++n) {
    for (const int64_t rows : {1, 2, 63, 64, 65, 300}) {
      const Tensor x = Numbers({rows, n}, static_cast<uint32_t>(n + rows));
      for (const bool log : {false, true}) {
        const std::vector<double> expected = SoftmaxOf(x, n, log);
        CoreOptions options;
        std::vector<float> one;
        for (const int threads : {1, 3}) {
          options.num_threads = threads;
          const auto y = RunOp({log ? "log_softmax" : "softmax", {{"X", x}}, {"Out"}}, options);
          ASSERT_TRUE(y.ok()) << y.status();
          const std::vector<float> values = Values<float>((*y)[0]);
          for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 1e-6) << i;
          if (threads == 1) one = values;
          EXPECT_EQ(values, one);
        }
      }
    }
  }
}

}  // namespace
}  // namespace interp::testing
