// Programs that fuse_attention has to give up on.
#include "passes/fuse/fuse_attention.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/testing/fake_ops.h"
#include "tests/testing/matchers.h"
#include "tests/testing/program_text.h"

namespace interp::fuse_attention_test {
namespace {

// Attention with a sum of that many masks.
Program LongSum(int masks) {
  std::string text =
      "block 0\n  var q float32[2,4,8]\n  var k float32[2,4,8]\n  var m float32[4,4]\n"
      "  var v float32[2,4,3]\n";
  for (int i = 0; i <= masks; ++i) absl::StrAppend(&text, "  var s", i, " float32[2,4,4]\n");
  absl::StrAppend(&text, "  matmul_v2(X=q, Y=k) -> (Out=s0) {trans_y=true}\n");
  for (int i = 0; i < masks; ++i) {
    absl::StrAppend(&text, "  elementwise_add(X=s", i, ", Y=m) -> (Out=s", i + 1, ") {axis=-1}\n");
  }
  absl::StrAppend(&text, "  softmax(X=s", masks, ") -> (Out=w) {axis=-1}\n");
  absl::StrAppend(&text, "  matmul_v2(X=w, Y=v) -> (Out=y)\n");
  return testing::Parse(text);
}

TEST(FuseAttention, TakesAFewSummandsAndLeavesEndlessOnes) {
  for (const auto& [masks, joined] : {std::pair(3, true), std::pair(100000, false)}) {
    const size_t before = LongSum(masks).blocks[0].ops.size();
    const auto program = FuseAttention(LongSum(masks), {.ops = testing::FakeOps()});
    ASSERT_THAT(program, testing::IsOk());
    EXPECT_EQ(program->blocks[0].ops.size(), joined ? 1 : before);
  }
}

}  // namespace
}  // namespace interp::fuse_attention_test
