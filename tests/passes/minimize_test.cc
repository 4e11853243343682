// That training makes what it should is tests/kernels' matter; here: what Minimize refuses.
#include "passes/train/minimize.h"

#include <gtest/gtest.h>

#include "passes/train/recompute.h"
#include "tests/testing/fake_ops.h"
#include "tests/testing/matchers.h"
#include "tests/testing/program_text.h"

namespace interp::testing::minimize_test {
namespace {

Program Forward(absl::string_view ops) {
  return Parse(
      absl::StrCat("block 0\n  var w float32[4] persistable parameter\n  var h float32[4]\n"
                   "  var loss float32[]\n",
                   ops, "  mean(X=h) -> (Out=loss)\n"));
}

// Nobody has looked at programs that were loaded.
std::vector<Program> Wrong() {
  std::vector<Program> programs(1);
  programs.push_back(Forward("  relu() -> (Out=h)\n"));
  programs.push_back(Forward("  relu(X=w, Z=w) -> (Out=h)\n"));
  programs.push_back(Forward("  relu(X=w) -> (Out=h)\n"));
  programs.back().blocks[0].ops[0].inputs[0].args[0] = 1000;
  programs.push_back(Forward("  relu(X=w) -> (Out=h)\n"));
  programs.back().blocks[0].vars[0].id = -7;
  programs.push_back(Forward("  relu(X=nowhere) -> (Out=h)\n"));
  return programs;
}

TEST(MinimizeTest, ProgramsThatAreNotValidAreRefused) {
  for (const Program& program : Wrong()) {
    const MinimizeOptions options{.backward = {.loss = "loss"}, .optimizer = {}};
    EXPECT_THAT(Minimize(program, {}, options, FakeOps()).status(),
                FailsWith(absl::StatusCode::kInvalidArgument, ""));
    EXPECT_THAT(AppendBackward(program, {.loss = "loss"}, FakeOps()).status(),
                FailsWith(absl::StatusCode::kInvalidArgument, ""));
    EXPECT_THAT(Recompute(program, {"h"}, FakeOps()).status(),
                FailsWith(absl::StatusCode::kInvalidArgument, ""));
  }
}

TEST(MinimizeTest, SoAreStartupPrograms) {
  Program startup = Parse("block 0\n  var w float32[4] persistable parameter\n");
  startup.blocks[0].vars[0].id = 1000;
  const MinimizeOptions options{.backward = {.loss = "loss"}, .optimizer = {}};
  EXPECT_THAT(Minimize(Forward("  relu(X=w) -> (Out=h)\n"), startup, options, FakeOps()).status(),
              FailsWith(absl::StatusCode::kInvalidArgument, "startup program"));
}

}  // namespace
}  // namespace interp::testing::minimize_test
