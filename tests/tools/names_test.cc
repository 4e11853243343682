#include "tools/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace interp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Program WithNames(const std::vector<std::string>& names) {
  Program program;
  program.blocks.emplace_back();
  for (const std::string& name : names) program.Intern(name);
  return program;
}

TEST(ResolveNamesTest, WholeNamesGoBeforeSplitting) {
  const Program program = WithNames({"a", "b", "a,b", "c"});
  EXPECT_THAT(*ResolveNames(program, {"a,b"}), ElementsAre("a,b"));
  EXPECT_THAT(*ResolveNames(program, {"a,c", "b"}), ElementsAre("a", "c", "b"));
  EXPECT_THAT(*ResolveNames(program, {"a", "a,c"}), ElementsAre("a", "c"));
}

TEST(ResolveNamesTest, UnknownNamesGetAHint) {
  const Program program = WithNames({"softmax_0.tmp_0", "x"});
  EXPECT_EQ(ResolveNames(program, {"softmax_0.tmp_1"}).status().message(),
            "the program has no variable 'softmax_0.tmp_1'; nearest: 'softmax_0.tmp_0'");
  EXPECT_FALSE(ResolveNames(program, {""}).ok());
}

TEST(SplitAssignmentTest, NamesMayContainAnEqualsSign) {
  const Program program = WithNames({"x", "a=b"});
  EXPECT_THAT(*SplitAssignment(program, "x=dir=1/f.npy"), Pair("x", "dir=1/f.npy"));
  EXPECT_THAT(*SplitAssignment(program, "a=b=f.npy"), Pair("a=b", "f.npy"));
  EXPECT_THAT(*SplitAssignment(program, "y=f.npy"), Pair("y", "f.npy"));
  EXPECT_FALSE(SplitAssignment(program, "f.npy").has_value());
}

TEST(VariableOfFileTest, SlashesOfNamesAreUnderscoresOfFiles) {
  const Program program = WithNames({"save/scale_0", "x/1", "x_1", "y/1_2", "y_1/2"});
  EXPECT_EQ(FileStem("save/scale_0"), "save_scale_0");
  EXPECT_EQ(VariableOfFile(program, "save_scale_0"), "save/scale_0");
  EXPECT_EQ(VariableOfFile(program, "x_1"), "x_1");      // the name itself goes first
  EXPECT_EQ(VariableOfFile(program, "y_1_2"), "y_1_2");  // two candidates: neither
  EXPECT_EQ(VariableOfFile(program, "z"), "z");
}

}  // namespace
}  // namespace interp
