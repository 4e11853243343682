// Rows of element-wise functions, comparisons, reductions, softmax, layer_norm and cast.
#include <cmath>
#include <complex>
#include <limits>
#include <tuple>

#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

using MathRows = RowTest;

// Values in (0, 1).
template <typename T>
Tensor Fractions(const std::vector<int64_t>& dims) {
  std::vector<T> values = SomeValues<T>(static_cast<size_t>(NumelOf(dims)));
  for (T& value : values) value = static_cast<T>(0.5f + static_cast<float>(value) * 0.24f);
  return Tensor::Of<T>(Shape(dims), values);
}

TEST_F(MathRows, FunctionsWithoutAttributesGiveWhatTheHostGives) {
  for (const char* type :
       {"relu",  "hard_swish", "sigmoid", "logsigmoid", "tanh",  "tanh_shrink", "silu",  "softsign",
        "mish",  "rsqrt",      "sqrt",    "reciprocal", "ceil",  "floor",       "round", "square",
        "abs",   "trunc",      "sign",    "exp",        "expm1", "log",         "log2",  "log10",
        "log1p", "erf",        "sin",     "cos",        "tan",   "asin",        "acos",  "atan",
        "sinh",  "cosh",       "asinh",   "atanh"}) {
    ExpectSameAsHost({type, {}, {{"X", SomeTensor<float>({7, 33})}}});
    ExpectSameAsHost({type, {}, {{"X", SomeTensor<double>({5})}}});
    ExpectSameAsHost({type, {}, {{"X", Fractions<float16>({3, 5})}}});
  }
  ExpectSameAsHost({"acosh", {}, {{"X", SomeTensor<float>({40})}}});
}

TEST_F(MathRows, LabelsAreSmoothedAsOnTheHost) {
  const Tensor x = SomeTensor<float>({3, 2, 7});
  const std::vector<Attr> attrs = {{"epsilon", 0.1f}};
  ExpectSameAsHost({"label_smooth", attrs, {{"X", x}}});
  ExpectSameAsHost(
      {"label_smooth", attrs, {{"X", x}, {"PriorDist", SomeTensor<float>({1, 7}, 2)}}});
  ExpectSameAsHost({"label_smooth_grad", attrs, {{"Out@GRAD", x}}});
}

TEST_F(MathRows, RoundIsHalfAwayFromZero) {
  const float below_half = std::nextafter(0.5f, 0.0f);
  ExpectSameAsHost(
      {"round",
       {},
       {{"X", Tensor::Of<float>(Shape({6}), {0.5f, -0.5f, below_half, -2.5f, 1.5f, 8388609.0f})}}});
}

TEST_F(MathRows, FunctionsReadTheirAttributes) {
  const Tensor x = SomeTensor<float>({3, 50});
  const std::vector<std::pair<std::string, std::vector<Attr>>> cases = {
      {"relu6", {{"threshold", 1.25f}}},
      {"leaky_relu", {{"alpha", 0.1f}}},
      {"brelu", {{"t_min", -0.5f}, {"t_max", 0.75f}}},
      {"hard_sigmoid", {{"slope", 0.3f}, {"offset", 0.4f}}},
      {"hard_shrink", {{"threshold", 0.7f}}},
      {"softshrink", {{"lambda", 0.3f}}},
      {"thresholded_relu", {{"threshold", 0.2f}, {"value", 0.1f}}},
      {"stanh", {{"scale_a", 0.5f}, {"scale_b", 1.5f}}},
      {"elu", {{"alpha", 0.8f}}},
      {"selu", {{"alpha", 1.5f}, {"scale", 1.1f}}},
      {"celu", {{"alpha", 1.7f}}},
      {"swish", {{"beta", 1.3f}}},
      {"softplus", {{"beta", 2.0f}, {"threshold", 1.5f}}},
      {"soft_relu", {{"threshold", 1.0f}}},
      {"gelu", {{"approximate", true}}},
      {"gelu", {{"approximate", false}}},
      {"pow", {{"factor", 2.0f}}},
      {"pow", {{"factor", 3.0f}}},
      {"clip", {{"min", -0.5f}, {"max", 0.5f}}},
      {"scale", {{"scale", 2.5f}, {"bias", -1.0f}, {"bias_after_scale", true}}},
      {"scale", {{"scale", 2.5f}, {"bias", -1.0f}, {"bias_after_scale", false}}}};
  for (const auto& [type, attrs] : cases) ExpectSameAsHost({type, attrs, {{"X", x}}});
  ExpectSameAsHost({"logit", {{"eps", 0.1f}}, {{"X", Fractions<float>({40})}}});
  EXPECT_FALSE(HasRow({"mish", {{"threshold", 1.0f}}, {{"X", x}}}));
}

