// Programs that declare an image with another rank than it has.
#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/op_runs.h"

namespace interp::testing {
namespace {

constexpr const char* kRankProgram = R"(block 0
  var x float32[1,8,4,6]
  var w float32[8,8,1,1]
  var c float32[-1,8,-1,-1]
  var n float32[]
  var y float32[-1,8]
  conv2d(Input=x, Filter=w) -> (Output=c) {paddings=[0, 0], strides=[1, 1]}
  abs(X=c) -> (Out=n)
  im2sequence(X=n) -> (Out=y) {kernels=[1, 1], strides=[1, 1], paddings=[0, 0, 0, 0], out_stride=[1, 1]}
)";

// At batch 1 the squeeze drops the batch, and what is declared as an image has three dimensions.
constexpr const char* kSqueezedProgram = R"(block 0
  var x float32[-1,8,-1,-1]
  var w float32[8,8,1,1]
  var c float32[-1,8,-1,-1]
  var s float32[-1,8,-1,-1]
  var y float32[-1,8,-1,-1]
  conv2d(Input=x, Filter=w) -> (Output=c) {paddings=[0, 0], strides=[1, 1]}
  squeeze2(X=x) -> (Out=s) {axes=[]}
  elementwise_add(X=c, Y=s) -> (Out=y) {axis=-1}
)";

Tensor RowsOf(const char* text, bool optimize_layout) {
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  CoreOptions options;
  options.plan.optimize_layout = optimize_layout;
  auto core = InterpreterCore::Create(*std::move(program), {"x", "w"}, {"y"}, nullptr, options);
  EXPECT_THAT(core, IsOk());
  auto outputs = (*core)->Run({Numbers({1, 8, 4, 6}, 1), Numbers({8, 8, 1, 1}, 2)});
  EXPECT_THAT(outputs, IsOk());
  return outputs->at(0);
}

void ExpectSameRows(const char* text) {
  const Tensor plain = RowsOf(text, false);
  const Tensor last = RowsOf(text, true);
  ASSERT_EQ(plain.shape, last.shape);
  for (int64_t i = 0; i < plain.numel(); ++i) {
    ASSERT_NEAR(plain.data<float>()[i], last.data<float>()[i], 1e-5) << i;
  }
}

TEST(DeclaredRankTest, AnImageDeclaredAsNoneIsReadInItsOrder) { ExpectSameRows(kRankProgram); }

TEST(DeclaredRankTest, WhatIsDeclaredAsAnImageMayBeNone) { ExpectSameRows(kSqueezedProgram); }

}  // namespace
}  // namespace interp::testing
