// What a parameter is compared with: the program's declaration.
#include "core/io/param_decl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/program_parse.h"
#include "tests/testing/matchers.h"

namespace interp::param_decl_test {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using testing::IsOk;

Tensor Filled(DType dtype, const Shape& shape) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  EXPECT_THAT(tensor.Allocate(SystemAllocator()), IsOk());
  std::memset(tensor.mutable_raw_data(), 0, tensor.size_bytes());
  return tensor;
}

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ParamDeclTest, WhatTheProgramWritesMayHaveOtherDimsOfOne) {
  const auto check = [](std::vector<int64_t> declared, const Shape& found, bool written) {
    return CheckDeclared(DType::kFloat32, found,
                         {"p", DType::kFloat32, std::move(declared), written});
  };
  EXPECT_THAT(check({1, 1}, {1}, true), IsOk());
  EXPECT_THAT(check({}, {1}, true), IsOk());
  EXPECT_THAT(check({1, 4}, {4}, true), IsOk());
  EXPECT_THAT(check({1, 1}, {1}, false), FailsWith(kInvalid, "declares float32[1,1]"));
  EXPECT_THAT(check({1, 4}, {5}, true), FailsWith(kInvalid, "declares float32[1,4]"));
  EXPECT_THAT(check({1, 4}, {4, 1}, true), FailsWith(kInvalid, "declares float32[1,4]"));
}

// paddle.static.auc without steps declares int64[1,4096], and its startup program makes 4097.
TEST(ParamDeclTest, CountsOfAucMayHaveMoreElements) {
  const absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var p float32[2,1]
  var label int64[2,1]
  var count int64[1,4] persistable
  var other int64[1,4] persistable
  var area float64[]
  auc(Predict=p, Label=label, StatPos=count, StatNeg=count) -> (AUC=area, StatPosOut=count)
  increment(X=other) -> (Out=other)
)");
  ASSERT_THAT(program, IsOk());
  const std::vector<ParamDecl> params = ParamsOf(*program);
  ASSERT_EQ(params.size(), 2);
  const auto check = [](const ParamDecl& param, const Shape& found) {
    return CheckDeclared(DType::kInt64, found, param);
  };
  EXPECT_THAT(check(params[0], {5}), IsOk());
  EXPECT_THAT(check(params[0], {3}), FailsWith(kInvalid, "declares int64[1,4]"));
  EXPECT_THAT(check(params[0], {4, 1}), FailsWith(kInvalid, "declares int64[1,4]"));
  EXPECT_THAT(check(params[1], {5}), FailsWith(kInvalid, "declares int64[1,4]"));
}

TEST(ParamDeclTest, WhatAnOpMakesBeforeOthersReadItIsMadeFirst) {
  const absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var counter float32[1] persistable
  var condition bool[1]
  var inner float32[1] persistable
  var made float32[1] persistable
  var read float32[1] persistable
  var within float32[1] persistable
  increment(X=counter) -> (Out=counter)
  assign(X=read) -> (Out=made)
  assign(X=made) -> (Out=read)
  conditional_block(Cond=condition) -> (Out=[]) {sub_block=block:1}
  assign(X=read) -> (Out=inner)
  assign(X=read) -> (Out=within)
block 1 parent=0
  assign(X=made) -> (Out=inner)
  conditional_block(Cond=condition) -> (Out=[]) {sub_block=block:2}
block 2 parent=1
  assign(X=made) -> (Out=within)
)");
  ASSERT_THAT(program, IsOk());
  std::vector<std::string> made_first;
  for (const ParamDecl& param : ParamsOf(*program)) {
    if (param.made_first) made_first.push_back(param.name);
  }
  EXPECT_THAT(made_first, ElementsAre("made"));
}

// As the programs that put averages of parameters in their place have it.
TEST(ParamDeclTest, NoDimsAreThoseOfANumberOrLeftOut) {
  for (const bool written : {false, true}) {
    const ParamDecl param = {"p", DType::kFloat32, {}, written};
    EXPECT_THAT(CheckDeclared(DType::kFloat32, {3, 1, 2}, param), IsOk());
    EXPECT_THAT(CheckDeclared(DType::kFloat32, {0}, param), IsOk());
    EXPECT_THAT(CheckDeclared(DType::kInt32, {3}, param), FailsWith(kInvalid, "float32[]"));
    const auto taken = AsDeclared(Filled(DType::kFloat32, {3, 1, 2}), param);
    ASSERT_THAT(taken, IsOk());
    EXPECT_EQ(taken->shape, Shape({3, 1, 2}));
  }
}

