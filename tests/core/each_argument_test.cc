#include "core/each_argument.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace interp {
namespace {

using ::testing::ElementsAre;

TEST(EachArgumentTest, GoesThroughAllSlotsInOrder) {
  const std::vector<Slot> slots = {{"X", {3, 1}}, {"Y", {}}, {"Z", {2}}};
  std::vector<VarId> seen;
  for (const VarId id : EachArgument(slots)) seen.push_back(id);
  EXPECT_THAT(seen, ElementsAre(3, 1, 2));
}

TEST(EachArgumentTest, ChangesArguments) {
  std::vector<Slot> slots = {{"X", {3, 1}}, {"Z", {2}}};
  for (VarId& id : EachArgument(slots)) id += 10;
  EXPECT_THAT(slots[0].args, ElementsAre(13, 11));
  EXPECT_THAT(slots[1].args, ElementsAre(12));
}

TEST(EachArgumentTest, NamedOnesAreWithoutTheEmptyName) {
  Program program;
  const VarId a = program.Intern("a");
  const VarId empty = program.Intern(kEmptyVarName);
  const std::vector<Slot> slots = {{"X", {a, empty}}, {"Y", {empty}}, {"Z", {a}}};
  std::vector<VarId> seen;
  for (const VarId id : EachNamedArgument(program, slots)) seen.push_back(id);
  EXPECT_THAT(seen, ElementsAre(a, a));
}

}  // namespace
}  // namespace interp
