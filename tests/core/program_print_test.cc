#include "core/program_print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/program_parse.h"

namespace interp {
namespace {

// Every construct of the form; reads back as itself.
constexpr char kEverything[] = R"(program version=2006002
block 0
  var x float32[-1,3,32,32] lod=1 check_feed stop_gradient
  var w float32[8,3,3,3] param
  var mean float64[] persistable
  var odd int64[0] parameter
  var feed feed_minibatch persistable
  var rows selected_rows float16[4]
  var future kind77
  var later kind-5 undefined[1]
  var "a name, with blanks" bool[2]
  feed(X=feed) -> (Out=x) {col=0}
  conv2d(Input=x, Filter=w) -> (Output=y) {strides=[1,1], data_format="NCHW", groups=1} inplace(Input->Output)
  sum(X=[a, b, x@GRAD], Y=[]) -> (Out="\"\n\x7f\x01") {b=true, bools=[true,false], f=1.0, fs=[0.1,-2.5,1e-05], ss=["a","b\\"]} inplace(X[2]->Out) target
  no_args() -> ()
  while(X=x) -> (Out=x) {sub_block=block:1, blocks=blocks:[1,2], l=long:9223372036854775807, ls=longs:[-1], d=float64:0.1, ds=float64s:[1.0], v=var:x, vs=vars:["a b",y], e=[], e1=floats:[], e2=strings:[], e3=bools:[], e4=longs:[]} inplace(#7->#9)
  s() -> () {a=scalar:true, b=scalar:3, c=scalar:3.0, d=scalar:(1.0,-inf), e=scalars:[false,1,1e+300], f=inf, g=-inf, h=nan}
block 1 parent=0 forward=-1
  "strange op"(X-=a) -> (X-=y) inplace(X-->X-)
)";

TEST(ProgramPrintTest, TextReadsBackAsItself) {
  const absl::StatusOr<Program> program = ParseProgram(kEverything);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(ToText(*program), kEverything);
}

TEST(ProgramPrintTest, KeepsAttributeKinds) {
  const absl::StatusOr<Program> program = ParseProgram(
      "block 0\n  op() -> () {i=1, l=long:1, f=1.0, d=float64:1.0, b=true, is=[], fs=floats:[]}\n");
  ASSERT_TRUE(program.ok()) << program.status();
  const std::vector<Attr>& attrs = program->blocks[0].ops[0].attrs;
  EXPECT_EQ(attrs[0].value, AttrValue(int32_t{1}));
  EXPECT_EQ(attrs[1].value, AttrValue(int64_t{1}));
  EXPECT_EQ(attrs[2].value, AttrValue(1.0f));
  EXPECT_EQ(attrs[3].value, AttrValue(1.0));
  EXPECT_EQ(attrs[4].value, AttrValue(true));
  EXPECT_EQ(attrs[5].value, AttrValue(std::vector<int32_t>()));
  EXPECT_EQ(attrs[6].value, AttrValue(std::vector<float>()));
}

TEST(ProgramPrintTest, FloatsReadBackBitForBit) {
  for (const float value : {0.1f, 1.0f / 3, 1e-45f, 3.4028235e38f, -0.0f, 16777216.0f}) {
    Program program;
    Op& op = program.blocks.emplace_back().ops.emplace_back();
    op.type = "op";
    op.attrs.push_back({.name = "f", .value = value});
    const absl::StatusOr<Program> read = ParseProgram(ToText(program));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->blocks[0].ops[0].attrs[0].value, AttrValue(value));
  }
}

TEST(ProgramPrintTest, LeavesOutWhereOpsCameFrom) {
  const absl::StatusOr<Program> program = ParseProgram(
      R"(block 0
  op() -> () {op_callstack=["file.py"], op_role=1, op_device="", op_namescope="/", k=1}
  op() -> () {op_device="cpu"}
)");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(ToText(*program), R"(block 0
  op() -> () {k=1}
  op() -> () {op_device="cpu"}
)");
}

TEST(ProgramPrintTest, PrintsBrokenPrograms) {
  Program program;
  Op& op = program.blocks.emplace_back().ops.emplace_back();
  op.type = "op";
  op.inputs.push_back({.name = "X", .args = {7}});
  EXPECT_EQ(ToText(program, op), "op(X=\"no variable #7\") -> ()");
  EXPECT_TRUE(nlohmann::json::accept(ToJson(program)));
  EXPECT_THAT(ToDot(program), ::testing::HasSubstr("no variable #7"));
}

TEST(ProgramPrintTest, JsonIsValidAndComplete) {
  const absl::StatusOr<Program> program = ParseProgram(R"(block 0
  var x float32[-1,3] check_feed
  var "bad \xff\" utf8" float32[1]
  relu(X=x) -> (Out=y) {f=inf, s=scalar:(1.0,2.0), l=longs:[5]} inplace(X->Out)
)");
  ASSERT_TRUE(program.ok()) << program.status();
  const nlohmann::json json = nlohmann::json::parse(ToJson(*program));
  const nlohmann::json& block = json["blocks"][0];
  EXPECT_EQ(block["vars"][0]["dims"], nlohmann::json({-1, 3}));
  EXPECT_EQ(block["vars"][1]["name"], "bad \uFFFD\" utf8");
  const nlohmann::json& op = block["ops"][0];
  EXPECT_EQ(op["inputs"]["X"][0], "x");
  EXPECT_EQ(op["attrs"]["f"], "inf");
  EXPECT_EQ(op["attrs"]["s"], nlohmann::json({1.0, 2.0}));
  EXPECT_EQ(op["attrs"]["l"], nlohmann::json({5}));
  EXPECT_EQ(op["inplace"][0]["output"], 0);
}

TEST(ProgramPrintTest, DotLinksWritersToReaders) {
  const absl::StatusOr<Program> program = ParseProgram(R"(block 0
  mul(X=x, Y=w) -> (Out=y)
  relu(X=y) -> (Out=z)
)");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(ToDot(*program), R"(digraph program {
  subgraph cluster_b0 {
    label="block 0"
    b0_op0 [shape=box, label="mul #0"]
    b0_var0 [label="x"]
    b0_var0 -> b0_op0 [label="x"]
    b0_var1 [label="w"]
    b0_var1 -> b0_op0 [label="w"]
    b0_op1 [shape=box, label="relu #1"]
    b0_op0 -> b0_op1 [label="y"]
  }
}
)");
}

// Dumps are to be read, files are to be cut into the parts of a step.
TEST(ProgramPrintTest, FilesSayTheRolesOfOpsAndDumpsDoNot) {
  constexpr absl::string_view kText = R"(block 0
  relu(X=a) -> (Out=b)
  relu_grad(X=b) -> (Out=c) {op_role=1, op_role_var=["w","w@GRAD"]}
)";
  const absl::StatusOr<Program> program = ParseProgram(kText);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(SaveProgramText(*program), kText);
  EXPECT_THAT(ToText(*program), ::testing::Not(::testing::HasSubstr("op_role")));
}

}  // namespace
}  // namespace interp
