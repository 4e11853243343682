// Which ops hand the LoD of X on, as those of Paddle 2.6.2 do.
#include "tests/kernels/op_runs.h"

namespace interp::testing::lod_of_results_test {
namespace {

Lod LodOf(OpRun run) {
  run.inputs = {{"X", TensorOf<float>({3, 2}, {1, -2, 3, -4, 5, 6}, {{0, 1, 3}})}};
  return OutputsOf(run)[0].lod;
}

TEST(LodOfResultsTest, SomeOpsKeepNone) {
  EXPECT_EQ(LodOf({"relu", {}, {"Out"}}), (Lod{{0, 1, 3}}));
  for (const char* type : {"reduce_mean", "reduce_sum", "reduce_max"}) {
    EXPECT_EQ(LodOf({type, {}, {"Out"}, "dim=[1]"}), Lod()) << type;
  }
  EXPECT_EQ(LodOf({"norm", {}, {"Out", "Norm"}, "axis=1"}), Lod());
  for (const char* type : {"abs", "isnan_v2", "isinf_v2", "isfinite_v2"}) {
    EXPECT_EQ(LodOf({type, {}, {"Out"}}), Lod()) << type;
  }
}

// Of images, which have rows as well.
TEST(LodOfResultsTest, ConvolutionsKeepNone) {
  const Tensor image = Numbers({3, 4, 6, 6}, 1, {{0, 2, 3}});
  for (const char* type : {"conv2d", "conv2d_transpose"}) {
    const OpRun run = {type, {{"Input", image}, {"Filter", Numbers({4, 4, 3, 3}, 2)}}, {"Output"}};
    EXPECT_EQ(OutputsOf(run)[0].lod, Lod()) << type;
  }
}

// Not even that which the result has got from others since the run before.
TEST(LodOfResultsTest, ConvolutionsClearTheLodOfTheRunBefore) {
  const auto program = ParseProgram(R"(block 0
  var x float32[3,2,4,4]
  var w float32[2,2,1,1]
  var y float32[3,2,4,4]
  var z float32[3,2,4,4]
  conv2d(Input=x, Filter=w) -> (Output=y)
  relu(X=y) -> (Out=z)
  lod_reset(X=y) -> (Out=y) {target_lod=[0, 1, 3]}
)");
  ASSERT_THAT(program, IsOk());
  const auto core = InterpreterCore::Create(*program, {"x", "w"}, {"z", "y"}, nullptr);
  ASSERT_THAT(core, IsOk());
  for (int run = 0; run < 2; ++run) {
    const auto results = (*core)->Run({Numbers({3, 2, 4, 4}, 1), Numbers({2, 2, 1, 1}, 2)});
    ASSERT_THAT(results, IsOk());
    EXPECT_EQ((*results)[0].lod, Lod()) << "run " << run;
    EXPECT_EQ((*results)[1].lod, (Lod{{0, 1, 3}})) << "run " << run;
  }
}

TEST(LodOfResultsTest, WhatIsSetInPlaceKeepsItsOwn) {
  const auto program = ParseProgram(R"(block 0
  var x float32[3,2]
  set_value(Input=x) -> (Out=x) {axes=longs:[0], starts=longs:[0], ends=longs:[1], steps=longs:[1], shape=longs:[1], dtype=5, fp32_values=[1.0]}
)");
  ASSERT_THAT(program, IsOk());
  const auto core = InterpreterCore::Create(*program, {"x"}, {"x"}, nullptr);
  ASSERT_THAT(core, IsOk());
  const auto results = (*core)->Run({Numbers({3, 2}, 1, {{0, 1, 3}})});
  ASSERT_THAT(results, IsOk());
  EXPECT_EQ((*results)[0].lod, (Lod{{0, 1, 3}}));
}

// Whose LoD the gradient by X has.
TEST(LodOfResultsTest, GradientsHaveThatOfPaddle) {
  const Lod of_x = {{0, 1, 3}};
  const Lod of_grad = {{0, 2, 3}};
  const Tensor x = Numbers({3, 3}, 1, of_x);
  const Tensor grad = Numbers({3, 3}, 2, of_grad);
  const Tensor y = Numbers({3, 3}, 3);
  const auto lod_of = [&](const char* type) {
    const OpRun run = {type, {{"X", x}, {"Y", y}, {"Out", y}, {"Out@GRAD", grad}}, {"X@GRAD"}};
    return OutputsOf(run)[0].lod;
  };
  for (const char* type : {"elementwise_sub_grad", "matmul_v2_grad", "mul_grad"}) {
    EXPECT_EQ(lod_of(type), of_x) << type;
  }
  for (const char* type :
       {"elementwise_add_grad", "elementwise_mul_grad", "elementwise_max_grad"}) {
    EXPECT_EQ(lod_of(type), of_grad) << type;
  }
  EXPECT_EQ(lod_of("matmul_grad"), Lod());
  const OpRun rolled = {
      "roll_grad", {{"Out@GRAD", grad}, {"X", x}}, {"X@GRAD"}, "shifts=[1], axis=[0]"};
  EXPECT_EQ(OutputsOf(rolled)[0].lod, of_x);
}

}  // namespace
}  // namespace interp::testing::lod_of_results_test
