// Rows of random ops and of range.
#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

using RandomRows = RowTest;

TEST_F(RandomRows, UniformNumbersAreThoseOfTheHostToTheLastBit) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    for (const int32_t seed : {0, 7, -1234567}) {
      for (const int64_t size : {0, 1, 313, 5003}) {
        SCOPED_TRACE(absl::StrCat(Name(dtype), ", seed ", seed, ", size ", size));
        ExpectSameBitsAsHost({"uniform_random",
                              {{"dtype", static_cast<int32_t>(dtype)},
                               {"shape", std::vector<int64_t>{size}},
                               {"seed", seed},
                               {"min", -0.3f},
                               {"max", 0.7f}},
                              {}});
      }
    }
  }
}

TEST_F(RandomRows, UniformNumbersHaveADiagonal) {
  for (const int32_t seed : {0, 7}) {
    ExpectSameBitsAsHost({"uniform_random",
                          {{"shape", std::vector<int64_t>{30, 40}},
                           {"seed", seed},
                           {"diag_num", int32_t{20}},
                           {"diag_step", int32_t{40}},
                           {"diag_val", 2.5f}},
                          {}});
  }
}

TEST_F(RandomRows, UniformNumbersTakeTheBatchOfAnInput) {
  ExpectSameBitsAsHost({"uniform_random_batch_size_like",
                        {{"shape", std::vector<int32_t>{-1, 50}}},
                        {{"Input", SomeTensor<float>({17, 2})}}});
}

TEST_F(RandomRows, NormalNumbersAreThoseOfTheHost) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int32_t seed : {0, 7, -1234567}) {
      for (const int64_t size : {0, 1, 2, 3, 313, 20003}) {
        SCOPED_TRACE(absl::StrCat(Name(dtype), ", seed ", seed, ", size ", size));
        ExpectSameAsHost({"gaussian_random",
                          {{"dtype", static_cast<int32_t>(dtype)},
                           {"shape", std::vector<int64_t>{size}},
                           {"seed", seed},
                           {"mean", -0.3f},
                           {"std", 1.7f}},
                          {}});
      }
    }
  }
  ExpectSameAsHost({"gaussian_random_batch_size_like",
                    {{"shape", std::vector<int32_t>{-1, 50}}},
                    {{"Input", SomeTensor<float>({17, 2})}}});
  ExpectSameAsHost({"gaussian_inplace", {}, {{"x", SomeTensor<double>({17, 3})}}});
}

TEST_F(RandomRows, IntegersWithoutASeedAreThoseOfTheHost) {
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    const std::vector<Attr> attrs = {{"dtype", static_cast<int32_t>(dtype)},
                                     {"shape", std::vector<int64_t>{5003}},
                                     {"low", int32_t{-5}},
                                     {"high", int32_t{1000000}}};
    ExpectSameBitsAsHost({"randint", attrs, {}});
    std::vector<Attr> seeded = attrs;
    seeded.push_back({"seed", int32_t{3}});
    EXPECT_FALSE(HasRow({"randint", seeded, {}}));
  }
}

TEST_F(RandomRows, RangesOfIntegersCountUpAndDown) {
  const auto number = [](auto value) { return Tensor::Of<decltype(value)>(Shape({1}), {value}); };
  ExpectSameBitsAsHost({"range",
                        {},
                        {{"Start", number(int64_t{-7})},
                         {"End", number(int64_t{9000})},
                         {"Step", number(int64_t{3})}}});
  ExpectSameBitsAsHost({"range",
                        {},
                        {{"Start", number(int32_t{9})},
                         {"End", number(int32_t{-30})},
                         {"Step", number(int32_t{-4})}}});
  EXPECT_FALSE(HasRow(
      {"range", {}, {{"Start", number(0.0f)}, {"End", number(1.0f)}, {"Step", number(0.1f)}}}));
}

}  // namespace
}  // namespace interp::cuda_test
