// A variable that is of one dtype in one block and of another in another.
#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

absl::StatusOr<std::unique_ptr<InterpreterCore>> Create(const std::string& text,
                                                        const std::string& fetched,
                                                        const CoreOptions& options = {}) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(text));
  return InterpreterCore::Create(std::move(program), {"x", "n", "cond"}, {fetched}, nullptr,
                                 options);
}

// `v` is an integer before the branch, which writes `value` to it.
std::string Branch(const std::string& declared, const std::string& value) {
  return absl::StrCat("block 0\n  var x float32[]\n  var n int32[]\n  var cond bool[]\n  var v ",
                      declared,
                      "[]\n  var s step_scopes\n"
                      "  fill_constant() -> (Out=v) {shape=[], dtype=3, value=1.0}\n"
                      "  conditional_block(Cond=cond, Input=",
                      value,
                      ") -> (Out=v, Scope=s) {is_scalar_condition=true, sub_block=block:1}\n"
                      "block 1 parent=0\n  assign(X=",
                      value, ") -> (Out=v)\n");
}

// What a run gives, of which there are the values and the dtype.
Tensor RunOf(const std::string& text, const std::string& fetched, bool cond) {
  const auto core = Create(text, fetched);
  EXPECT_THAT(core.status(), IsOk());
  if (!core.ok()) return {};
  const auto got = (*core)->Run(
      {Tensor::Of<float>({}, {2.5F}), Tensor::Of<int32_t>({}, {7}), Tensor::Of<bool>({}, {cond})});
  EXPECT_THAT(got.status(), IsOk());
  return got.ok() ? got->front() : Tensor();
}

TEST(BranchDTypes, FloatsAreNotMadeIntegers) {
  for (const bool cond : {true, false}) {
    const Tensor v = RunOf(Branch("int64", "x"), "v", cond);
    ASSERT_EQ(v.dtype, DType::kFloat32);
    EXPECT_EQ(*v.data<float>(), cond ? 2.5F : 1.0F);
  }
}

TEST(BranchDTypes, WhatLosesNothingIsConverted) {
  EXPECT_THAT(Create(Branch("int64", "n"), "v").status(), IsOk());
  EXPECT_THAT(Create(Branch("float32", "x"), "v").status(), IsOk());
  EXPECT_THAT(Create(Branch("complex64", "x"), "v").status(), IsOk());
}

TEST(BranchDTypes, WithoutThePassFractionsAreNotCutOffEither) {
  CoreOptions options;
  options.passes.disable = {"branch_dtypes"};
  EXPECT_THAT(Create(Branch("int64", "x"), "v", options).status(),
              FailsWith(absl::StatusCode::kUnimplemented,
                        "op #0 assign: variable 'v' is int64 and is written as float32"));
}

// A loop of no trip leaves the integer that was there before.
TEST(BranchDTypes, LoopCarriesTheWiderType) {
  const std::string text =
      "block 0\n  var x float32[]\n  var n int32[]\n  var cond bool[]\n  var v int64[]\n"
      "  var w float32[]\n  var s step_scopes\n"
      "  fill_constant() -> (Out=v) {shape=[], dtype=3, value=3.0}\n"
      "  while(Condition=cond, X=[v, x]) -> (Out=[v, cond], StepScopes=s) {sub_block=block:1}\n"
      "  scale(X=v) -> (Out=w) {scale=2.0}\n"
      "block 1 parent=0\n  var t int64[]\n"
      "  elementwise_add(X=x, Y=v) -> (Out=t)\n  assign(X=t) -> (Out=v)\n"
      "  fill_constant() -> (Out=cond) {shape=[], dtype=0, value=0.0}\n";
  EXPECT_EQ(*RunOf(text, "w", true).data<float>(), 11.0F);
  EXPECT_EQ(*RunOf(text, "w", false).data<float>(), 6.0F);
}

TEST(BranchDTypes, ElementsOfAnArrayAreOfOneType) {
  const std::string text =
      "block 0\n  var x float32[]\n  var n int32[]\n  var cond bool[]\n"
      "  var a lod_tensor_array int32[]\n  var i int64[]\n  var j int64[]\n  var e int32[]\n"
      "  fill_constant() -> (Out=i) {shape=[], dtype=3, value=0.0}\n"
      "  fill_constant() -> (Out=j) {shape=[], dtype=3, value=1.0}\n"
      "  write_to_array(X=n, I=i) -> (Out=a)\n  write_to_array(X=x, I=j) -> (Out=a)\n"
      "  read_from_array(X=a, I=i) -> (Out=e)\n";
  const Tensor e = RunOf(text, "e", true);
  ASSERT_EQ(e.dtype, DType::kFloat32);
  EXPECT_EQ(*e.data<float>(), 7.0F);
}

// What a program computes of integers that it has made of floats has gradients, too, which Paddle
// gives back as integers.
TEST(BranchDTypes, GradientsPassThroughIntegers) {
  const std::string text =
      "block 0\n  var x float32[]\n  var n int32[]\n  var cond bool[]\n  var k int64[]\n"
      "  var g int64[]\n  var dk int64[]\n  var dx float32[]\n"
      "  cast(X=x) -> (Out=k) {in_dtype=5, out_dtype=3}\n"
      "  cast(X=n) -> (Out=g) {in_dtype=2, out_dtype=3}\n"
      "  elementwise_mul_grad(X=k, Y=k, Out@GRAD=g) -> (X@GRAD=dk)\n"
      "  cast(X=dk) -> (Out=dx) {in_dtype=3, out_dtype=5}\n";
  EXPECT_EQ(*RunOf(text, "dx", true).data<float>(), 14.0F);
  const Tensor dk = RunOf(text, "dk", true);
  ASSERT_EQ(dk.dtype, DType::kInt64);
  EXPECT_EQ(*dk.data<int64_t>(), 14);
}

// An output that select_output leaves without a value is not computed in 16 bits.
TEST(BranchDTypes, WhatHoldsNoValueIsNotReduced) {
  CoreOptions options;
  options.passes.enable = {"bf16"};
  const auto core = Create(
      "block 0\n  var x float32[2,2]\n  var n int32[1]\n  var cond bool[]\n  var p float32[2,2]\n"
      "  var a float32[2,2]\n  var b float32[2,2]\n  var y float32[2,2]\n"
      "  matmul_v2(X=x, Y=x) -> (Out=p)\n  select_output(X=p, Mask=n) -> (Out=[a, b])\n"
      "  select_input(X=[a, b], Mask=n) -> (Out=y)\n",
      "y", options);
  ASSERT_THAT(core.status(), IsOk());
  const auto got = (*core)->Run({Tensor::Of<float>({2, 2}, {1, 2, 3, 4}),
                                 Tensor::Of<int32_t>({1}, {1}), Tensor::Of<bool>({}, {true})});
  ASSERT_THAT(got.status(), IsOk());
  EXPECT_THAT(std::vector<float>(got->front().data<float>(), got->front().data<float>() + 4),
              ::testing::ElementsAre(7, 10, 15, 22));
}

}  // namespace
}  // namespace interp::testing