TEST_F(MathRows, NumbersThatLieOnTheGpuWinOverAttributes) {
  const Tensor x = SomeTensor<float>({30});
  const auto number = [](float value) { return Tensor::Of<float>(Shape({1}), {value}); };
  for (const bool after : {true, false}) {
    ExpectSameAsHost({"scale",
                      {{"scale", 9.0f}, {"bias", 0.5f}, {"bias_after_scale", after}},
                      {{"X", x}, {"ScaleTensor", number(-2.0f)}}});
  }
  ExpectSameAsHost({"pow", {{"factor", 9.0f}}, {{"X", x}, {"FactorTensor", number(3.0f)}}});
  ExpectSameAsHost({"clip", {{"max", 0.5f}}, {{"X", x}, {"Min", number(-0.25f)}}});
  ExpectSameAsHost({"clip", {{"min", 0.5f}}, {{"X", x}, {"Max", number(0.75f)}}});
  ExpectSameAsHost({"clip", {}, {{"X", x}, {"Min", number(-0.25f)}, {"Max", number(0.75f)}}});
}

TEST_F(MathRows, IntegersWrapAround) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const Tensor x = Tensor::Of<int64_t>(Shape({4}), {most, -most - 1, 3, -4});
  for (const char* type : {"abs", "square", "sign", "trunc"}) {
    ExpectSameAsHost({type, {}, {{"X", x}}});
  }
  ExpectSameAsHost({"scale", {{"scale", 3.7f}, {"bias", 2.9f}}, {{"X", x}}});
  ExpectSameAsHost(
      {"increment", {{"step", 2.0f}}, {{"X", Tensor::Of<int64_t>(Shape({1}), {most})}}});
}

TEST_F(MathRows, PairsAreBroadcastByAxis) {
  const std::vector<std::tuple<std::vector<int64_t>, std::vector<int64_t>, int32_t>> cases = {
      {{2, 3, 4, 5}, {2, 3, 4, 5}, -1},
      {{2, 3, 4, 5}, {3}, 1},
      {{2, 3, 4, 5}, {3, 1, 1}, 1},
      {{2, 3, 4, 5}, {4, 5}, -1},
      {{5, 1, 3}, {1, 7, 3}, -1},
      {{4}, {2, 3, 4}, -1},
      {{3, 4}, {1}, -1},
      {{}, {}, -1},
      {{0, 3}, {3}, -1}};
  for (const char* type :
       {"elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div",
        "elementwise_max", "elementwise_min", "elementwise_floordiv", "elementwise_mod",
        "elementwise_fmax", "elementwise_fmin", "less_than", "equal", "greater_equal"}) {
    for (const auto& [x, y, axis] : cases) {
      SCOPED_TRACE(absl::StrCat(ToString(Shape(x)), " ", ToString(Shape(y))));
      ExpectSameAsHost(
          {type, {{"axis", axis}}, {{"X", SomeTensor<float>(x)}, {"Y", SomeTensor<float>(y, 2)}}});
    }
  }
}

