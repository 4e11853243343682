#include "passes/readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "passes/feed_fetch.h"
#include "passes/verify.h"
#include "tests/testing/fake_ops.h"
#include "tests/testing/matchers.h"
#include "tests/testing/program_text.h"

namespace interp {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::IsOk;
using testing::Parse;

constexpr char kReads[] = R"(block 0
  var r reader persistable
  var b reader persistable
  var x float32[-1,4] check_feed
  var y int64[-1,1] lod=1 check_feed
  create_py_reader(blocking_queue=q) -> (Out=r) {$ATTRS}
  create_double_buffer_reader(UnderlyingReader=r) -> (Out=b)
  read(Reader=b) -> (Out=[x, y])
  elementwise_add(X=x, Y=y) -> (Out=z)
)";
constexpr char kAttrs[] =
    "shape_concat=[-1,4,-1,1], ranks=[2,2], lod_levels=[0,1], dtypes=[5,3], need_check_feed=[1,1]";

Program WithAttrs(const std::string& attrs, const std::string& more = "") {
  return Parse(absl::StrReplaceAll(kReads, {{"$ATTRS", attrs}}) + more);
}

std::vector<std::string> Data(const Program& program) {
  const absl::StatusOr<std::vector<VarId>> data = DataVars(program);
  EXPECT_THAT(data, IsOk());
  std::vector<std::string> names;
  for (const VarId id : *data) names.push_back(program.NameOf(id));
  return names;
}

TEST(Readers, WhatTheyDeclareFits) {
  EXPECT_THAT(CheckReaders(WithAttrs(kAttrs)), IsOk());
  EXPECT_THAT(CheckReaders(WithAttrs("")), IsOk()) << "the attributes of old programs";
  EXPECT_THAT(
      CheckReaders(WithAttrs("shape_concat=[4,4,-1,1], ranks=[2,2], need_check_feed=[1,1]")),
      IsOk());
  EXPECT_THAT(CheckReaders(Program()), IsOk());
}

TEST(Readers, WhatTheyDeclareDoesNotFit) {
  const auto error = [](const std::string& from, const std::string& to) {
    return CheckReaders(WithAttrs(absl::StrReplaceAll(kAttrs, {{from, to}})));
  };
  EXPECT_THAT(error("[-1,4,", "[-1,5,"),
              FailsWith(StatusCode::kInvalidArgument,
                        "block 0, op #2 read: create_py_reader: gives 'x' as float32[-1,5], which "
                        "is declared as float32[-1,4]"));
  EXPECT_THAT(error("[5,3]", "[5,2]"),
              FailsWith(StatusCode::kInvalidArgument,
                        "gives 'y' as int32[-1,1] with LoD level 1, which is declared as "
                        "int64[-1,1] with LoD level 1"));
  EXPECT_THAT(error("[0,1]", "[0,0]"),
              FailsWith(StatusCode::kInvalidArgument, "gives 'y' as int64[-1,1], which"));
  EXPECT_THAT(error("dtypes=[5,3]", "dtypes=[5,3,3]"),
              FailsWith(StatusCode::kInvalidArgument,
                        "attribute 'dtypes' has 3 elements, but 'read' has 2 outputs"));
  for (const char* ranks : {"ranks=[2,3]", "ranks=[2,1]", "ranks=[-1,5]"}) {
    EXPECT_THAT(error("ranks=[2,2]", ranks),
                FailsWith(StatusCode::kInvalidArgument,
                          "'shape_concat' has 4 elements, which are not those of 'ranks'"));
  }
  EXPECT_THAT(error("[5,3]", "\"five\""), FailsWith(StatusCode::kInvalidArgument, "'dtypes'"));
  EXPECT_THAT(CheckReaders(WithAttrs(
                  absl::StrReplaceAll(kAttrs, {{"[-1,4,", "[-1,5,"}, {"=[1,1]", "=[0,1]"}}))),
              IsOk())
      << "Paddle does not check x";
}

