// Runs the cases of tests/passes/*.txt: a program in, the program after some passes out. The form
// of the files is in tests/testing/text_cases.h; their keys are `passes`, and `feeds` and
// `fetches`, which may be left out.
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "core/program_print.h"
#include "passes/pipeline.h"
#include "tests/testing/fake_ops.h"
#include "tests/testing/text_cases.h"

namespace interp::golden_test {
namespace {

using testing::TextCase;

absl::StatusOr<std::string> RunCase(const TextCase& c) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(c.in));
  const PassContext context{testing::FakeOps(), c.Values("feeds"), c.Values("fetches")};
  std::vector<Pass> passes;
  for (const std::string& name : c.Values("passes").value_or(std::vector<std::string>())) {
    for (const Pass& pass : AllPasses()) {
      if (pass.name == name) passes.push_back(pass);
    }
    if (passes.empty() || passes.back().name != name) return NotFound("no pass '", name, "'");
  }
  INTERP_ASSIGN_OR_RETURN(const PipelineResult result,
                          RunPasses(std::move(program), context, passes));
  return ToText(result.program);
}

class PassGoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PassGoldenTest, Matches) { testing::CheckTextCases(GetParam(), RunCase); }

INSTANTIATE_TEST_SUITE_P(Files, PassGoldenTest,
                         ::testing::ValuesIn(testing::TextCaseFiles("tests/passes")),
                         [](const auto& info) { return testing::TextCaseName(info.param); });

}  // namespace
}  // namespace interp::golden_test