TEST_F(MathRows, PairsOfIntegersAndPowers) {
  const Tensor x = SomeTensor<int32_t>({3, 17});
  const Tensor y = SomeTensor<int32_t>({17}, 2);
  for (const char* type :
       {"elementwise_add", "elementwise_mul", "elementwise_max", "elementwise_fmin", "not_equal",
        "less_equal", "greater_than", "logical_and", "logical_or", "logical_xor"}) {
    ExpectSameAsHost({type, {}, {{"X", x}, {"Y", y}}});
  }
  ExpectSameAsHost(
      {"elementwise_pow", {}, {{"X", Fractions<float>({3, 17})}, {"Y", SomeTensor<float>({17})}}});
  EXPECT_FALSE(HasRow({"elementwise_div", {}, {{"X", x}, {"Y", y}}}));
}

TEST_F(MathRows, LogicOfBoolsAndTestsOfFloats) {
  const Tensor x = Tensor::Of<bool>(Shape({4}), {true, true, false, false});
  const Tensor y = Tensor::Of<bool>(Shape({4}), {true, false, true, false});
  for (const char* type : {"logical_and", "logical_or", "logical_xor", "equal", "less_than"}) {
    ExpectSameAsHost({type, {}, {{"X", x}, {"Y", y}}});
  }
  ExpectSameAsHost({"logical_not", {}, {{"X", x}}});
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor special = Tensor::Of<float>(
      Shape({5}), {1.0f, infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 3e38f});
  for (const char* type : {"isfinite_v2", "isinf_v2", "isnan_v2"}) {
    ExpectSameAsHost({type, {}, {{"X", special}}});
    ExpectSameAsHost({type, {}, {{"X", SomeTensor<int32_t>({5})}}});
  }
}

TEST_F(MathRows, MeanIsThatOfAllElements) {
  ExpectSameAsHost({"mean", {}, {{"X", SomeTensor<float>({3, 4, 500})}}});
  ExpectSameAsHost({"mean", {}, {{"X", SomeTensor<double>({7, 5})}}});
  ExpectSameAsHost({"mean", {}, {{"X", SomeTensor<float16>({40, 3})}}});
  ExpectSameAsHost({"mean", {}, {{"X", SomeTensor<float>({1})}}});
}

TEST_F(MathRows, ReductionsOfAnyDimensions) {
  const Tensor x = SomeTensor<float>({3, 4, 5, 6});
  for (const char* type :
       {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_amax", "reduce_prod"}) {
    for (const std::vector<int32_t>& dims :
         {std::vector<int32_t>{0}, {3}, {1, 2}, {0, 2}, {-1, 0}, {1, 3}}) {
      ExpectSameAsHost({type, {{"dim", dims}}, {{"X", x}}});
    }
    ExpectSameAsHost({type, {{"reduce_all", true}, {"keep_dim", true}}, {{"X", x}}});
    ExpectSameAsHost(
        {type, {{"dim", std::vector<int32_t>{1}}}, {{"X", SomeTensor<int64_t>({4, 9})}}});
  }
}

template <typename T>
class NormRows : public RowTest {};
using NormElements = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NormRows, NormElements);

TYPED_TEST(NormRows, OfAnyOrderAlongAnyAxis) {
  Tensor x = SomeTensor<TypeParam>({5, 40, 7});
  x.template mutable_data<TypeParam>()[13] = 0;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float order : {0.0f, 0.5f, 1.0f, 2.0f, 3.0f, -1.5f, infinity, -infinity}) {
    SCOPED_TRACE(order);
    for (const int32_t axis : {0, 1, -1}) {
      this->ExpectSameAsHost({"p_norm", {{"porder", order}, {"axis", axis}}, {{"X", x}}});
    }
    this->ExpectSameAsHost({"p_norm", {{"porder", order}, {"asvector", true}}, {{"X", x}}});
  }
  x.template mutable_data<TypeParam>()[20] = std::numeric_limits<TypeParam>::quiet_NaN();
  this->ExpectSameAsHost({"p_norm", {{"porder", infinity}, {"axis", int32_t{0}}}, {{"X", x}}});
}

TYPED_TEST(NormRows, OfMatricesAndOfAllElements) {
  const Tensor x = SomeTensor<TypeParam>({3, 33, 35});
  this->ExpectSameAsHost(
      {"frobenius_norm", {{"dim", std::vector<int32_t>{1, 2}}, {"keep_dim", true}}, {{"X", x}}});
  this->ExpectSameAsHost({"l1_norm", {}, {{"X", x}}});
  this->ExpectSameAsHost({"squared_l2_norm", {}, {{"X", x}}});
}

