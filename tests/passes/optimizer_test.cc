// Runs the cases of tests/passes/optimizer/*.txt: a program in, the program with its updates and
// the startup program of their states out. Keys: `spec`, `gradients` (parameter=gradient). Then
// runs what is appended.
#include "passes/train/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/op_role.h"
#include "core/program_parse.h"
#include "core/program_print.h"
#include "passes/verify.h"
#include "tests/testing/matchers.h"
#include "tests/testing/text_cases.h"

namespace interp::optimizer_test {
namespace {

using testing::FailsWith;
using testing::IsOk;
using testing::TextCase;

Program EmptyProgram() {
  Program program;
  program.blocks.emplace_back();
  return program;
}

std::vector<SourceGradient> Gradients(Program& main, const std::vector<std::string>& pairs) {
  std::vector<SourceGradient> gradients;
  for (const std::string& pair : pairs) {
    const std::vector<std::string> sides = absl::StrSplit(pair, '=');
    gradients.push_back({main.Intern(sides[0]), main.Intern(sides[1])});
  }
  return gradients;
}

absl::StatusOr<std::string> RunCase(const TextCase& c) {
  INTERP_ASSIGN_OR_RETURN(Program main, ParseProgram(c.in));
  Program startup = EmptyProgram();
  const std::string text = absl::StrJoin(*c.Values("spec"), ",");
  INTERP_ASSIGN_OR_RETURN(const OptimizerSpec spec, ParseOptimizerSpec(text));
  const std::vector<SourceGradient> gradients = Gradients(main, *c.Values("gradients"));
  INTERP_RETURN_IF_ERROR(AppendOptimizer(main, startup, gradients, spec));
  INTERP_RETURN_IF_ERROR(VerifyStructure(main));
  INTERP_RETURN_IF_ERROR(VerifyStructure(startup));
  return absl::StrCat(ToText(main), "startup:\n", ToText(startup));
}

class OptimizerTest : public ::testing::TestWithParam<std::string> {};

TEST_P(OptimizerTest, Matches) { testing::CheckTextCases(GetParam(), RunCase); }

INSTANTIATE_TEST_SUITE_P(Files, OptimizerTest,
                         ::testing::ValuesIn(testing::TextCaseFiles("tests/passes/optimizer")),
                         [](const auto& info) { return testing::TextCaseName(info.param); });

TEST(OptimizerOpsTest, SayWhatPartOfTrainingTheyAre) {
  absl::StatusOr<Program> main =
      ParseProgram("block 0\n  var w float32[2] param\n  var w@GRAD float32[2]\n");
  ASSERT_THAT(main, IsOk());
  Program startup = EmptyProgram();
  const auto gradients = Gradients(*main, {"w=w@GRAD"});
  ASSERT_THAT(AppendOptimizer(*main, startup, gradients, {"sgd", {{"grad_clip_norm", "1"}}}),
              IsOk());
  ASSERT_EQ(main->blocks[0].ops.size(), 2u);
  for (const Op& op : main->blocks[0].ops) {
    EXPECT_EQ(op.FindAttr("op_role")->value, AttrValue(int32_t{kOptimizeRole})) << op.type;
    EXPECT_EQ(op.FindAttr("op_role_var")->value,
              AttrValue(std::vector<std::string>{"w", "clip_by_norm_0.tmp_0"}))
        << op.type;
  }
}

TEST(OptimizerSpecTest, ReadsNamesAndValues) {
  const auto spec = ParseOptimizerSpec("momentum: learning_rate = 0.1, use_nesterov=true");
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->type, "momentum");
  ASSERT_EQ(spec->options.size(), 2u);
  EXPECT_EQ(spec->options[0].first, "learning_rate");
  EXPECT_EQ(spec->options[0].second, "0.1");
  EXPECT_EQ(spec->options[1].first, "use_nesterov");
  EXPECT_THAT(ParseOptimizerSpec("adam"), IsOk());
}

TEST(OptimizerSpecTest, RefusesWhatItDoesNotKnow) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const std::vector<std::pair<std::string, std::string>> refusals = {
      {"adamm", "no optimizer 'adamm'; nearest: 'adam', 'adamw', 'adamax'; there are: sgd "},
      {"", "no optimizer ''"},
      {"adam:beta=0.9", "optimizer 'adam' has no option 'beta'; nearest: 'beta1', 'beta2'"},
      {"lamb:weight_decay=0.1", "nearest: 'lamb_weight_decay'"},
      {"adam:beta1", "optimizer option 'beta1', expected NAME=VALUE"},
      {"adam:beta1=high", "option 'beta1' is 'high', expected a number"},
      {"adam:beta1=nan", "expected a number"},
      {"adam:lazy_mode=2", "option 'lazy_mode' is '2', expected true or false"},
      {"adam:beta1=0.9,beta1=0.8", "option 'beta1' is given twice"},
      {"rmsprop", "optimizer 'rmsprop': option 'learning_rate' is missing"},
      {"sgd:lr_schedule=exponent", "no learning-rate schedule 'exponent'; nearest: 'exponential'"},
      {"sgd:lr_schedule=cosine,epochs=3", "option 'step_each_epoch' is missing"},
      {"sgd:lr_schedule=cosine,epochs=0,step_each_epoch=1", "option 'epochs' is 0"},
      {"sgd:lr_schedule=piecewise,boundaries=1;2,values=1;2", "expected one more than"},
      {"sgd:lr_schedule=piecewise,boundaries=2;2,values=1;2;3", "is not ascending"},
      {"sgd:lr_schedule=piecewise,boundaries=2;x,values=1;2;3", "is 'x', expected a number"},
      {"sgd:lr_schedule=,epochs=3", "option 'lr_schedule' is empty"},
      {"sgd:warmup_steps=3", "need each other"},
      {"sgd:epochs=3", "has no option 'epochs'"},
      {"sgd:grad_clip_norm=1,grad_clip_value=2", "expected one"},
      {"sgd:grad_clip_norm=0", "option 'grad_clip_norm' is 0, expected more than 0"},
      {"sgd:weight_decay=1,l1_decay=2", "expected one"},
  };
  for (const auto& [text, message] : refusals) {
    EXPECT_THAT(ParseOptimizerSpec(text), FailsWith(invalid, message)) << text;
  }
}

}  // namespace
}  // namespace interp::optimizer_test
