// int8_fc beside plain loops over whole numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "tests/kernels/int8_numbers.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

OpRun FcRun(const Tensor& x, const Tensor& w, const Tensor& bias) {
  return {"int8_fc",
          {{"Input", x}, {"W", w}, {"Bias", bias}, {"InputScale", Tensor::Of<float>({1}, {0.5F})}},
          {"Out"},
          "range=100.0, activation_type=\"relu\""};
}

TEST(Int8FcTest, EqualsPlainLoops) {
  for (const auto& [m, k, n] : {std::tuple{1, 1, 1}, {1, 64, 10}, {5, 33, 17}, {70, 129, 65}}) {
    const Tensor x = Whole<int8_t>({m, k}, 1);
    for (const bool stored : {false, true}) {
      const Tensor w = stored ? Whole<int8_t>({k, n}, 2) : Whole<float>({k, n}, 2);
      const Tensor bias = Numbers({n}, 3);
      const Tensor out = OutputsOf(FcRun(x, w, bias))[0];
      ASSERT_EQ(out.shape, (Shape{m, n}));
      for (int64_t i = 0; i < out.numel(); ++i) {
        int64_t sum = 0;
        for (int64_t j = 0; j < k; ++j) {
          const int64_t at = j * n + i % n;
          sum +=
              x.data<int8_t>()[i / n * k + j] *
              (stored ? int64_t{w.data<int8_t>()[at]} : static_cast<int64_t>(w.data<float>()[at]));
        }
        const double value = static_cast<double>(sum) * 0.5 / 100 + bias.data<float>()[i % n];
        ASSERT_NEAR(out.data<float>()[i], std::max(value, 0.0), 1e-5 * (1 + std::abs(value)));
      }
    }
  }
}

TEST(Int8FcTest, RowsMayBeAllDimsButTheLast) {
  const Tensor w = Whole<float>({5, 3}, 2);
  const Tensor bias = Numbers({3}, 3);
  const auto run = [&](const Shape& shape, const std::string& attrs) {
    OpRun fc = FcRun(Whole<int8_t>(shape, 1), w, bias);
    fc.attrs += attrs;
    return OutputsOf(fc)[0];
  };
  const std::vector<float> six = Values<float>(run({6, 5}, ""));
  const Tensor planes = run({2, 3, 5}, ", in_num_col_dims=-1");
  EXPECT_EQ(planes.shape, (Shape{2, 3, 3}));
  EXPECT_EQ(Values<float>(planes), six);
  EXPECT_EQ(Values<float>(run({6, 5}, ", in_num_col_dims=-1")), six);
  const Tensor vector = run({5}, ", in_num_col_dims=-1");
  EXPECT_EQ(vector.shape, Shape{3});
  EXPECT_EQ(Values<float>(vector), std::vector<float>(six.begin(), six.begin() + 3));
}

TEST(Int8FcTest, RefusesWhatItCannotCompute) {
  const OpRun run = FcRun(Whole<int8_t>({2, 3}, 1), Whole<float>({3, 4}, 2), Numbers({4}, 3));
  EXPECT_EQ(OutputsOf(With(run, 0, Tensor::Of<int8_t>({0, 3}, {})))[0].shape, (Shape{0, 4}));
  ExpectRefusals({
      {With(run, 1, Whole<float>({3, 4, 1}, 2)), "expected a matrix"},
      {With(run, 1, Whole<float>({5, 4}, 2)), "3"},
      {With(run, 2, Numbers({3}, 3)), "'Bias'"},
      {With(run, 3, Numbers({3}, 3)), "'InputScale'"},
  });
}

}  // namespace
}  // namespace interp::testing
