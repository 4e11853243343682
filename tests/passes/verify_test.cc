#include "passes/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/fake_ops.h"
#include "tests/testing/program_text.h"

namespace interp::verify_test {
namespace {

using ::testing::HasSubstr;
using testing::Parse;

std::string Verify(absl::string_view text) {
  return std::string(VerifyProgram(Parse(text), testing::FakeOps()).message());
}

TEST(VerifyProgramTest, AcceptsAnOrdinaryProgram) {
  EXPECT_EQ(Verify(R"(block 0
  var x float32[2]
  relu(X=x) -> (Out=y)
  batch_norm(X=y, Scale=x, Bias=x, Mean=x, Variance=x) -> (Y=z, MeanOut=@EMPTY@, VarianceOut=@EMPTY@)
  future_op(Unknown=[x, y]) -> (Slot=q)
)"),
            "");
}

TEST(VerifyProgramTest, RejectsWhatOpDefinitionsDoNotHave) {
  EXPECT_EQ(Verify("block 0\n  var x float32[2]\n  relu(Xs=x) -> (Out=y)"),
            "block 0, op #0 relu: has no input 'Xs'; nearest: 'X'");
  EXPECT_EQ(Verify("block 0\n  var x float32[2]\n  conv2d(Input=x, Filer=x) -> (Output=y)"),
            "block 0, op #0 conv2d: has no input 'Filer'; nearest: 'Filter'");
  EXPECT_EQ(Verify("block 0\n  var x float32[2]\n  conv2d(Input=x) -> (Output=y)"),
            "block 0, op #0 conv2d: input 'Filter' is missing");
  EXPECT_EQ(Verify("block 0\n  var x float32[2]\n  relu(X=[x, x]) -> (Out=y)"),
            "block 0, op #0 relu: input 'X' has 2 arguments, expected 1");
  EXPECT_EQ(Verify("block 0\n  var x float32[2]\n  split(X=x) -> (Out=[y, y])"),
            "block 0, op #0 split: has 'y' as two outputs");
}

TEST(VerifyProgramTest, RejectsInputsFromNowhere) {
  EXPECT_EQ(Verify("block 0\n  relu(X=x) -> (Out=y)"),
            "block 0, op #0 relu: input 'X' is 'x', which is not declared and which no earlier op "
            "writes");
  // A variable of a sub-block is not visible outside it.
  EXPECT_THAT(Verify(R"(block 0
  relu(X=inner) -> (Out=y)
block 1 parent=0
  var inner float32[1]
)"),
              HasSubstr("not declared"));
}

// As Paddle leaves blocks of gradients that it has dropped.
TEST(VerifyProgramTest, BlocksThatNothingRunsMayHaveInputsFromNowhere) {
  EXPECT_EQ(Verify(R"(block 0
  var x float32[2]
  relu(X=x) -> (Out=y)
block 1 parent=0
  relu(X=nowhere) -> (Out=z)
)"),
            "");
}

// Callers fill in the structs themselves, and no parser has looked at them.
TEST(VerifyProgramTest, RejectsVariablesThatCannotExist) {
  Program program = Parse("block 0\n  var x float32[2]");
  Var& x = program.blocks[0].vars[0];
  x.dims.assign(10, 1);
  EXPECT_EQ(VerifyProgram(program, testing::FakeOps()).message(),
            "block 0, variable 'x': has 10 dims, the most is 9");
  x.dims = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(VerifyProgram(program, testing::FakeOps()).message(),
            "block 0, variable 'x': dims [1099511627776,1099511627776] are too large for memory");
}

TEST(VerifyProgramTest, RejectsBrokenBlocks) {
  EXPECT_EQ(Verify(""), "program has no blocks");
  EXPECT_EQ(Verify("block 1"), "block 0 has index 1");
  EXPECT_EQ(Verify("block 0\nblock 1 parent=1"), "block 1 has parent 1, expected an earlier block");
  EXPECT_EQ(Verify("block 0 parent=0"), "block 0 has parent 0, expected -1");
  EXPECT_EQ(Verify("block 0 forward=3"), "block 0 has forward block 3, the program has 1");
  EXPECT_EQ(Verify("block 0\n  var x float32[1]\n  var x float32[1]"),
            "block 0 declares 'x' twice");
  EXPECT_EQ(Verify("block 0\n  while() -> () {sub_block=block:5}"),
            "block 0, op #0 while: refers to block 5, the program has 1");
}

TEST(VerifyProgramTest, RejectsBlocksThatRunThemselves) {
  EXPECT_EQ(Verify(R"(block 0
  op() -> () {sub_block=block:1}
block 1 parent=0
  op() -> () {sub_block=block:2}
block 2 parent=1
  op() -> () {blocks=blocks:[1]}
)"),
            "block 1 runs itself");
}

TEST(VerifyProgramTest, BoundsNesting) {
  std::string text = "block 0\n  op() -> () {sub_block=block:1}\n";
  for (int b = 1; b < 100; ++b) {
    absl::StrAppend(&text, "block ", b, " parent=0\n");
    if (b < 99) absl::StrAppend(&text, "  op() -> () {sub_block=block:", b + 1, "}\n");
  }
  EXPECT_THAT(Verify(text), HasSubstr("runs blocks more than 64 deep"));
}

TEST(VerifyProgramTest, RejectsIdsOutOfRange) {
  Program program = Parse("block 0\n  var x float32[1]\n  relu(X=x) -> (Out=y)");
  program.blocks[0].ops[0].inputs[0].args[0] = 99;
  EXPECT_EQ(VerifyStructure(program).message(),
            "block 0, op #0 relu: 'X' has variable #99, the program has 2");
  program.blocks[0].ops.clear();
  program.blocks[0].vars[0].id = -1;
  EXPECT_EQ(VerifyStructure(program).message(), "block 0 declares variable #-1, the program has 2");
}

// Programs below declare x, y, z as float32[2]; x is made by the first op.
std::string VerifyPairs(absl::string_view ops) {
  return Verify(absl::StrCat(R"(block 0
  var in float32[2]
  var w float32[2] param
  var x float32[2]
  var y float32[2]
  var z float32[2]
  var i int64[2]
  tanh(X=in) -> (Out=x)
)",
                             ops));
}

TEST(VerifyInplaceTest, AcceptsDyingInputsAndChainsOfViews) {
  EXPECT_EQ(VerifyPairs(R"(
  reshape2(X=x) -> (Out=y) inplace(X->Out)
  relu(X=y) -> (Out=z) inplace(X->Out)
)"),
            "");
  EXPECT_EQ(VerifyPairs("reshape2(X=w) -> (Out=y) inplace(X->Out)\n  relu(X=y) -> (Out=z)"), "");
}

TEST(VerifyInplaceTest, RejectsReadingWhatWasWrittenOver) {
  EXPECT_EQ(VerifyPairs("relu(X=x) -> (Out=y) inplace(X->Out)\n  relu(X=x) -> (Out=z)"),
            "block 0, op #2 relu: input 'X' is 'x', whose memory op #1 relu wrote over");
  // Through a view: y is x under another shape.
  EXPECT_EQ(VerifyPairs(R"(
  reshape2(X=x) -> (Out=y) inplace(X->Out)
  relu(X=x) -> (Out=z) inplace(X->Out)
  elementwise_add(X=z, Y=y) -> (Out=q)
)"),
            "block 0, op #3 elementwise_add: input 'Y' is 'y', whose memory op #2 relu wrote over");
  EXPECT_EQ(VerifyPairs("elementwise_add(X=x, Y=x) -> (Out=y) inplace(X->Out)"),
            "block 0, op #1 elementwise_add: writes over 'x', whose memory it reads twice");
}

TEST(VerifyInplaceTest, RejectsWritingOverMemoryFromOutside) {
  EXPECT_THAT(VerifyPairs("relu(X=in) -> (Out=y) inplace(X->Out)"),
              HasSubstr("writes over 'in', whose memory comes from outside"));
  EXPECT_THAT(VerifyPairs("relu(X=w) -> (Out=y) inplace(X->Out)"), HasSubstr("from outside"));
  EXPECT_THAT(VerifyPairs(R"(
  reshape2(X=w) -> (Out=y) inplace(X->Out)
  relu(X=y) -> (Out=z) inplace(X->Out)
)"),
              HasSubstr("op #2 relu: writes over 'y', whose memory comes from outside"));
  // Tensor arrays may share memory with what is put into them.
  EXPECT_THAT(VerifyPairs(R"(
  write_to_array(X=x) -> (Out=array)
  relu(X=x) -> (Out=y) inplace(X->Out)
)"),
              HasSubstr("from outside"));
}

TEST(VerifyInplaceTest, RejectsUpdatingAnAliasOfAParameter) {
  EXPECT_EQ(VerifyPairs(R"(
  reshape2(X=w) -> (Out=y) inplace(X->Out)
  scale(X=y) -> (Out=y)
)"),
            "block 0: 'w' is needed after the run, but op #2 scale wrote over its memory");
}

TEST(VerifyInplaceTest, RejectsPairsThatAreNone) {
  EXPECT_THAT(VerifyPairs("relu(X=x) -> (Out=y) inplace(#0->#1)"), HasSubstr("out of range"));
  EXPECT_THAT(VerifyPairs("mul(X=x, Y=w) -> (Out=y) inplace(X->Out)"),
              HasSubstr("not in the op's definition"));
  EXPECT_THAT(VerifyPairs("cast(X=x) -> (Out=i) inplace(X->Out)"),
              HasSubstr("joins float32 'x' and int64 'i'"));
  EXPECT_THAT(VerifyPairs("relu(X=x) -> (Out=w) inplace(X->Out)"),
              HasSubstr("gives memory to persistable 'w'"));
  EXPECT_THAT(VerifyPairs("relu(X=x) -> (Out=q) inplace(X->Out)"), HasSubstr("not declared"));
  EXPECT_THAT(VerifyPairs("relu(X=x) -> (Out=y) inplace(X->Out, X->Out)"),
              HasSubstr("in two in-place pairs"));
}

TEST(VerifyOpsKnownTest, NamesTheNearest) {
  const absl::Status status = VerifyOpsKnown(
      Parse("block 0\n  relu(X=x) -> (Out=y)\n  hard_swsh(X=x) -> (Out=y)"), testing::FakeOps());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("block 0, op #1 hard_swsh: no op named 'hard_swsh' is registered; nearest: "
                        "'hard_swish'"));
}

TEST(VerifyOpsKnownTest, LooksIntoSubBlocksThatCanRun) {
  constexpr absl::string_view kText = R"(block 0
  while(X=c, Condition=c) -> (Out=c) {sub_block=block:2}
block 1 parent=0
  unknown_but_unreachable() -> ()
block 2 parent=0
  relu(X=c) -> (Out=d)
)";
  EXPECT_TRUE(VerifyOpsKnown(Parse(kText), testing::FakeOps()).ok());
}

TEST(VerifyStillComputedTest, NoticesALostWriter) {
  Program program = Parse("block 0\n  relu(X=x) -> (Out=y)\n  relu(X=y) -> (Out=z)");
  const ComputedVars computed = FindComputedVars(program);
  EXPECT_TRUE(VerifyStillComputed(program, computed).ok());
  program.blocks[0].ops.erase(program.blocks[0].ops.begin());
  EXPECT_EQ(VerifyStillComputed(program, computed).message(),
            "block 0, op #0 relu: input 'X' is 'y', which no op writes any more");
}

}  // namespace
}  // namespace interp::verify_test
