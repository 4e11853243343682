// Runs the cases of tests/passes/loss_scaling/*.txt: a training program in, the program with its
// scale and the startup program of its states out. Key: `scale`, constant or dynamic (default).
#include "passes/train/loss_scaling.h"

#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "core/program_print.h"
#include "passes/verify.h"
#include "tests/testing/fake_ops.h"
#include "tests/testing/matchers.h"
#include "tests/testing/text_cases.h"

namespace interp::loss_scaling_test {
namespace {

using testing::FailsWith;
using testing::TextCase;

absl::StatusOr<std::string> RunCase(const TextCase& c) {
  INTERP_ASSIGN_OR_RETURN(Program main, ParseProgram(c.in));
  Program startup;
  LossScalingOptions options;
  const auto scale = c.Values("scale");
  if (scale.has_value()) options = {.initial = 128, .dynamic = scale->front() == "dynamic"};
  INTERP_RETURN_IF_ERROR(AddLossScaling(main, startup, options, testing::FakeOps()));
  INTERP_RETURN_IF_ERROR(VerifyStructure(main));
  INTERP_RETURN_IF_ERROR(VerifyStructure(startup));
  return absl::StrCat(ToText(main), "startup:\n", ToText(startup));
}

class LossScalingTest : public ::testing::TestWithParam<std::string> {};

TEST_P(LossScalingTest, Matches) { testing::CheckTextCases(GetParam(), RunCase); }

INSTANTIATE_TEST_SUITE_P(Files, LossScalingTest,
                         ::testing::ValuesIn(testing::TextCaseFiles("tests/passes/loss_scaling")),
                         [](const auto& info) { return testing::TextCaseName(info.param); });

absl::Status Scale(const std::string& ops) {
  absl::StatusOr<Program> main = ParseProgram(
      "block 0\n  var w float32[2] param\n  var w@GRAD float32[2]\n  var rows selected_rows "
      "float32[2]\n  var lr float32[1] persistable\n  var loss@GRAD float32[1]\n" +
      ops);
  if (!main.ok()) return main.status();
  Program startup;
  return AddLossScaling(*main, startup, {}, testing::FakeOps());
}

TEST(LossScalingRefusalTest, SaysWhatIsMissing) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const std::string seed = "  fill_constant() -> (Out=loss@GRAD) {op_role=257}\n";
  const std::string backward = "  scale(X=loss@GRAD) -> (Out=w@GRAD) {op_role=1}\n";
  const std::string update =
      "  sgd(Param=w, Grad=w@GRAD, LearningRate=lr) -> (ParamOut=w) {op_role=2}\n";
  EXPECT_THAT(Scale(backward + update), FailsWith(invalid, "no op starts the backward part"));
  EXPECT_THAT(Scale(seed + backward), FailsWith(invalid, "no op updates a parameter"));
  EXPECT_THAT(Scale(seed + update + backward),
              FailsWith(invalid, "op #2 scale: is of the backward part, but the update begins at"));
  EXPECT_THAT(Scale(seed + update), FailsWith(invalid, "no update reads a gradient"));
  EXPECT_THAT(Scale(seed + "  scale(X=loss@GRAD) -> (Out=rows) {op_role=1}\n" +
                    "  sgd(Param=w, Grad=rows, LearningRate=lr) -> (ParamOut=w) {op_role=2}\n"),
              FailsWith(invalid, "gradient 'rows' is not declared as a tensor of float32"));
}

}  // namespace
}  // namespace interp::loss_scaling_test