TEST(Readers, EachGivesOneBatchInARun) {
  const std::string more = "  read(Reader=r) -> (Out=[x, y])\n";
  EXPECT_THAT(CheckReaders(WithAttrs(kAttrs, more)),
              FailsWith(StatusCode::kUnimplemented,
                        "block 0, op #4 read: op #2 has read a batch of 'r' already; expected one "
                        "'read' of each reader"));
  const std::string another =
      "  var w float32[-1]\n"
      "  create_py_reader(blocking_queue=p) -> (Out=s)\n"
      "  read(Reader=s) -> (Out=w)\n"
      "  relu(X=w) -> (Out=v)\n";
  const Program two = WithAttrs(kAttrs, another);
  EXPECT_THAT(CheckReaders(two), IsOk());
  EXPECT_THAT(Data(two), ElementsAre("x", "y", "w"));
}

TEST(Readers, RefusesWhatCannotBeFed) {
  EXPECT_THAT(CheckReaders(Parse("block 0\n"
                                 "  create_custom_reader(UnderlyingReader=r) -> (Out=b)\n"
                                 "  read(Reader=b) -> (Out=x)\n")),
              FailsWith(StatusCode::kUnimplemented, "op #0 create_custom_reader: changes samples"));
  EXPECT_THAT(CheckReaders(Parse("block 0\n  read() -> (Out=x)\n")),
              FailsWith(StatusCode::kInvalidArgument, "'Reader' has 0 arguments, expected 1"));
  const Program inner = Parse(
      "block 0\n"
      "  var r reader persistable\n"
      "  while(X=c, Condition=c) -> (Out=c) {sub_block=block:1}\n"
      "block 1 parent=0\n"
      "  read(Reader=r) -> (Out=x)\n");
  EXPECT_THAT(VerifyOpsKnown(inner, testing::FakeOps()),
              FailsWith(StatusCode::kUnimplemented,
                        "block 1, op #0 read: readers do not run here, and only block 0 is fed"));
}

TEST(Readers, BatchesAreThereBeforeTheFirstOp) {
  constexpr char kTwo[] = R"(block 0
  var x float32[-1,4]
  read(Reader=r) -> (Out=x)
  relu(X=x) -> (Out=y)
  read(Reader=s) -> (Out=x)
)";
  EXPECT_THAT(
      CheckReaders(Parse(kTwo)),
      FailsWith(StatusCode::kUnimplemented, "op #2 read: writes 'x', which an op before it uses"));
  EXPECT_THAT(
      CheckReaders(Parse("block 0\n  read(Reader=r) -> (Out=x)\n  relu(X=x) -> (Out=y)\n")),
      FailsWith(StatusCode::kInvalidArgument, "op #0 read: output 'x' is not declared in block 0"));
}

TEST(Readers, AReadThatIsNotFedIsToldBeforeWhatMakesItsReader) {
  EXPECT_THAT(VerifyOpsKnown(WithAttrs(kAttrs), testing::FakeOps()),
              FailsWith(StatusCode::kUnimplemented, "op #2 read: "));
}

TEST(Readers, DataVarsAreThoseOfReadersAndOthers) {
  const Program program = WithAttrs(kAttrs,
                                    "  var scale float32[1] check_feed\n"
                                    "  elementwise_add(X=z, Y=scale) -> (Out=t)\n");
  EXPECT_THAT(Data(program), ElementsAre("x", "y", "scale"));
}

TEST(Readers, StartupProgramsHaveNoneLeft) {
  Program startup = Parse(
      "block 0\n"
      "  var r reader persistable\n"
      "  var f reader persistable\n"
      "  var w float32[2] persistable\n"
      "  create_py_reader(blocking_queue=q) -> (Out=r)\n"
      "  open_files() -> (Out=f)\n"
      "  fill_constant() -> (Out=w) {shape=longs:[2]}\n");
  DropReaders(startup, {});
  ASSERT_EQ(startup.blocks[0].ops.size(), 1);
  EXPECT_EQ(startup.blocks[0].ops[0].type, "fill_constant");
}

}  // namespace
}  // namespace interp
