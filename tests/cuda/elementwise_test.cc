#include "kernels/cuda/elementwise.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/cuda/kernel_test.h"

namespace interp::cuda_test {
namespace {

using cuda::Elementwise;
using cuda::ElementwiseOp;
using cuda::ElementwiseOperand;
using cuda::ElementwiseStep;

// Runs a chain on operands of these dims, which start `offset` elements into their memory, and the
// result `out_offset` elements.
template <typename T>
std::vector<T> RunChain(const std::vector<ElementwiseStep>& steps,
                        const std::vector<std::vector<int64_t>>& dims,
                        const std::vector<std::vector<T>>& values,
                        const std::vector<int64_t>& out_dims, size_t offset = 0,
                        size_t out_offset = 0) {
  std::vector<std::unique_ptr<DeviceArray<T>>> arrays;
  std::vector<ElementwiseOperand> operands;
  for (size_t i = 0; i < dims.size(); ++i) {
    arrays.push_back(std::make_unique<DeviceArray<T>>(values[i], offset));
    operands.push_back({.data = arrays.back()->data(), .dims = dims[i]});
  }
  const DeviceArray<T> out(NumelOf(out_dims), out_offset);
  const absl::Status status =
      Elementwise(DTypeOf<T>, steps, operands, out_dims, out.data(), /*stream=*/nullptr);
  EXPECT_TRUE(status.ok()) << status;
  return out.Read();
}

struct UnaryCase {
  ElementwiseOp op;
  std::string type;  // of the host's op
  std::vector<Attr> attrs = {};
  float a = 0;
  float b = 0;
};

std::vector<UnaryCase> UnaryCases() {
  return {
      {ElementwiseOp::kAbs, "abs"},
      {ElementwiseOp::kCeil, "ceil"},
      {ElementwiseOp::kClip, "clip", {{"min", -0.5f}, {"max", 1.0f}}, -0.5f, 1.0f},
      {ElementwiseOp::kCos, "cos"},
      {ElementwiseOp::kElu, "elu", {{"alpha", 0.75f}}, 0.75f},
      {ElementwiseOp::kErf, "erf"},
      {ElementwiseOp::kExp, "exp"},
      {ElementwiseOp::kFloor, "floor"},
      {ElementwiseOp::kGelu, "gelu"},
      {ElementwiseOp::kGeluTanh, "gelu", {{"approximate", true}}},
      {ElementwiseOp::kHardSigmoid, "hard_sigmoid", {}, 0.2f, 0.5f},
      {ElementwiseOp::kHardSwish, "hard_swish"},
      {ElementwiseOp::kLeakyRelu, "leaky_relu", {{"alpha", 0.125f}}, 0.125f},
      {ElementwiseOp::kLog, "log"},
      {ElementwiseOp::kMish, "mish"},
      {ElementwiseOp::kReciprocal, "reciprocal"},
      {ElementwiseOp::kRelu, "relu"},
      {ElementwiseOp::kRsqrt, "rsqrt"},
      {ElementwiseOp::kScale, "scale", {{"scale", 3.0f}, {"bias", 0.5f}}, 3.0f, 0.5f},
      {ElementwiseOp::kSigmoid, "sigmoid"},
      {ElementwiseOp::kSign, "sign"},
      {ElementwiseOp::kSin, "sin"},
      {ElementwiseOp::kSoftplus, "softplus", {{"beta", 2.0f}, {"threshold", 3.0f}}, 2.0f, 3.0f},
      {ElementwiseOp::kSqrt, "sqrt"},
      {ElementwiseOp::kSquare, "square"},
      {ElementwiseOp::kSwish, "swish", {{"beta", 1.0f}}, 1.0f},
      {ElementwiseOp::kTanh, "tanh"},
  };
}

template <typename T>
class ElementwiseFloats : public KernelTest {};
TYPED_TEST_SUITE(ElementwiseFloats, Floats);

TYPED_TEST(ElementwiseFloats, GiveWhatTheHostGives) {
  const std::vector<int64_t> dims = {3, 41};
  std::vector<TypeParam> x = SomeValues<TypeParam>(NumelOf(dims));
  x[5] = static_cast<TypeParam>(0.0f);
  x[77] = std::numeric_limits<float>::quiet_NaN();
  for (const UnaryCase& unary : UnaryCases()) {
    SCOPED_TRACE(unary.type);
    const ElementwiseStep step{.op = unary.op, .a = unary.a, .b = unary.b};
    ExpectClose(RunChain<TypeParam>({step}, {dims}, {x}, dims),
                OnHost<TypeParam>(unary.type, unary.attrs, {{"X", TensorOf(dims, x)}}));
  }
}

TYPED_TEST(ElementwiseFloats, TakeEverySizeAndAlignment) {
  const std::vector<std::pair<size_t, size_t>> offsets = {{0, 0}, {1, 1}, {3, 0}, {0, 1}};
  for (const int64_t size : {0, 1, 3, 8, 31, 1000, 9000}) {
    for (const auto& [offset, out_offset] : offsets) {
      SCOPED_TRACE(absl::StrCat(size, " elements at ", offset, ", result at ", out_offset));
      const std::vector<TypeParam> x = SomeValues<TypeParam>(size);
      std::vector<float> want(x.begin(), x.end());
      for (float& value : want) value *= 2;
      const ElementwiseStep twice{.op = ElementwiseOp::kScale, .a = 2.0f};
      ExpectClose(RunChain<TypeParam>({twice}, {{size}}, {x}, {size}, offset, out_offset), want);
    }
  }
}

TYPED_TEST(ElementwiseFloats, RunChainsInOneLaunch) {
  const std::vector<int64_t> dims = {5, 16};
  const auto x = SomeValues<TypeParam>(80, 1);
  const auto y = SomeValues<TypeParam>(16, 2);
  const auto z = SomeValues<TypeParam>(5, 3);
  std::vector<float> want(80);
  for (int i = 0; i < 80; ++i) {
    want[i] = std::max(0.0f, z[i / 16] - (x[i] * y[i % 16] + 0.5f));
  }
  ExpectClose(RunChain<TypeParam>({{.op = ElementwiseOp::kMul, .operand = 1},
                                   {.op = ElementwiseOp::kScale, .a = 1.0f, .b = 0.5f},
                                   {.op = ElementwiseOp::kSub, .operand = 2, .swapped = true},
                                   {.op = ElementwiseOp::kRelu}},
                                  {dims, {1, 16}, {5, 1}}, {x, y, z}, dims),
              want);
}

template <typename T>
class ElementwiseNumbers : public KernelTest {};
using Numbers = ::testing::Types<float, double, float16, bfloat16, int32_t, int64_t>;
TYPED_TEST_SUITE(ElementwiseNumbers, Numbers);

TYPED_TEST(ElementwiseNumbers, Broadcast) {
  const std::vector<std::pair<ElementwiseOp, std::string>> ops = {
      {ElementwiseOp::kAdd, "elementwise_add"}, {ElementwiseOp::kSub, "elementwise_sub"},
      {ElementwiseOp::kMul, "elementwise_mul"}, {ElementwiseOp::kMax, "elementwise_max"},
      {ElementwiseOp::kMin, "elementwise_min"},
  };
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> shapes = {
      {{3, 4, 8}, {3, 4, 8}},       {{3, 4, 8}, {1, 1, 8}}, {{3, 4, 8}, {3, 1, 1}},
      {{3, 4, 8}, {1, 4, 1}},       {{3, 4, 8}, {1, 1, 1}}, {{3, 1, 5}, {1, 7, 1}},
      {{2, 3, 5, 7}, {2, 1, 5, 1}},
  };
  for (const auto& [op, type] : ops) {
    for (const auto& [x_dims, y_dims] : shapes) {
      SCOPED_TRACE(absl::StrCat(type, " ", ToString(Shape(x_dims)), ToString(Shape(y_dims))));
      const auto x = SomeValues<TypeParam>(NumelOf(x_dims), 1);
      const auto y = SomeValues<TypeParam>(NumelOf(y_dims), 2);
      std::vector<int64_t> out_dims = x_dims;
      for (size_t d = 0; d < out_dims.size(); ++d) out_dims[d] = std::max(x_dims[d], y_dims[d]);
      ExpectClose(
          RunChain<TypeParam>({{.op = op, .operand = 1}}, {x_dims, y_dims}, {x, y}, out_dims),
          OnHost<TypeParam>(type, {}, {{"X", TensorOf(x_dims, x)}, {"Y", TensorOf(y_dims, y)}}));
    }
  }
}

using ElementwiseIntegers = KernelTest;

TEST_F(ElementwiseIntegers, WrapAround) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  const std::vector<int32_t> x = {kLeast, -3, 0, 65536};
  EXPECT_EQ(RunChain<int32_t>({{.op = ElementwiseOp::kAbs}}, {{4}}, {x}, {4}),
            (std::vector<int32_t>{kLeast, 3, 0, 65536}));
  EXPECT_EQ(RunChain<int32_t>({{.op = ElementwiseOp::kSquare}}, {{4}}, {x}, {4}),
            (std::vector<int32_t>{0, 9, 0, 0}));
}

using ElementwiseZeros = KernelTest;

TEST_F(ElementwiseZeros, HaveNoSignAfterAbs) {
  const std::vector<float> y =
      RunChain<float>({{.op = ElementwiseOp::kAbs}}, {{2}}, {{-0.0f, 0.0f}}, {2});
  EXPECT_FALSE(std::signbit(y[0]));
  EXPECT_FALSE(std::signbit(y[1]));
}

TEST(ElementwiseErrors, SayWhatDoesNotFit) {
  const std::vector<int64_t> dims = {2, 3};
  const std::vector<int64_t> other = {2, 2};
  const ElementwiseOperand x{.dims = dims};
  const ElementwiseOperand y{.dims = other};
  EXPECT_THAT(std::string(Elementwise(DType::kFloat32, {{.op = ElementwiseOp::kAdd, .operand = 1}},
                                      {x, y}, dims, nullptr, nullptr)
                              .message()),
              ::testing::HasSubstr("an operand of an element-wise chain does not fit"));
  EXPECT_EQ(
      Elementwise(DType::kInt64, {{.op = ElementwiseOp::kExp}}, {x}, dims, nullptr, nullptr).code(),
      absl::StatusCode::kUnimplemented);
  EXPECT_EQ(
      Elementwise(DType::kBool, {{.op = ElementwiseOp::kRelu}}, {x}, dims, nullptr, nullptr).code(),
      absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace interp::cuda_test