TEST(ParamDeclTest, WhatIsReadTakesTheDeclaredDimsOfOne) {
  const auto dims = [](const Shape& found, std::vector<int64_t> declared, bool written = false) {
    const auto tensor = AsDeclared(Filled(DType::kFloat32, found),
                                   {"p", DType::kFloat32, std::move(declared), written});
    EXPECT_THAT(tensor.status(), IsOk());
    return std::vector<int64_t>(tensor->shape.begin(), tensor->shape.end());
  };
  using Dims = std::vector<int64_t>;
  EXPECT_EQ(dims({}, {1}), Dims{1});
  EXPECT_EQ(dims({1, 4}, {4}), Dims{4});
  EXPECT_EQ(dims({1, 0}, {0}), Dims{0});
  EXPECT_EQ(dims({1, 4}, {-1, 4}), (Dims{1, 4}));
  EXPECT_EQ(dims({1, 4}, {4}, /*written=*/true), (Dims{1, 4}));
  EXPECT_EQ(dims({}, {1}, /*written=*/true), Dims{1});
  EXPECT_EQ(dims({1}, {}, /*written=*/true), Dims{});
  const auto fails = [](const Shape& found, std::vector<int64_t> declared) {
    return AsDeclared(Filled(DType::kFloat32, found), {"p", DType::kFloat32, std::move(declared)})
        .status();
  };
  EXPECT_THAT(fails({4, 1}, {1, 4}), FailsWith(kInvalid, "the file has float32[4,1]"));
  EXPECT_THAT(fails({}, {-1}), FailsWith(kInvalid, "declares float32[-1]"));
  EXPECT_THAT(fails({1, 4}, {-1}), FailsWith(kInvalid, "declares float32[-1]"));
  EXPECT_THAT(fails({4}, {2, 2}), FailsWith(kInvalid, "declares float32[2,2]"));
  EXPECT_THAT(fails({4}, {4, 1, 1, 1, 1, 1, 1, 1, 1, 1}), FailsWith(kInvalid, "declares"));
}

DType Becomes(DType found, DType declared, bool quantised = false) {
  const auto tensor = AsDeclared(
      Filled(found, {2}), {.name = "p", .dtype = declared, .dims = {2}, .quantised = quantised});
  return tensor.ok() ? tensor->dtype : DType::kUndefined;
}

TEST(ParamDeclTest, WhatIsReadTakesTheDeclaredDTypeOfMixedPrecision) {
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    EXPECT_EQ(Becomes(half, DType::kFloat32), DType::kFloat32);
    EXPECT_EQ(Becomes(DType::kFloat32, half), half);
  }
  EXPECT_EQ(Becomes(DType::kFloat64, DType::kFloat32), DType::kUndefined);
  EXPECT_EQ(Becomes(DType::kFloat32, DType::kFloat64), DType::kUndefined);
  EXPECT_EQ(Becomes(DType::kFloat16, DType::kBFloat16), DType::kUndefined);
}

TEST(ParamDeclTest, WholeNumbersAreWeightsOfQuantisedProgramsAlone) {
  for (const DType whole : {DType::kInt8, DType::kInt16}) {
    EXPECT_EQ(Becomes(whole, DType::kFloat32, /*quantised=*/true), DType::kFloat32);
    EXPECT_EQ(Becomes(whole, DType::kFloat32), DType::kUndefined);
  }
  EXPECT_EQ(Becomes(DType::kInt64, DType::kFloat32, true), DType::kUndefined);
  EXPECT_EQ(Becomes(DType::kInt8, DType::kFloat16, true), DType::kUndefined);
  EXPECT_EQ(Becomes(DType::kFloat32, DType::kInt8, true), DType::kUndefined);
  const auto quantised = [](const std::string& op) {
    const auto program =
        ParseProgram("block 0\n  var w float32[2] param\n  " + op + "(X=w) -> (Out=y)\n");
    return ParamsOf(*program)[0].quantised;
  };
  EXPECT_TRUE(quantised("fake_channel_wise_dequantize_max_abs"));
  EXPECT_TRUE(quantised("quantize_linear"));
  EXPECT_FALSE(quantised("scale"));
}

// The only parameter of a program in which `op` reads `w` with those attributes.
ParamDecl DeclaredBy(const std::string& var, const std::string& op, const std::string& attrs) {
  const auto program = ParseProgram("block 0\n  var w " + var + " param\n  " + op +
                                    "(Y=w) -> (Out=y) {" + attrs + "}\n");
  EXPECT_THAT(program.status(), IsOk());
  return ParamsOf(*program)[0];
}

