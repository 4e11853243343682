#include "passes/import/retired_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "core/program_print.h"
#include "passes/pipeline.h"
#include "tests/testing/fake_ops.h"
#include "tests/testing/matchers.h"

namespace interp::retired_slots_test {
namespace {

using testing::FailsWith;
using testing::IsOk;

// Programs below declare x, g, w and p, which is kept.
absl::StatusOr<Program> Drop(absl::string_view ops,
                             const std::optional<std::vector<std::string>>& fetches = {}) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(absl::StrCat(R"(block 0
  var x float32[2]
  var g float32[2]
  var w float32[2]
  var p float32[2] persistable
)",
                                                                     ops)));
  return DropRetiredSlots(std::move(program), {.ops = testing::FakeOps(), .fetches = fetches});
}

// The ops of the program without its retired slots, which must then be a valid one.
std::string Dropped(absl::string_view ops) {
  const absl::StatusOr<Program> program = Drop(ops);
  EXPECT_THAT(program, IsOk());
  if (!program.ok()) return "";
  EXPECT_THAT(RunPasses(*program, {.ops = testing::FakeOps()}, {}), IsOk());
  const std::string text = ToText(*program);
  const std::string last = "  var p float32[2] persistable\n";
  return text.substr(text.find(last) + last.size());
}

TEST(DropRetiredSlotsTest, GradientsOfOldReleasesListWhatTheForwardOpHas) {
  EXPECT_EQ(Dropped("  mean_grad(X=x, Out=w, Out@GRAD=g) -> (X@GRAD=d)\n"),
            "  mean_grad(X=x, Out@GRAD=g) -> (X@GRAD=d)\n");
  EXPECT_EQ(Dropped("  squeeze2_grad(X=x, XShape=w, Out=x, Out@GRAD=g) -> (X@GRAD=d)\n"),
            "  squeeze2_grad(XShape=w, Out@GRAD=g) -> (X@GRAD=d)\n");
}

TEST(DropRetiredSlotsTest, GradientsThatNothingDeclaresGo) {
  EXPECT_EQ(Dropped("  squeeze2_grad(XShape=w, XShape@GRAD=nowhere, Out@GRAD=g) -> (X@GRAD=d)\n"),
            "  squeeze2_grad(XShape=w, Out@GRAD=g) -> (X@GRAD=d)\n");
}

TEST(DropRetiredSlotsTest, OutputsGoThatNobodyNeeds) {
  EXPECT_EQ(Dropped("  roi_align_grad(X=x, ROIs=w, RoisLod=w, Out@GRAD=g) -> "
                    "(X@GRAD=d, ROIs@GRAD=e, RoisLod@GRAD=@EMPTY@)\n"),
            "  roi_align_grad(X=x, ROIs=w, Out@GRAD=g) -> (X@GRAD=d)\n");
  // What reads the second output of the first op is itself retired.
  EXPECT_EQ(Dropped("  generate_proposals(Scores=w) -> (RpnRois=r, RpnRoisLod=lod)\n"
                    "  roi_align(X=x, ROIs=r, RoisLod=lod) -> (Out=y)\n"),
            "  generate_proposals(Scores=w) -> (RpnRois=r)\n"
            "  roi_align(X=x, ROIs=r) -> (Out=y)\n");
}

TEST(DropRetiredSlotsTest, OutputsThatAreNeededAreErrors) {
  const std::string message =
      "output 'RpnRoisLod' is one of earlier releases that interp does not ";
  const std::string op = "  generate_proposals(Scores=w) -> (RpnRois=r, RpnRoisLod=lod)\n";
  EXPECT_THAT(Drop(op + "  relu(X=lod) -> (Out=y)\n"),
              FailsWith(absl::StatusCode::kUnimplemented,
                        "block 0, op #0 generate_proposals: " + message +
                            "compute, but 'lod' is read, fetched or persistable"));
  EXPECT_THAT(Drop(op, {{"lod"}}), FailsWith(absl::StatusCode::kUnimplemented, message));
  EXPECT_THAT(Drop("  generate_proposals(Scores=w) -> (RpnRois=r, RpnRoisLod=p)\n"),
              FailsWith(absl::StatusCode::kUnimplemented, message));
}

TEST(DropRetiredSlotsTest, MisspeltSlotsStay) {
  const std::string misspelt =
      "  mean_grad(X=x, Outt=w, Out@GRAD=g) -> (X@GRAD=d)\n"
      "  mean(X=x, Out=w) -> (Out=y)\n"
      "  roi_align(X=x, ROIs=w, RoiLod=w) -> (Out=z)\n"
      "  mean_grad(X=x, Out@GRAD=g) -> (X@GRAD=d, Out=y)\n"
      "  future_op_grad(X=x) -> (Y@GRAD=q)\n";
  const absl::StatusOr<Program> program = Drop(misspelt);
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(ToText(*program), ::testing::HasSubstr(misspelt));
}

TEST(DropRetiredSlotsTest, ProgramsMayBeBroken) {
  absl::StatusOr<Program> program = ParseProgram(R"(block 0
  generate_proposals(Scores=w) -> (RpnRois=r, RpnRoisLod=lod)
  relu(X=x) -> (Out=y)
)");
  ASSERT_THAT(program, IsOk());
  program->blocks[0].ops[1].inputs[0].args[0] = 99;
  EXPECT_THAT(DropRetiredSlots(*std::move(program), {.ops = testing::FakeOps()}),
              FailsWith(absl::StatusCode::kInvalidArgument, "has variable #99"));
}

TEST(DropRetiredSlotsTest, PipelinesBeginWithIt) {
  absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var x float32[2]
  var g float32[1]
  mean(X=x) -> (Out=y)
  mean_grad(X=x, Out=y, Out@GRAD=g) -> (X@GRAD=d)
)");
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(RunPipeline(*std::move(program), {testing::FakeOps(), {{"x", "g"}}, {{"d"}}}),
              IsOk());
}

}  // namespace
}  // namespace interp::retired_slots_test
