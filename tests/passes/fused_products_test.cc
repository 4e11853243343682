#include "passes/import/fused_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "core/program_print.h"
#include "tests/testing/matchers.h"

namespace interp::fused_products_test {
namespace {

using testing::FailsWith;
using testing::IsOk;

constexpr absl::string_view kVars = R"(block 0
  var x float32[2,5,12]
  var y float32[2,5,12]
  var r float32[2,1,1,5]
  var o float32[2,3,5,5]
)";

absl::StatusOr<Program> Split(absl::string_view ops) {
  absl::StatusOr<Program> program = ParseProgram(absl::StrCat(kVars, ops));
  EXPECT_THAT(program, IsOk());
  if (!program.ok()) return program;
  return SplitFusedProducts(*std::move(program));
}

// What becomes of the ops.
std::string Parts(absl::string_view ops) {
  const absl::StatusOr<Program> program = Split(ops);
  EXPECT_THAT(program, IsOk());
  return program.ok() ? ToText(*program).substr(kVars.size()) : "";
}

TEST(SplitFusedProductsTest, OperandsAreReshapedAndTransposedBefore) {
  EXPECT_EQ(Parts("  fused_matmul(X=x, Y=y) -> (Out=o) {fused_reshape_X=[0,0,3,4], "
                  "fused_transpose_Y=[0,2,1], trans_y=true}\n"),
            "  reshape2(X=x) -> (Out=x@FUSED_0) {shape=[0,0,3,4]}\n"
            "  transpose2(X=y) -> (Out=y@FUSED_1) {axis=[0,2,1]}\n"
            "  fused_matmul(X=x@FUSED_0, Y=y@FUSED_1) -> (Out=o) {fused_reshape_X=[], "
            "fused_transpose_Y=[], trans_y=true}\n");
}

TEST(SplitFusedProductsTest, SumsComeBeforeTheActivationAndTheScaleBehindIt) {
  EXPECT_EQ(Parts("  fc(Input=x, W=y, ResidualData=r) -> (Out=o) {activation_type=\"relu\", "
                  "fused_output_scale=0.5}\n"),
            "  fc(Input=x, W=y) -> (Out=o@FUSED_0) {activation_type=\"\", "
            "fused_output_scale=1.0}\n"
            "  fused_elementwise_add(X=o@FUSED_0, Y=r) -> (Out=o) {fuse_activation=\"relu\", "
            "fused_output_scale=0.5}\n");
}

TEST(SplitFusedProductsTest, ResultsAreScaledThenTransposedThenReshaped) {
  EXPECT_EQ(Parts("  fused_matmul(X=x, Y=y) -> (Out=o) {fused_output_scale=0.5, "
                  "fuse_activation=\"tanh\", fused_transpose_Out=[1,0], "
                  "fused_reshape_Out=[0,12]}\n"),
            "  fused_matmul(X=x, Y=y) -> (Out=o@FUSED_0) {fused_output_scale=1.0, "
            "fuse_activation=\"tanh\", fused_transpose_Out=[], fused_reshape_Out=[]}\n"
            "  scale(X=o@FUSED_0) -> (Out=o@FUSED_1) {scale=0.5}\n"
            "  transpose2(X=o@FUSED_1) -> (Out=o@FUSED_1@FUSED_2) {axis=[1,0]}\n"
            "  reshape2(X=o@FUSED_1@FUSED_2) -> (Out=o) {shape=[0,12]}\n");
}

TEST(SplitFusedProductsTest, OtherProductsStay) {
  const std::string ops =
      "  fused_matmul(X=x, Y=y) -> (Out=o) {fused_output_scale=1.0, fused_reshape_X=[]}\n"
      "  conv2d(Input=x, Filter=y, ResidualData=r) -> (Output=o)\n";
  EXPECT_EQ(Parts(ops), ops);
}

TEST(SplitFusedProductsTest, AttributesOfOtherTypesAreRefused) {
  EXPECT_THAT(Split("  fc(Input=x, W=y) -> (Out=o) {fused_output_scale=\"half\"}\n").status(),
              FailsWith(absl::StatusCode::kInvalidArgument, "fused_output_scale"));
}

}  // namespace
}  // namespace interp::fused_products_test
