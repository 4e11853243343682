// Weights of 8 and 4 bits beyond the golden cases: scales of groups of rows, constant weights, and
// what is refused.
#include "kernels/quant/weight_only.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/kernels/int8_numbers.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/golden.h"

namespace interp::testing::weight_only_test {
namespace {

constexpr int64_t kRows = 128;
constexpr int64_t kColumns = 32;

// `x` with zeros outside columns [begin, end).
Tensor Part(const Tensor& x, int64_t begin, int64_t end) {
  std::vector<float> values(x.data<float>(), x.data<float>() + x.numel());
  for (int64_t i = 0; i < std::ssize(values); ++i) {
    if (i % kRows < begin || i % kRows >= end) values[i] = 0;
  }
  return Tensor::Of<float>(x.shape, values);
}

Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& scale,
              const std::string& attrs) {
  return OutputsOf({"weight_only_linear",
                    {{"x", x}, {"weight", weight}, {"weight_scale", scale}},
                    {"out"},
                    attrs})[0];
}

TEST(WeightOnlyTest, EachGroupOfRowsHasItsScales) {
  const Tensor x = Numbers({3, kRows}, 1);
  const Tensor weight = Whole<int8_t>({kColumns, kRows}, 2);
  const Tensor scales = Numbers({2, kColumns}, 3);
  const Tensor out = Linear(x, weight, scales, "group_size=64");
  for (int64_t half = 0; half < 2; ++half) {
    const Tensor other = Part(x, (1 - half) * 64, (2 - half) * 64);
    const Tensor own = Part(x, half * 64, (half + 1) * 64);
    const std::vector<float> scale(scales.data<float>() + half * kColumns,
                                   scales.data<float>() + (half + 1) * kColumns);
    const Tensor want = Linear(own, weight, Tensor::Of<float>({kColumns}, scale), "");
    const Tensor rest = Linear(other, weight, scales, "group_size=64");
    for (int64_t i = 0; i < want.numel(); ++i) {
      ASSERT_NEAR(out.data<float>()[i], want.data<float>()[i] + rest.data<float>()[i], 1e-2);
    }
  }
}

template <typename T>
Tensor As(const Tensor& x) {
  return Tensor::Of<T>(x.shape, std::vector<T>(x.data<float>(), x.data<float>() + x.numel()));
}

std::vector<Tensor> Quantized(const Tensor& x) {
  return OutputsOf({"weight_quantize", {{"x", x}}, {"out", "scale"}});
}

Tensor Dequantized(const std::vector<Tensor>& whole, DType dtype) {
  return OutputsOf({"weight_dequantize",
                    {{"x", whole[0]}, {"scale", whole[1]}},
                    {"out"},
                    dtype == DType::kFloat16 ? "out_dtype=4" : "out_dtype=22"})[0];
}

// Scales are powers of 2, and values have 8 bits: both dtypes hold them.
TEST(WeightOnlyTest, Bfloat16GivesWhatFloat16Gives) {
  std::vector<float> values;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    values.push_back(i < kColumns ? 127 : static_cast<float>(i * 37 % 255) - 127);
  }
  const Tensor x = Tensor::Of<float>({kRows, kColumns}, values);
  const std::vector<Tensor> half = Quantized(As<float16>(x));
  const std::vector<Tensor> brain = Quantized(As<bfloat16>(x));
  ASSERT_EQ(brain[1].dtype, DType::kBFloat16);
  EXPECT_EQ(Difference(brain[0], half[0], 0, 0), "");
  const Tensor back = Dequantized(brain, DType::kBFloat16);
  EXPECT_EQ(Difference(back, As<bfloat16>(x), 0, 0), "");
  EXPECT_EQ(Difference(Dequantized(half, DType::kFloat16), As<float16>(x), 0, 0), "");
}

TEST(WeightOnlyTest, EachWeightHasAPlaceOfItsOwn) {
  for (const auto form :
       {WeightOrder::Form::kTransposed, WeightOrder::Form::kRows, WeightOrder::Form::kTiles}) {
    for (const int32_t bits : {8, 4}) {
      const WeightOrder order = {form, bits, kRows, kColumns};
      std::set<int64_t> places;
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t column = 0; column < kColumns; ++column) {
          places.insert(order.Position(row, column));
        }
      }
      EXPECT_EQ(std::ssize(places), kRows * kColumns);
      EXPECT_EQ(*places.begin(), 0);
      EXPECT_EQ(*places.rbegin(), kRows * kColumns - 1);
    }
  }
}

TEST(WeightOnlyTest, RefusesWhatDoesNotFit) {
  const Tensor x = Numbers({2, kRows}, 1);
  const Tensor scale = Numbers({kColumns}, 2);
  const OpRun linear = {
      "weight_only_linear",
      {{"x", x}, {"weight", Whole<int8_t>({kColumns, kRows}, 3)}, {"weight_scale", scale}},
      {"out"}};
  const auto with_attrs = [&](const std::string& attrs) {
    OpRun run = linear;
    run.attrs = attrs;
    return run;
  };
  ExpectRefusals({
      {With(linear, 0, Numbers({2, 64}, 1)), "expected rows of 128 elements"},
      {With(linear, 1, Whole<int8_t>({kColumns, 96}, 3)), "multiples of 64 and 16"},
      {With(linear, 1, Whole<int8_t>({8, kRows}, 3)), "multiples of 64 and 16"},
      {With(linear, 1, Numbers({kColumns, kRows}, 3)), "expected a matrix of int8"},
      {With(linear, 2, Numbers({2 * kColumns}, 3)), "expected 32 elements"},
      {with_attrs("weight_dtype=\"int2\""), "'weight_dtype' is \"int2\""},
      {with_attrs("arch=60"), "'arch' is 60"},
      {with_attrs("group_size=64"), "expected 64 elements"},
      {with_attrs("weight_dtype=\"int4\""), "expected 64 elements"},
  });
}

}  // namespace
}  // namespace interp::testing::weight_only_test