template <typename T>
class InverseRows : public RowTest {};
TYPED_TEST_SUITE(InverseRows, NormElements);

// Matrices with a diagonal that is well above the rest, whose rows are then rotated.
template <typename T>
Tensor RegularMatrices(int64_t count, int64_t n) {
  Tensor x = SomeTensor<T>({count, n, n});
  T* const values = x.mutable_data<T>();
  for (int64_t i = 0; i < count * n; ++i) {
    const int64_t row = i % n;
    values[i * n + (row + 1) % n] += static_cast<T>(2 * n);
  }
  return x;
}

TYPED_TEST(InverseRows, AreThoseOfTheHost) {
  for (const int64_t n : {1, 3, 4, 33}) {
    SCOPED_TRACE(n);
    this->ExpectSameAsHost({"inverse", {}, {{"Input", RegularMatrices<TypeParam>(5, n)}}});
  }
  this->ExpectSameAsHost({"inverse", {}, {{"Input", SomeTensor<TypeParam>({0, 3, 3})}}});
}

TYPED_TEST(InverseRows, OfSingularMatricesAreNaN) {
  Tensor x = RegularMatrices<TypeParam>(2, 3);
  TypeParam* const values = x.template mutable_data<TypeParam>();
  for (int64_t i = 0; i < 3; ++i) values[3 * i + 1] = 0;
  const std::vector<Tensor> got = this->Run({"inverse", {}, {{"Input", x}}}, PlaceKind::kCuda);
  ASSERT_EQ(got.size(), 1u);
  for (int64_t i = 0; i < 18; ++i) {
    EXPECT_EQ(std::isnan(got[0].data<TypeParam>()[i]), i < 9) << i;
  }
}

TEST_F(MathRows, SoftmaxAlongAnyAxis) {
  for (const int32_t axis : {0, 1, -1}) {
    ExpectSameAsHost({"softmax", {{"axis", axis}}, {{"X", SomeTensor<float>({4, 7, 9})}}});
    ExpectSameAsHost({"log_softmax", {{"axis", axis}}, {{"X", SomeTensor<float>({4, 7, 9})}}});
  }
}

TEST_F(MathRows, LayerNormGivesMeansAndVariances) {
  for (const int32_t begin : {1, 2}) {
    const int64_t length = begin == 1 ? 5 * 40 : 40;
    ExpectSameAsHost({"layer_norm",
                      {{"begin_norm_axis", begin}, {"epsilon", 1e-5f}},
                      {{"X", SomeTensor<float>({3, 5, 40})},
                       {"Scale", SomeTensor<float>({length}, 2)},
                       {"Bias", SomeTensor<float>({length}, 3)}}});
  }
  ExpectSameAsHost({"layer_norm", {}, {{"X", SomeTensor<bfloat16>({3, 40})}}});
}

template <typename T>
class CastRows : public RowTest {};
using CastElements =
    ::testing::Types<bool, int16_t, int32_t, int64_t, float16, bfloat16, float, double, uint8_t,
                     int8_t, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(CastRows, CastElements);

TYPED_TEST(CastRows, EveryPairGivesWhatTheHostGives) {
  const TypeParam values[] = {TypeParam(0), TypeParam(1), TypeParam(3), TypeParam(100)};
  const Tensor x = Tensor::Of<TypeParam>(Shape({4}), values);
  for (const DType to : {DType::kBool, DType::kInt16, DType::kInt32, DType::kInt64, DType::kFloat16,
                         DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kUInt8,
                         DType::kInt8, DType::kComplex64, DType::kComplex128}) {
    this->ExpectSameAsHost(
        {"cast",
         {{"in_dtype", static_cast<int32_t>(x.dtype)}, {"out_dtype", static_cast<int32_t>(to)}},
         {{"X", x}}});
  }
}

}  // namespace
}  // namespace interp::cuda_test
