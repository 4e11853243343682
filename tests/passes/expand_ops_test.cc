#include "passes/import/expand_ops.h"

#include "core/expansion.h"
#include "core/program_parse.h"
#include "core/program_print.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_ops.h"

namespace interp::expand_ops_test {
namespace {

using ::testing::HasSubstr;

// Out = factor X + Y, or factor X without Y, the factor 3 by default; Rest = Y, or zeros.
absl::Status ExpandTriple(Expansion& ops) {
  const float factor = ops.attrs().Float("factor", 3);
  const VarId sum = ops.Sum({ops.Scale(ops.Input("X"), factor), ops.Input("Y")});
  ops.Set("Out", sum);
  ops.SetOrZeros("Rest", ops.Input("Y"), ops.Input("X"));
  return absl::OkStatus();
}
INTERP_REGISTER_EXPANSION(ExpansionDef{.type = "expanded_triple",
                                       .inputs = {{"X", kOptional}, {"Y", kOptional}},
                                       .outputs = {{"Out"}, {"Rest", kOptional}},
                                       .expand = ExpandTriple});

absl::StatusOr<std::string> Expanded(absl::string_view text) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(text));
  const PassContext context{testing::FakeOps(), {}, {}};
  INTERP_ASSIGN_OR_RETURN(program, ExpandOps(std::move(program), context));
  return ToText(program);
}

TEST(ExpandOpsTest, PutsThePartsInThePlaceOfTheOp) {
  EXPECT_EQ(*Expanded(R"(block 0
  before(X=x) -> (Out=y)
  expanded_triple(X=x, Y=y) -> (Out=z)
  after(X=z) -> (Out=x)
)"),
            R"(block 0
  before(X=x) -> (Out=y)
  scale(X=x) -> (Out=expanded_triple@PART3) {scale=3.0}
  sum(X=[expanded_triple@PART3, y]) -> (Out=expanded_triple@PART4)
  assign(X=expanded_triple@PART4) -> (Out=z)
  after(X=z) -> (Out=x)
)");
}

TEST(ExpandOpsTest, LeavesOutWhatIsAbsentAndGivesZerosForIt) {
  EXPECT_EQ(*Expanded(R"(block 0
block 1 parent=0
  expanded_triple(X=x, Y=@EMPTY@) -> (Out=x, Rest=r)
)"),
            R"(block 0
block 1 parent=0
  scale(X=x) -> (Out=expanded_triple@PART3) {scale=3.0}
  fill_zeros_like(X=x) -> (Out=expanded_triple@PART4)
  assign(X=expanded_triple@PART3) -> (Out=x)
  assign(X=expanded_triple@PART4) -> (Out=r)
)");
}

TEST(ExpandOpsTest, SaysWhichOutputHasNothingToBeMadeOf) {
  const absl::Status status = Expanded(R"(block 0
  expanded_triple(Y=@EMPTY@) -> (Out=z)
)")
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("block 0, op #0 expanded_triple: output 'Out' needs"));
}

TEST(ExpandOpsTest, TakesWholeNumbersForFloatsAndNothingElse) {
  EXPECT_THAT(*Expanded(R"(block 0
  expanded_triple(X=x) -> (Out=z) {factor=2}
)"),
              HasSubstr("{factor=2, scale=2.0}"));
  const absl::Status status = Expanded(R"(block 0
  expanded_triple(X=x) -> (Out=z) {factor="a"}
)")
                                  .status();
  EXPECT_THAT(status.message(), HasSubstr("op #0 expanded_triple: attribute 'factor' is of kind"));
}

// The part ROWS of Out is that of X, or X itself where that has none; Rest gets no value.
absl::Status ExpandRows(Expansion& ops) {
  const VarId rows = ops.InputPart("X", "ROWS");
  const VarId out = ops.Add("split", {{"X", rows == Expansion::kAbsent ? ops.Input("X") : rows}});
  ops.SetPart("Out", "ROWS", out);
  ops.SetPart("Out", "ENDS", ops.AlsoGives("Ends"));
  ops.LeaveOut("Rest");
  return absl::OkStatus();
}
INTERP_REGISTER_EXPANSION(ExpansionDef{.type = "expanded_rows",
                                       .inputs = {{"X"}},
                                       .outputs = {{"Out"}, {"Rest", kOptional}},
                                       .expand = ExpandRows});

TEST(ExpandOpsTest, AVariableMayStandForItsParts) {
  EXPECT_EQ(*Expanded(R"(block 0
  expanded_rows(X=x) -> (Out=y, Rest=r)
  expanded_rows(X=y) -> (Out=z)
)"),
            R"(block 0
  split(X=x) -> (Out=expanded_rows@PART4, Ends=expanded_rows@PART6)
  assign(X=expanded_rows@PART4) -> (Out=y@ROWS)
  assign(X=expanded_rows@PART6) -> (Out=y@ENDS)
  split(X=y@ROWS) -> (Out=expanded_rows@PART8, Ends=expanded_rows@PART10)
  assign(X=expanded_rows@PART8) -> (Out=z@ROWS)
  assign(X=expanded_rows@PART10) -> (Out=z@ENDS)
)");
}

}  // namespace
}  // namespace interp::expand_ops_test
