// Runs the cases of tests/passes/backward/*.txt: a program in, the program with its backward part
// and the gradients of the parameters out. Keys: `loss`, `no_grad`, `sources`.
#include "passes/train/append_backward.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/program_parse.h"
#include "core/program_print.h"
#include "passes/verify.h"
#include "tests/testing/fake_ops.h"
#include "tests/testing/text_cases.h"

namespace interp {
namespace {

using testing::TextCase;

std::vector<std::string> ValuesOrNone(const TextCase& c, absl::string_view key) {
  return c.Values(key).value_or(std::vector<std::string>());
}

absl::StatusOr<std::string> RunCase(const TextCase& c) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(c.in));
  const BackwardOptions options{.loss = c.Values("loss")->front(),
                                .no_grad = ValuesOrNone(c, "no_grad"),
                                .sources = ValuesOrNone(c, "sources")};
  INTERP_ASSIGN_OR_RETURN(const BackwardProgram result,
                          AppendBackward(std::move(program), options, testing::FakeOps()));
  INTERP_RETURN_IF_ERROR(VerifyStructure(result.program));
  std::string text = ToText(result.program);
  for (const SourceGradient& found : result.gradients) {
    absl::StrAppend(&text, "gradient of ", result.program.NameOf(found.source), ": ",
                    result.program.NameOf(found.gradient), "\n");
  }
  return text;
}

class AppendBackwardTest : public ::testing::TestWithParam<std::string> {};

TEST_P(AppendBackwardTest, Matches) { testing::CheckTextCases(GetParam(), RunCase); }

// Times in seconds would be those of minutes if they grew with the square.
TEST(LargeProgramsTest, AreDifferentiatedInLinearTime) {
  constexpr int kReaders = 30000;
  std::string text =
      "block 0\n"
      "  var w float32[4] persistable parameter\n"
      "  var loss float32[]\n"
      "  relu(X=w) -> (Out=h)\n";
  std::string names;
  for (int i = 0; i < kReaders; ++i) {
    absl::StrAppend(&text, "  var v", i, " float32[4]\n");
    absl::StrAppend(&names, i == 0 ? "" : ", ", "v", i);
  }
  for (int i = 0; i < kReaders; ++i) absl::StrAppend(&text, "  relu(X=h) -> (Out=v", i, ")\n");
  absl::StrAppend(&text, "  split(X=h) -> (Out=[", names, "])\n");
  // From the last to the first: nothing of it is the loss of this run.
  for (int i = kReaders - 1; i > 0; --i) {
    absl::StrAppend(&text, "  relu(X=v", i - 1, ") -> (Out=v", i, ")\n");
  }
  absl::StrAppend(&text, "  mean(X=v1) -> (Out=loss)\n");
  absl::StatusOr<Program> program = ParseProgram(text);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto result = AppendBackward(*std::move(program), {.loss = "loss"}, testing::FakeOps());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->gradients.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Files, AppendBackwardTest,
                         ::testing::ValuesIn(testing::TextCaseFiles("tests/passes/backward")),
                         [](const auto& info) { return testing::TextCaseName(info.param); });

}  // namespace
}  // namespace interp
