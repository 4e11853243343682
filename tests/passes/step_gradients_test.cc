#include "passes/import/step_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "core/program_print.h"
#include "tests/testing/matchers.h"

namespace interp::step_gradients_test {
namespace {

using testing::FailsWith;
using ::testing::HasSubstr;
using testing::IsOk;

constexpr const char* kText = R"(block 0
  var o float32[2,1]
  var o@GRAD float32[2,1]
  recurrent_grad(outputs=[o, lost], outputs@GRAD=[o@GRAD, @EMPTY@]) -> () {sub_block=block:2, ex_states=["m"], states=["s"]}
block 1 parent=0
  var m float64[3]
  var s float64[3]
  var o float32[1]
block 2 parent=0 forward=1
  var m@GRAD float32[7]
)";

TEST(StepGradientsTest, AreDeclaredOnceAndLikeTheirValues) {
  const absl::StatusOr<Program> program = DeclareStepGradients(*ParseProgram(kText));
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(ToText(*program), HasSubstr(R"(block 2 parent=0 forward=1
  var m@GRAD float32[7]
  var s@GRAD float64[3]
  var o@GRAD float32[1]
)"));
  const absl::StatusOr<Program> again = DeclareStepGradients(*program);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(ToText(*again), ToText(*program));
}

TEST(StepGradientsTest, AnotherBlockIsAnError) {
  EXPECT_THAT(DeclareStepGradients(
                  *ParseProgram("block 0\n  recurrent_grad() -> () {sub_block=block:7}\n")),
              FailsWith(absl::StatusCode::kInvalidArgument, "block"));
}

}  // namespace
}  // namespace interp::step_gradients_test
