// Rows of ops that work on lines: positions of extremes, running sums, sorting.
#include <limits>
#include <numeric>

#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

using LineRows = RowTest;

// Numbers that are all different, in no order.
template <typename T>
Tensor Distinct(const std::vector<int64_t>& dims) {
  std::vector<T> values(static_cast<size_t>(NumelOf(dims)));
  constexpr uint64_t kPrime = 1000003;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>((i + 1) * 7919 % kPrime) - static_cast<T>(1000);
  }
  return Tensor::Of<T>(Shape(dims), values);
}

TEST_F(LineRows, PositionsOfExtremesAlongAnyAxis) {
  for (const char* type : {"arg_max", "arg_min"}) {
    for (const int64_t axis : {0, 1, -1}) {
      ExpectSameAsHost({type, {{"axis", axis}}, {{"X", SomeTensor<float>({3, 70, 5})}}});
      ExpectSameAsHost({type, {{"axis", axis}}, {{"X", SomeTensor<int64_t>({4, 1500})}}});
    }
    ExpectSameAsHost({type, {{"flatten", true}}, {{"X", SomeTensor<double>({30, 50})}}});
    ExpectSameAsHost(
        {type,
         {{"axis", int64_t{1}}, {"keepdims", true}, {"dtype", static_cast<int32_t>(DType::kInt32)}},
         {{"X", SomeTensor<float16>({6, 40})}}});
    ExpectSameAsHost({type, {}, {{"X", SomeTensor<int16_t>({3, 40})}}});
    ExpectSameAsHost({type, {}, {{"X", SomeTensor<uint8_t>({3, 40})}}});
  }
}

TEST_F(LineRows, TheFirstOfEqualElementsIsChosenAndNanNever) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(2 * 70, 1.0f);
  values[0] = nan;
  std::fill(values.begin() + 70, values.end(), nan);
  const Tensor x = Tensor::Of<float>(Shape({2, 70}), values);
  for (const char* type : {"arg_max", "arg_min"}) {
    ExpectSameAsHost({type, {{"axis", int64_t{1}}}, {{"X", x}}});
    ExpectSameAsHost({type, {{"axis", int64_t{0}}}, {{"X", x}}});
  }
}

TEST_F(LineRows, RunningSumsOfLinesOfAnyLength) {
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      const std::vector<Attr> flags = {{"exclusive", exclusive}, {"reverse", reverse}};
      for (const int64_t axis : {0, 1, 2}) {
        std::vector<Attr> attrs = flags;
        attrs.push_back({"axis", axis});
        ExpectSameAsHost({"cumsum", attrs, {{"X", SomeTensor<float>({3, 70, 40})}}});
        const Tensor x = SomeTensor<double>({2, 3, 5});
        ExpectSameAsHost({"cumsum_grad", attrs, {{"X", x}, {"Out@GRAD", x}}});
      }
      ExpectSameAsHost({"cumsum", flags, {{"X", SomeTensor<int64_t>({2, 2500})}}});
    }
  }
  ExpectSameAsHost({"cumsum", {{"flatten", true}}, {{"X", SomeTensor<int32_t>({30, 50})}}});
  ExpectSameAsHost({"cumsum", {{"exclusive", true}}, {{"X", SomeTensor<float>({})}}});
  ExpectSameAsHost({"cumsum", {}, {{"X", SomeTensor<float>({3, 0})}}});
}

TEST_F(LineRows, SortsLinesOfAnyLength) {
  for (const bool descending : {false, true}) {
    for (const std::vector<int64_t>& dims :
         {std::vector<int64_t>{}, {1}, {3, 33, 2}, {2, 1024}, {2, 1025}, {1, 5000}, {0, 3}}) {
      const std::vector<Attr> attrs = {{"descending", descending}};
      ExpectSameAsHost({"argsort", attrs, {{"X", Distinct<float>(dims)}}});
    }
    ExpectSameAsHost({"argsort",
                      {{"descending", descending}, {"axis", int32_t{0}}},
                      {{"X", Distinct<int64_t>({2100, 2})}}});
    ExpectSameAsHost({"argsort", {}, {{"X", Distinct<double>({3, 40})}}});
    ExpectSameAsHost({"argsort", {}, {{"X", Distinct<int32_t>({3, 40})}}});
  }
}

TEST_F(LineRows, EqualElementsKeepTheirOrderAndNanIsAtTheEnd) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::Of<float>(Shape({8}), {2, nan, 1, 2, nan, 1, 0, -0.0f});
  for (const bool descending : {false, true}) {
    ExpectSameAsHost({"argsort", {{"descending", descending}}, {{"X", x}}});
  }
}

TEST_F(LineRows, TheFirstFewOfLines) {
  for (const int32_t k : {1, 5, 1000, 1030}) {
    const std::vector<Attr> attrs = {{"k", k}};
    ExpectSameAsHost({"top_k", attrs, {{"X", Distinct<float>({2, 3100})}}});
    for (const bool largest : {false, true}) {
      ExpectSameAsHost({"top_k_v2",
                        {{"k", k}, {"axis", int32_t{0}}, {"largest", largest}},
                        {{"X", Distinct<int64_t>({2200, 2})}}});
    }
  }
}

TEST_F(LineRows, TheFirstFewAreSortedThoughNobodyAsks) {
  const Tensor x = Tensor::Of<float>(Shape({6}), {3, -1, 7, 5, 7.5f, 0});
  const std::vector<Tensor> got =
      Run({"top_k_v2", {{"k", int32_t{3}}, {"sorted", false}}, {{"X", x}}}, PlaceKind::kCuda);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_THAT(testing::Values<float>(got[0]), ::testing::ElementsAre(7.5f, 7, 5));
  EXPECT_THAT(testing::Values<int64_t>(got[1]), ::testing::ElementsAre(4, 2, 3));
}

TEST_F(LineRows, GradientsGoWhereElementsCameFrom) {
  const Tensor x = SomeTensor<float>({2, 5, 3});
  const Tensor indices = Tensor::Of<int64_t>(Shape({2, 2, 3}), {4, 0, 1, 2, 3, 0,  //
                                                                1, 1, 3, 0, 2, 4});
  ExpectSameAsHost(
      {"top_k_v2_grad",
       {{"axis", int32_t{1}}},
       {{"X", x}, {"Indices", indices}, {"Out@GRAD", SomeTensor<float>({2, 2, 3}, 2)}}});
  const Tensor order = Tensor::Of<int64_t>(Shape({2, 3}), {2, 0, 1, 0, 1, 2});
  for (const char* type : {"argsort_grad", "top_k_grad"}) {
    ExpectSameAsHost({type,
                      {},
                      {{"X", SomeTensor<double>({2, 3})},
                       {"Indices", order},
                       {"Out@GRAD", SomeTensor<double>({2, 3}, 2)}}});
  }
}

}  // namespace
}  // namespace interp::cuda_test
