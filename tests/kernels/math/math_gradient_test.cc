// Gradients of kernels/math against differences: every form, also those that Paddle 2.6.2 does not
// compute or gets wrong.
#include <gtest/gtest.h>

#include "tests/kernels/finite_differences.h"

namespace interp::testing {
namespace {

// Numbers in [low, high).
Tensor Between(const Shape& shape, uint32_t seed, double low, double high) {
  Tensor tensor = Numbers<double>(shape, seed);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    double& value = tensor.mutable_data<double>()[i];
    value = low + (high - low) * (value + 1) / 2;
  }
  return tensor;
}

Differentiated OfX(const std::string& type, const Tensor& x, const std::string& attrs = "") {
  return {{type, {{"X", x}}, {"Out"}, attrs}, {"Out"}, {"X"}};
}

struct Unary {
  const char* type;
  double low = -3, high = 3;
  const char* attrs = "";
};

class UnaryGradientTest : public ::testing::TestWithParam<Unary> {};

TEST_P(UnaryGradientTest, AgreesWithDifferences) {
  const auto& [type, low, high, attrs] = GetParam();
  Tensor x = Between({5, 4}, 1, low, high);
  x.lod = {{0, 2, 5}};
  ExpectGradients(OfX(type, x, attrs));
  ExpectGradients(OfX(type, Between({}, 2, low, high), attrs));
  ExpectGradients(OfX(type, Between({3, 0}, 2, low, high), attrs));
}

INSTANTIATE_TEST_SUITE_P(
    Lines, UnaryGradientTest,
    ::testing::Values(Unary{"relu"}, Unary{"relu6", -3, 9}, Unary{"leaky_relu", -3, 3, "alpha=0.3"},
                      Unary{"brelu", -5, 30}, Unary{"hard_sigmoid", -4, 4, "slope=0.3"},
                      Unary{"hard_swish", -5, 5}, Unary{"hard_shrink"},
                      Unary{"softshrink", -3, 3, "lambda=0.9"}, Unary{"thresholded_relu"},
                      Unary{"abs"}, Unary{"ceil"}, Unary{"floor"}, Unary{"round"}, Unary{"trunc"},
                      Unary{"clip", -3, 3, "min=-1.0, max=0.5"}));

INSTANTIATE_TEST_SUITE_P(
    Curves, UnaryGradientTest,
    ::testing::Values(
        Unary{"sigmoid"}, Unary{"logsigmoid"}, Unary{"tanh"}, Unary{"tanh_shrink"},
        Unary{"stanh", -3, 3, "scale_a=1.1"}, Unary{"elu", -3, 3, "alpha=0.7"}, Unary{"selu"},
        Unary{"celu", -3, 3, "alpha=0.4"}, Unary{"swish", -3, 3, "beta=1.5"}, Unary{"silu"},
        Unary{"softplus", -3, 3, "beta=1.5, threshold=2.0"}, Unary{"soft_relu"}, Unary{"softsign"},
        Unary{"mish"}, Unary{"gelu"}, Unary{"gelu", -3, 3, "approximate=true"}, Unary{"exp"},
        Unary{"expm1"}, Unary{"erf"}, Unary{"log", 0.3, 3}, Unary{"log2", 0.3, 3},
        Unary{"log10", 0.3, 3}, Unary{"log1p", -0.5, 3}, Unary{"logit", 0.1, 0.9, "eps=0.2"},
        Unary{"sqrt", 0.3, 3}, Unary{"rsqrt", 0.3, 3}, Unary{"square"}, Unary{"reciprocal", 0.3, 3},
        Unary{"pow", 0.3, 3, "factor=-1.5"}, Unary{"pow", -3, 3, "factor=2.0"},
        Unary{"pow", -3, 3, "factor=0.0"}));

INSTANTIATE_TEST_SUITE_P(Angles, UnaryGradientTest,
                         ::testing::Values(Unary{"sin"}, Unary{"cos"}, Unary{"tan", -1.2, 1.2},
                                           Unary{"asin", -0.9, 0.9}, Unary{"acos", -0.9, 0.9},
                                           Unary{"atan"}, Unary{"sinh"}, Unary{"cosh"},
                                           Unary{"asinh"}, Unary{"acosh", 1.2, 4},
                                           Unary{"atanh", -0.9, 0.9}));

TEST(PowGradientTest, TakesTheFactorFromATensor) {
  Differentiated op = OfX("pow", Between({3, 4}, 1, 0.3, 3), "factor=1.0");
  op.run.inputs.emplace_back("FactorTensor", Tensor::Of<double>({1}, {2.5}));
  ExpectGradients(op);
}

TEST(ClipGradientTest, TakesTheBoundsFromTensors) {
  Differentiated op = OfX("clip", Between({3, 4}, 1, -2, 2), "min=0.0, max=0.0");
  op.run.inputs.emplace_back("Min", Tensor::Of<double>({1}, {-0.5}));
  op.run.inputs.emplace_back("Max", Tensor::Of<double>({1}, {1}));
  ExpectGradients(op);
}

struct Operands {
  Shape x, y;
  int axis = -1;
};
const Operands kOperands[] = {
    {{3, 5}, {3, 5}},
    {{4, 3}, {3}},
    {{2, 3, 4, 2}, {3}, 1},
    {{2, 3, 4}, {1}},
    {{2, 3}, {}},
    {{2, 3, 2, 2}, {2, 3, 1, 1}},
    {{2, 3, 4, 2}, {3, 4}, 1},
    {{2, 1, 4, 1}, {1, 3, 1, 5}},
    {{1, 4}, {3, 4}},
    {{4}, {2, 3, 4}},
    {{2, 3, 4}, {3, 1}, 1},
    {{2, 2, 3}, {2}, 0},
    {{3, 300}, {300}},
    {{0, 3}, {3}},
    {{2, 1}, {2, 0}},
    {{3}, {2, 3, 4}, 1},
};

class BinaryGradientTest : public ::testing::TestWithParam<const char*> {};

TEST_P(BinaryGradientTest, AgreesWithDifferences) {
  for (const Operands& operands : kOperands) {
    ExpectGradients(
        {{GetParam(),
          {{"X", Between(operands.x, 1, 0.3, 3)}, {"Y", Between(operands.y, 2, 0.5, 2)}},
          {"Out"},
          absl::StrCat("axis=", operands.axis)},
         {"Out"},
         {"X", "Y"},
         /*step=*/1e-6,
         /*tolerance=*/1e-6});
  }
}

TEST_P(BinaryGradientTest, LargeOnesAreTheSameOnAnyNumberOfThreads) {
  for (const Operands& operands : {Operands{{400, 300}, {300}}, Operands{{40, 30, 10, 12}, {30}, 1},
                                   Operands{{200000}, {200000}}, Operands{{200000}, {1}},
                                   Operands{{300, 1, 20}, {1, 30, 1}}}) {
    ExpectSameGradientsHoweverComputed<float>(
        {{GetParam(),
          {{"X", Numbers(operands.x, 1)}, {"Y", Numbers(operands.y, 2)}},
          {"Out"},
          absl::StrCat("axis=", operands.axis)},
         {"Out"},
         {"X", "Y"}});
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, BinaryGradientTest,
                         ::testing::Values("elementwise_add", "elementwise_sub", "elementwise_mul",
                                           "elementwise_div", "elementwise_max", "elementwise_min",
                                           "elementwise_fmax", "elementwise_fmin",
                                           "elementwise_pow"));

TEST(BinaryGradientTest, RefusesAGradientOfAnotherShape) {
  const Tensor x = Numbers({2, 3}, 1);
  ExpectRefusals({{{"elementwise_mul_grad",
                    {{"X", x}, {"Y", x}, {"Out@GRAD", Numbers({3, 2}, 1)}},
                    {"X@GRAD"}},
                   "'Out@GRAD' has shape [3,2], expected [2,3]"}});
}

// Programs of releases before 2.5 have gradients of shape [1] where scalars are meant.
TEST(GradientShapeTest, OneElementFitsAScalar) {
  const Tensor scalar = Tensor::Of<double>({}, {3});
  const Tensor one = Tensor::Of<double>({1}, {2});
  for (const OpRun& run :
       {OpRun{"elementwise_mul_grad",
              {{"X", scalar}, {"Y", Tensor::Of<double>({}, {1})}, {"Out@GRAD", one}},
              {"X@GRAD"}},
        OpRun{"mean_grad", {{"X", scalar}, {"Out@GRAD", one}}, {"X@GRAD"}},
        OpRun{"exp_grad", {{"Out", Tensor::Of<double>({}, {1})}, {"Out@GRAD", one}}, {"X@GRAD"}}}) {
    const Tensor gradient = OutputsOf(run)[0];
    EXPECT_EQ(gradient.shape, Shape()) << run.type;
    EXPECT_EQ(*gradient.data<double>(), 2) << run.type;
  }
}

class ReductionGradientTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ReductionGradientTest, AgreesWithDifferences) {
  for (const char* attrs : {"dim=[0, 3]", "dim=[1], keep_dim=true", "dim=[-1]", "dim=[0]",
                            "dim=[2, 1]", "dim=[0], reduce_all=true"}) {
    ExpectGradients(OfX(GetParam(), Between({2, 3, 2, 4}, 1, 0.5, 1.5), attrs));
  }
  ExpectGradients(OfX(GetParam(), Between({}, 1, 0.5, 1.5), "dim=[0]"));
  ExpectGradients(OfX(GetParam(), Between({2, 300}, 1, 0.95, 1.05), "dim=[1]"));
}

TEST_P(ReductionGradientTest, LargeOnesAreTheSameOnAnyNumberOfThreads) {
  for (const char* attrs : {"dim=[0]", "dim=[1]", "dim=[0], reduce_all=true"}) {
    ExpectSameGradientsHoweverComputed<float>(
        {{GetParam(), {{"X", Numbers({400, 300}, 1)}}, {"Out"}, attrs}, {"Out"}, {"X"}});
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ReductionGradientTest,
                         ::testing::Values("reduce_sum", "reduce_mean", "reduce_max", "reduce_min",
                                           "reduce_amax", "reduce_amin", "reduce_prod",
                                           "frobenius_norm"));

TEST(ReduceProdGradientTest, IsRightWhereElementsAreZero) {
  const Tensor x = Tensor::Of<double>({3, 3}, {1, 2, 3, 0, 2, 3, 0, 0, 3});
  ExpectGradients(OfX("reduce_prod", x, "dim=[1]"));
}

TEST(ReduceAmaxGradientTest, TakesAxesFromATensor) {
  Differentiated op = OfX("reduce_amax", Between({3, 4}, 1, -1, 1), "dim=[0]");
  op.run.inputs.emplace_back("AxisTensor", Tensor::Of<int64_t>({1}, {1}));
  ExpectGradients(op);
}

TEST(NormGradientTest, AgreesWithDifferences) {
  const Tensor x = Numbers<double>({3, 4, 2}, 1);
  for (const char* type : {"mean", "l1_norm", "squared_l2_norm"}) ExpectGradients(OfX(type, x));
  for (const char* attrs : {"axis=[1]", "axis=[0, 2], keepdim=true", "reduce_all=true"}) {
    ExpectGradients(OfX("logsumexp", x, attrs));
  }
  for (const char* order : {"0.0", "1.0", "2.0", "3.5", "1.5", "-1.0", "inf", "-inf"}) {
    for (const char* attrs : {"axis=1", "axis=-1, keepdim=true", "asvector=true"}) {
      Differentiated op = OfX("p_norm", x, absl::StrCat("porder=", order, ", ", attrs));
      op.tolerance = 1e-6;
      ExpectGradients(op);
    }
  }
  for (const char* attrs : {"axis=1", "axis=-1, epsilon=0.01", "axis=0"}) {
    ExpectGradients({{"norm", {{"X", x}}, {"Out", "Norm"}, attrs}, {"Out"}, {"X"}});
  }
}

TEST(NormGradientTest, OfZeroIsZero) {
  const Tensor zero = Tensor::Of<double>({2}, {0, 0});
  for (const char* type : {"p_norm", "frobenius_norm"}) {
    const std::vector<Tensor> gradients = GradientsOf<double>(OfX(type, zero));
    EXPECT_EQ(gradients[0].data<double>()[0], 0) << type;
  }
}

// What Paddle 2.6.2 gives: with an epsilon it is no derivative.
TEST(NormGradientTest, TakesAnEpsilon) {
  const Tensor x = Tensor::Of<double>({3}, {1, -2, 2});
  const std::pair<const char*, std::array<double, 3>> cases[] = {
      {"1.0", {0.6666667, -0.6666667, 0.6666667}},
      {"2.0", {0.2857143, -0.5714286, 0.5714286}},
      {"3.0", {0.14061752, -0.5624701, 0.5624701}}};
  for (const auto& [order, expected] : cases) {
    const Tensor norm =
        *RunOp({"p_norm", {{"X", x}}, {"Out"}, absl::StrCat("porder=", order)}).value().begin();
    const std::vector<Tensor> gradients =
        RunOp({"p_norm_grad",
               {{"X", x}, {"Out", norm}, {"Out@GRAD", Tensor::Of<double>({}, {1})}},
               {"X@GRAD"},
               absl::StrCat("epsilon=0.5, porder=", order)})
            .value();
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(gradients[0].data<double>()[i], expected[i], 1e-6);
  }
}

TEST(OrderGradientTest, AgreesWithDifferences) {
  for (const Shape& shape : {Shape{3, 7, 2}, Shape{}, Shape{5}}) {
    const Tensor x = Numbers<double>(shape, 1);
    const std::string axis = shape.rank() == 3 ? "axis=1" : "axis=-1";
    const std::string two = shape.rank() == 0 ? "k=1, " : "k=2, ";
    const std::vector<std::string> outputs = {"Out", "Indices"};
    ExpectGradients({{"argsort", {{"X", x}}, outputs, axis + ", descending=true"}, {"Out"}, {"X"}});
    ExpectGradients(
        {{"top_k_v2", {{"X", x}}, outputs, two + axis + ", largest=false"}, {"Out"}, {"X"}});
    ExpectGradients({{"top_k", {{"X", x}}, outputs, "k=1"}, {"Out"}, {"X"}});
  }
}

TEST(OrderGradientTest, RefusesIndicesOutside) {
  ExpectRefusals({{{"top_k_grad",
                    {{"X", Numbers({2, 3}, 1)},
                     {"Indices", Tensor::Of<int64_t>({2, 1}, {0, 3})},
                     {"Out@GRAD", Numbers({2, 1}, 1)}},
                    {"X@GRAD"}},
                   "'Indices' has the value 3"}});
}

TEST(CumSumGradientTest, AgreesWithDifferences) {
  for (const char* attrs : {"axis=1", "axis=0, exclusive=true", "axis=-1, reverse=true",
                            "axis=1, exclusive=true, reverse=true", "flatten=true"}) {
    ExpectGradients(OfX("cumsum", Numbers<double>({2, 5, 3}, 1), attrs));
  }
}

TEST(InverseGradientTest, AgreesWithDifferences) {
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 2, 2, 2}, Shape{0, 2, 2}}) {
    Tensor x = Numbers<double>(shape, 1);
    const int64_t n = shape.back();
    for (int64_t i = 0; i < x.numel(); ++i) {
      if (i % (n * n) % (n + 1) == 0) x.mutable_data<double>()[i] += 3;
    }
    ExpectGradients({{"inverse", {{"Input", x}}, {"Output"}}, {"Output"}, {"Input"}});
  }
}

struct Alpha {
  Shape x, alpha;
  const char* attrs;
};

TEST(PReluGradientTest, AgreesWithDifferences) {
  for (const Alpha& form :
       {Alpha{{2, 3, 4}, {1}, R"(mode="all")"}, Alpha{{2, 3, 4, 2}, {3}, R"(mode="channel")"},
        Alpha{{2, 3, 5}, {5}, R"(mode="channel", data_format="NLC")"},
        Alpha{{3, 4}, {4}, R"(mode="channel")"},
        Alpha{{3, 2, 4}, {1, 2, 4}, R"(mode="element")"}}) {
    ExpectGradients(
        {{"prelu",
          {{"X", Numbers<double>(form.x, 1)}, {"Alpha", Numbers<double>(form.alpha, 2)}},
          {"Out"},
          form.attrs},
         {"Out"},
         {"X", "Alpha"}});
  }
}

}  // namespace
}  // namespace interp::testing
