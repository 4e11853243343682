// A convolution of groups gives what those of the parts give that fuse_groups joins.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/kernels/op_runs.h"
#include "tests/kernels/run_text.h"

namespace interp::testing::fuse_groups_test {
namespace {

struct Case {
  int parts = 2;
  int64_t in = 4;  // channels of a part
  int64_t out = 6;
  int groups = 1;
  int kernel = 1;
  absl::string_view type = "conv2d";
};

std::string ParamOf(int part) { return absl::StrCat("w", part); }

std::string TextOf(const Case& c) {
  std::string vars = absl::StrCat("block 0\n  var x float32[2,", c.parts * c.in, ",9,7]\n");
  std::string convs;
  std::vector<std::string> parts;
  std::vector<std::string> results;
  for (int i = 0; i < c.parts; ++i) {
    parts.push_back(absl::StrCat("a", i));
    results.push_back(absl::StrCat("c", i));
    absl::StrAppend(&vars, "  var a", i, " float32[2,", c.in, ",9,7]\n  var c", i, " float32[2,",
                    c.out, ",9,7]\n  var ", ParamOf(i), " float32[", c.out, ",", c.in / c.groups,
                    ",", c.kernel, ",", c.kernel, "] persistable\n");
    absl::StrAppend(&convs, "  ", c.type, "(Input=a", i, ", Filter=", ParamOf(i), ") -> (Output=c",
                    i, ") {groups=", c.groups, ", paddings=[", c.kernel / 2, ",", c.kernel / 2,
                    "]}\n");
  }
  absl::StrAppend(&vars, "  var e float32[2,", c.parts * c.out, ",9,7]\n  var y float32[2,",
                  c.parts * c.out, ",9,7]\n");
  return absl::StrCat(vars, "  split(X=x) -> (Out=[", absl::StrJoin(parts, ", "),
                      "]) {axis=1, num=", c.parts, "}\n", convs, "  concat(X=[",
                      absl::StrJoin(results, ", "),
                      "]) -> (Out=e) {axis=1}\n  relu(X=e) -> (Out=y)\n");
}

TEST(FuseGroups, GivesWhatThePartsGive) {
  const Case cases[] = {{},
                        {.parts = 3, .in = 5, .out = 7},
                        {.parts = 4, .in = 16, .out = 16, .kernel = 3},
                        {.in = 8, .out = 8, .groups = 4, .kernel = 3},
                        {.in = 8, .out = 8, .groups = 8, .kernel = 3, .type = "depthwise_conv2d"}};
  for (const Case& c : cases) {
    const std::string text = TextOf(c);
    SCOPED_TRACE(text);
    const Shape filter = {c.out, c.in / c.groups, c.kernel, c.kernel};
    NamedTensors parameters;
    for (int i = 0; i < c.parts; ++i)
      parameters.emplace_back(ParamOf(i), Numbers<float>(filter, i));
    const NamedTensors feeds = {{"x", Numbers<float>({2, c.parts * c.in, 9, 7}, 11)}};
    const auto expected = RunTextWithout<float>("fuse_groups", text, feeds, "y", parameters);
    const auto ran = RunText<float>(text, feeds, "y", {}, parameters);
    EXPECT_EQ(ran.CountOf("fused_conv2d"), 1);
    EXPECT_EQ(ran.CountOf("split") + ran.CountOf("concat") + ran.CountOf("relu"), 0);
    EXPECT_EQ(ran.shape, expected.shape);
    EXPECT_THAT(ran.values, ::testing::Pointwise(::testing::DoubleNear(1e-5), expected.values));
  }
}

}  // namespace
}  // namespace interp::testing::fuse_groups_test
