// broadcast_where gives what the sums with zeros give that paddle.where writes.
#include <gtest/gtest.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "tests/kernels/op_runs.h"
#include "tests/kernels/run_text.h"

namespace interp::testing::broadcast_where_test {
namespace {

// paddle.where of a condition, which is where numbers are positive, and two values.
std::string TextOf(const Shape& c, const Shape& x, const Shape& y, absl::string_view dtype) {
  const int number = dtype == "float32" ? 5 : 6;
  return absl::StrCat("block 0\n  var c float32", ToString(c), "\n  var p bool", ToString(c),
                      "\n  var x ", dtype, ToString(x), "\n  var y ", dtype, ToString(y),
                      "\n  var e bool", ToString(c), "\n  var z ", dtype, "[-1]\n  var o ", dtype,
                      "[-1]", R"(
  fill_any_like(X=c) -> (Out=n) {value=0.0}
  greater_than(X=c, Y=n) -> (Out=p) {axis=-1}
  fill_any_like(X=x) -> (Out=a) {value=0.0}
  fill_any_like(X=y) -> (Out=b) {value=0.0}
  fill_any_like(X=p) -> (Out=e) {value=0.0, dtype=0}
  cast(X=e) -> (Out=g) {in_dtype=0, out_dtype=)",
                      number, R"(}
  cast(X=p) -> (Out=h) {in_dtype=0, out_dtype=)",
                      number, R"(}
  elementwise_add(X=a, Y=b) -> (Out=d) {axis=-1}
  elementwise_add(X=d, Y=g) -> (Out=z) {axis=-1}
  elementwise_add(X=x, Y=z) -> (Out=bx) {axis=-1}
  elementwise_add(X=y, Y=z) -> (Out=by) {axis=-1}
  elementwise_add(X=h, Y=z) -> (Out=i) {axis=-1}
  cast(X=i) -> (Out=bp) {in_dtype=)",
                      number, R"(, out_dtype=0}
  where(Condition=bp, X=bx, Y=by) -> (Out=o)
)");
}

template <typename T>
void ExpectSame(const Shape& c, const Shape& x, const Shape& y) {
  SCOPED_TRACE(absl::StrCat(ToString(c), ToString(x), ToString(y)));
  const std::string text = TextOf(c, x, y, std::is_same_v<T, float> ? "float32" : "float64");
  const NamedTensors feeds = {
      {"c", Numbers<float>(c, 1)}, {"x", Numbers<T>(x, 2)}, {"y", Numbers<T>(y, 3)}};
  const RanText<T> expected = RunTextWithout<T>("fuse_where", text, feeds, "o");
  for (const int threads : {1, 3}) {
    CoreOptions options;
    options.num_threads = threads;
    const RanText<T> ran = RunText<T>(text, feeds, "o", options);
    EXPECT_EQ(ran.shape, expected.shape);
    EXPECT_EQ(ran.values, expected.values);
    EXPECT_EQ(ran.ops.size(), expected.ops.size() - 11);
  }
}

TEST(BroadcastWhere, StandsForItsPieces) {
  const std::vector<std::array<Shape, 3>> shapes = {{{{3, 4}, {3, 4}, {3, 4}}},
                                                    {{{1, 1, 5, 6}, {2, 3, 5, 6}, {}}},
                                                    {{{2, 1, 1, 6}, {2, 3, 5, 6}, {1}}},
                                                    {{{4}, {3, 1}, {2, 1, 1}}},
                                                    {{{2, 3, 1}, {1}, {3, 70}}},
                                                    {{{}, {5}, {2, 5}}},
                                                    {{{2, 1}, {2, 300}, {300}}},
                                                    {{{}, {}, {}}},
                                                    {{{1}, {1}, {1}}},
                                                    {{{2, 0}, {2, 1}, {1}}},
                                                    {{{3, 1, 4}, {1, 2, 1}, {3, 1, 1}}},
                                                    {{{40, 1}, {40, 1}, {1, 500}}}};
  for (const auto& [c, x, y] : shapes) {
    ExpectSame<float>(c, x, y);
    ExpectSame<double>(c, x, y);
  }
}

TEST(BroadcastWhere, RefusesWhatDoesNotFit) {
  const auto run = [](const Tensor& condition, const Shape& x, const Shape& y) {
    return OpRun{"broadcast_where",
                 {{"Condition", condition}, {"X", Numbers(x, 1)}, {"Y", Numbers(y, 2)}},
                 {"Out"},
                 ""};
  };
  const Tensor condition = Mask({true, false});  // [2,1]
  ExpectRefusals({{run(condition, {2}, {3}), "[2]"},
                  {run(condition, {3, 4}, {4}), "[2,1]"},
                  {run(Numbers({2}, 1), {2}, {2}), "'Condition' is float32[2], expected bool"}});
}

}  // namespace
}  // namespace interp::testing::broadcast_where_test
