#include "kernels/util/read_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/edit_op.h"

namespace interp::testing::read_choice_test {
namespace {

using ::testing::HasSubstr;

Op OpWith(const char* mode) {
  Op op;
  op.type = "pad";
  if (mode != nullptr) SetAttr(op, "mode", std::string(mode));
  return op;
}

int Read(AttrReader& reader) {
  return ReadChoice<int>(reader, "mode", {{"none", 3}, {"edge", 5}, {"wrap", 7}});
}

TEST(ReadChoice, IsTheValueOfTheName) {
  const Op op = OpWith("wrap");
  AttrReader reader(op);
  EXPECT_EQ(Read(reader), 7);
  EXPECT_TRUE(reader.status().ok());
}

TEST(ReadChoice, IsTheFirstWithoutTheAttribute) {
  const Op op = OpWith(nullptr);
  AttrReader reader(op);
  EXPECT_EQ(Read(reader), 3);
  EXPECT_TRUE(reader.status().ok());
}

TEST(ReadChoice, OfAnotherNameIsAnErrorThatListsAll) {
  const Op op = OpWith("Edge");
  AttrReader reader(op);
  EXPECT_EQ(Read(reader), 3);
  EXPECT_THAT(reader.status().message(),
              HasSubstr("attribute 'mode' is 'Edge', expected 'none', 'edge' or 'wrap'"));
}

TEST(ReadChoice, MayHaveOneName) {
  const Op op = OpWith("max");
  AttrReader reader(op);
  ReadChoiceIndex(reader, "mode", {"sum"});
  EXPECT_THAT(reader.status().message(), HasSubstr("is 'max', expected 'sum'"));
}

}  // namespace
}  // namespace interp::testing::read_choice_test