TEST(ParamDeclTest, WholeNumbersAreMultipliedByTheScalesThatAnOpHasForThem) {
  Tensor whole = Filled(DType::kInt8, {2, 3});
  for (int8_t i = 0; i < 6; ++i) whole.mutable_data<int8_t>()[i] = i;
  const auto read = [&](const std::string& op, const std::string& attrs) {
    whole.shape = op == "conv2d" ? Shape{2, 3, 1, 1} : Shape{2, 3};
    const std::string type = op == "conv2d" ? "float32[2,3,1,1]" : "float32[2,3]";
    const auto tensor = AsDeclared(whole, DeclaredBy(type, op, attrs));
    EXPECT_THAT(tensor.status(), IsOk());
    return std::vector<float>(tensor->data<float>(), tensor->data<float>() + 6);
  };
  EXPECT_THAT(read("mul", "quantization_type=\"post_weight_abs_max\", w_quant_scale=[0.5]"),
              ElementsAre(0, 0.5, 1, 1.5, 2, 2.5));
  const std::string by_channel = "quantization_type=\"post_weight_channel_wise_abs_max\", ";
  EXPECT_THAT(read("mul", by_channel + "w_quant_scale=[1.0, 2.0, 0.5]"),
              ElementsAre(0, 2, 1, 3, 8, 2.5));
  EXPECT_THAT(read("conv2d", by_channel + "w_quant_scale=[1.0, 2.0]"),
              ElementsAre(0, 1, 2, 6, 8, 10));
}

// Nor where other ops of the program quantise.
TEST(ParamDeclTest, ScalesThatWereCutOffToIntegersBringNothingBack) {
  const ParamDecl param = DeclaredBy(
      "float32[2,3]", "mul", "quantization_type=\"post_weight_abs_max\", w_quant_scale=[0]");
  const auto program = ParseProgram(R"(block 0
  var w float32[2,3] param
  mul(Y=w) -> (Out=y) {quantization_type="post_weight_abs_max", w_quant_scale=[0]}
  quantize_linear(X=y) -> (Y=z)
)");
  ASSERT_THAT(program.status(), IsOk());
  EXPECT_FALSE(ParamsOf(*program)[0].quantised);
  EXPECT_THAT(AsDeclared(Filled(DType::kInt8, {2, 3}), param).status(),
              FailsWith(kInvalid, "the file has int8[2,3], the program declares float32[2,3]"));
}

TEST(ParamDeclTest, ScalesAreForWholeNumbersAloneAndHaveToFit) {
  const ParamDecl param = DeclaredBy(
      "float32[2,3]", "mul",
      "quantization_type=\"post_weight_channel_wise_abs_max\", w_quant_scale=[1.0, 2.0]");
  EXPECT_THAT(AsDeclared(Filled(DType::kFloat32, {2, 3}), param).status(), IsOk());
  EXPECT_THAT(AsDeclared(Filled(DType::kInt16, {2, 3}), param).status(),
              FailsWith(kInvalid, "by 2 scales, which do not fit [2,3]"));
}

TEST(ParamDeclTest, WhatIsUnusedStaysAsItIs) {
  const auto tensor =
      AsDeclared(Filled(DType::kFloat32, {2}),
                 {.name = "p", .dtype = DType::kFloat16, .dims = {2}, .unused = true});
  ASSERT_THAT(tensor.status(), IsOk());
  EXPECT_EQ(tensor->dtype, DType::kFloat32);
}

TEST(ParamDeclTest, ConvertsValues) {
  Tensor tensor = Filled(DType::kInt16, {3});
  const std::vector<int16_t> whole = {-32768, 5, 32767};
  std::copy(whole.begin(), whole.end(), tensor.mutable_data<int16_t>());
  const auto wide = Converted(tensor, DType::kFloat32);
  ASSERT_THAT(wide.status(), IsOk());
  EXPECT_THAT(absl::MakeConstSpan(wide->data<float>(), 3), ElementsAre(-32768, 5, 32767));
  const auto half = Converted(*wide, DType::kFloat16);
  ASSERT_THAT(half.status(), IsOk());
  EXPECT_EQ(static_cast<float>(half->data<float16>()[1]), 5);
  EXPECT_EQ(static_cast<float>(half->data<float16>()[2]), 32768);  // rounded to nearest
}

}  // namespace
}  // namespace interp::param_decl_test
