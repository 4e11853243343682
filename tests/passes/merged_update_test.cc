#include "passes/train/merged_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/op_role.h"
#include "tests/testing/program_text.h"

namespace interp::merged_update_test {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> Roles(const Program& program) {
  std::vector<int32_t> roles;
  for (const Op& op : program.blocks[0].ops) roles.push_back(RoleOf(op));
  return roles;
}

constexpr const char* kMerged = R"(block 0
  var w float32[3,2] persistable
  var acc float32[3,2] persistable
  var step int32[1] persistable
  var k int32[1] persistable
  var seen int32[1] persistable
  mul(X=x, Y=w) -> (Out=h)
  increment(X=seen) -> (Out=seen)
  mul_grad(Y=w) -> (Y@GRAD=g) {op_role=1}
  accuracy(Out=h) -> (Accuracy=a)
  relu(X=h) -> (Out=r)
  increment(X=step) -> (Out=step)
  elementwise_mod(X=step, Y=k) -> (Out=step)
  equal(X=step, Y=zero) -> (Out=due)
  elementwise_add(X=acc, Y=g) -> (Out=acc) {op_role=1}
  conditional_block(Cond=due) -> () {sub_block=block:1}
  sigmoid(X=r) -> (Out=s)
block 1 parent=0
  sgd(Param=w, Grad=acc) -> (ParamOut=w) {op_role=2}
)";

TEST(MergedUpdate, TheBlockAndWhatCountsForItAreTheUpdate) {
  Program program = testing::Parse(kMerged);
  MarkMergedUpdates(program);
  EXPECT_THAT(Roles(program), ElementsAre(0, 0, 1, 0, 0, 2, 2, 2, 1, 2, 0));
}

// It runs before the program is verified.
TEST(MergedUpdate, BlocksThatAreNotThereAreLeftToTheVerifier) {
  for (const char* block : {"2", "2147483647", "-3"}) {
    Program program = testing::Parse(
        absl::StrCat(kMerged, "  while(Condition=due) -> () {sub_block=block:", block, "}\n"));
    MarkMergedUpdates(program);
    EXPECT_EQ(Roles(program)[9], 2);
    program =
        testing::Parse(absl::StrReplaceAll(kMerged, {{"block:1", absl::StrCat("block:", block)}}));
    MarkMergedUpdates(program);
    EXPECT_EQ(Roles(program)[9], 0);
  }
}

TEST(MergedUpdate, BlocksOfTheForwardPartStay) {
  Program program = testing::Parse(R"(block 0
  mul_grad(Y=w) -> (Y@GRAD=g) {op_role=1}
  less_than(X=a, Y=b) -> (Out=go)
  while(Condition=go) -> () {sub_block=block:1}
block 1 parent=0
  relu(X=x) -> (Out=y)
)");
  MarkMergedUpdates(program);
  EXPECT_THAT(Roles(program), ElementsAre(1, 0, 0));
}

}  // namespace
}  // namespace interp::merged_update_test
