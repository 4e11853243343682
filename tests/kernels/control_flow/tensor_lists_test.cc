// Arrays as lists: slice, strided_slice and reverse of arrays, as programs made of Python functions
// have them for list[i], list[a:b] and list.pop(), and arrays stacked. Values are Paddle's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "passes/train/append_backward.h"
#include "tests/kernels/op_runs.h"

namespace interp::testing::tensor_lists_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// `list` is x, 2 x and 3 x, and then come the ops.
std::string Listed(const std::string& ops) {
  std::string text =
      "block 0\n  var x float32[2]\n  var y float32[2]\n  var w float32[-1]\n"
      "  var list lod_tensor_array float32[-1]\n  var part lod_tensor_array float32[-1]\n"
      "  var product float32[-1]\n  var loss float32[1]\n"
      "  var i int64[1]\n  var n int64[1]\n  var go bool[1]\n";
  for (int i = 0; i < 3; ++i) absl::StrAppend(&text, "  var x", i, " float32[2]\n");
  for (int i = 0; i < 3; ++i) {
    absl::StrAppend(&text, IndexOp(absl::StrCat("i", i), i), "  scale(X=x) -> (Out=x", i,
                    ") {scale=", i + 1, ".0}\n  write_to_array(X=x", i, ", I=i", i,
                    ") -> (Out=list)\n");
  }
  return text + ops;
}

absl::StatusOr<std::vector<Tensor>> RunText(const std::string& text,
                                            const std::vector<Tensor>& feeds,
                                            const std::vector<std::string>& fetches) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(text));
  std::vector<std::string> names = {"x", "w"};
  names.resize(feeds.size());
  INTERP_ASSIGN_OR_RETURN(auto core,
                          InterpreterCore::Create(std::move(program), names, fetches, nullptr,
                                                  {.check_feed_shapes = false}));
  return core->Run(feeds);
}

const Tensor kX = Tensor::Of<float>({2}, {1, 10});

// What `y` is with x = [1, 10].
absl::StatusOr<std::vector<float>> Result(const std::string& ops) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> y, RunText(Listed(ops), {kX}, {"y"}));
  return Values<float>(y[0]);
}

// `y` is the elements of `part` one after the other.
const std::string kJoin =
    "  tensor_array_to_tensor(X=part) -> (Out=y, OutIndex=lengths) {axis=0, use_stack=false}\n";

// The elements of a list by their factors.
std::vector<float> Elements(const std::vector<float>& factors) {
  std::vector<float> values;
  for (const float factor : factors) {
    values.push_back(factor);
    values.push_back(10 * factor);
  }
  return values;
}

std::string SliceOp(int64_t start, int64_t end, bool element) {
  return absl::StrCat("  slice(Input=list) -> (Out=", element ? "y" : "part",
                      ") {axes=[0], starts=[", start, "], ends=[", end, "]",
                      element ? ", decrease_axis=[0]" : "", "}\n");
}

TEST(ListSliceTest, AnIndexGivesATensor) {
  const struct {
    int64_t start, end;
    float factor;
  } cases[] = {{0, 1, 1}, {1, 2, 2}, {2, 3, 3}, {-1, 0, 3}, {-2, -1, 2}, {-5, 6, 1}};
  for (const auto& c : cases) {
    const auto y = Result(SliceOp(c.start, c.end, /*element=*/true));
    ASSERT_THAT(y, IsOk()) << c.start;
    EXPECT_THAT(*y, ElementsAreArray(Elements({c.factor}))) << c.start;
  }
}

TEST(ListSliceTest, AnIndexMayBeATensor) {
  const auto y = Result(
      "  slice(Input=list, StartsTensorList=i2, EndsTensorList=i2) -> (Out=part) "
      "{axes=[0], starts=[-1], ends=[-1]}\n"
      "  slice(Input=list, StartsTensorList=i1, EndsTensorList=i2) -> (Out=y) "
      "{axes=[0], starts=[-1], ends=[-1], decrease_axis=[0]}\n");
  ASSERT_THAT(y, IsOk());
  EXPECT_THAT(*y, ElementsAre(2, 20));
}

TEST(ListSliceTest, BoundsGiveAnArray) {
  const struct {
    int64_t start, end;
    std::vector<float> factors;
  } cases[] = {
      {0, 2, {1, 2}}, {-2, 2147483647, {2, 3}}, {-1, 0, {3}}, {0, -1, {1, 2}}, {-9, 2, {1, 2}}};
  for (const auto& c : cases) {
    const auto y = Result(SliceOp(c.start, c.end, /*element=*/false) + kJoin);
    ASSERT_THAT(y, IsOk()) << c.start;
    EXPECT_THAT(*y, ElementsAreArray(Elements(c.factors))) << c.start;
  }
}

TEST(ListSliceTest, StepsGoBothWays) {
  const struct {
    int64_t start, end, step;
    std::vector<float> factors;
  } cases[] = {{0, 3, 2, {1, 3}},  {2, -9, -1, {3, 2}},  {-1, -4, -1, {3, 2}},
               {2, 0, -1, {3, 2}}, {0, 9, 1, {1, 2, 3}}, {2, -1, -1, {3, 2, 1}},
               {-1, -3, -2, {3}}};
  for (const auto& c : cases) {
    const auto y =
        Result(absl::StrCat("  strided_slice(Input=list) -> (Out=part) {axes=[0], starts=[",
                            c.start, "], ends=[", c.end, "], strides=[", c.step, "]}\n") +
               kJoin);
    ASSERT_THAT(y, IsOk()) << c.start;
    EXPECT_THAT(*y, ElementsAreArray(Elements(c.factors))) << c.start << " by " << c.step;
  }
}

TEST(ListSliceTest, AListMayBecomeAPartOfItself) {
  const auto y = Result(
      "  slice(Input=list) -> (Out=list) {axes=[0], starts=[1], ends=[3]}\n"
      "  reverse(X=list) -> (Out=list) {axis=[0]}\n"
      "  assign(X=list) -> (Out=part)\n" +
      kJoin);
  ASSERT_THAT(y, IsOk());
  EXPECT_THAT(*y, ElementsAreArray(Elements({3, 2})));
}

TEST(ListSliceTest, PartsKeepTheLodAndElementsLoseIt) {
  Tensor rows = Tensor::Of<float>({2}, {1, 10});
  rows.lod = {{0, 1, 2}};
  const std::string text =
      "block 0\n  var x float32[2]\n  var list lod_tensor_array float32[-1]\n"
      "  var part lod_tensor_array float32[-1]\n" +
      IndexOp("i0", 0) +
      "  write_to_array(X=x, I=i0) -> (Out=list)\n"
      "  slice(Input=list) -> (Out=y) {axes=[0], starts=[0], ends=[1], decrease_axis=[0]}\n"
      "  slice(Input=list) -> (Out=part) {axes=[0], starts=[0], ends=[1]}\n"
      "  read_from_array(X=part, I=i0) -> (Out=z)\n";
  const auto out = RunText(text, {rows}, {"y", "z"});
  ASSERT_THAT(out, IsOk());
  EXPECT_TRUE((*out)[0].lod.empty());
  EXPECT_EQ((*out)[1].lod, rows.lod);
}

TEST(ListSliceTest, WhatIsNotThereIsRefused) {
  const auto refused = [](const std::string& ops, const std::string& message) {
    EXPECT_THAT(Result(ops), FailsWith(kInvalid, message)) << ops;
  };
  refused(SliceOp(5, 6, true), "the slice has no element of the array 'Input', which has 3");
  refused(SliceOp(2, 1, false) + kJoin, "slice ends at 1, before its start 2");
  refused("  slice(Input=list) -> (Out=y) {axes=[1], starts=[0], ends=[1], decrease_axis=[1]}\n",
          "'axes' is 1, outside of rank 1");
  refused("  strided_slice(Input=list) -> (Out=y) {axes=[0], starts=[0], ends=[1], strides=[1]}\n",
          "variable 'y' is a tensor, but 'Out' takes an array");
  refused("  reverse(X=list) -> (Out=part) {axis=[1]}\n" + kJoin, "'axis'");
  EXPECT_THAT(Result(IndexOp("i9", 9) + "  write_to_array(X=x, I=i9) -> (Out=list)\n" +
                     SliceOp(5, 6, true)),
              FailsWith(absl::StatusCode::kNotFound, "element 5 of the array has no value"));
}

// for i in range(3): total += list[i], with the array outside of the loop.
TEST(ListSliceTest, LoopsReadListsOfBlocksAroundThem) {
  const auto y =
      Result(IndexOp("i", 0) + IndexOp("n", 3) +
             "  scale(X=x) -> (Out=y) {scale=0.0}\n  less_than(X=i, Y=n) -> (Out=go)\n"
             "  while(X=[i, n, y, list], Condition=go) -> (Out=[i, y, go]) {sub_block=block:1}\n"
             "block 1 parent=0\n  var item float32[2]\n  var next int64[1]\n  var sum float32[2]\n"
             "  increment(X=i) -> (Out=next) {step=1.0}\n"
             "  slice(Input=list, StartsTensorList=i, EndsTensorList=next) -> (Out=item) "
             "{axes=[0], starts=[-1], ends=[-1], decrease_axis=[0]}\n"
             "  elementwise_add(X=y, Y=item) -> (Out=sum)\n  assign(X=sum) -> (Out=y)\n"
             "  assign(X=next) -> (Out=i)\n  less_than(X=i, Y=n) -> (Out=go)\n");
  ASSERT_THAT(y, IsOk());
  EXPECT_THAT(*y, ElementsAre(6, 60));
}

// The gradient by x = [1, 2] of the sum of y times 1, 2, ...
std::vector<float> GradientOf(const std::string& ops, const Shape& weights = {2}) {
  absl::StatusOr<Program> program = ParseProgram(
      Listed(ops + "  elementwise_mul(X=y, Y=w) -> (Out=product) {axis=-1}\n"
                   "  reduce_sum(X=product) -> (Out=loss) {reduce_all=true, keep_dim=true}\n"));
  EXPECT_THAT(program, IsOk());
  absl::StatusOr<BackwardProgram> backward =
      AppendBackward(*std::move(program), {.loss = "loss", .sources = {"x"}}, OpRegistry::Global());
  EXPECT_THAT(backward, IsOk());
  if (!backward.ok()) return {};
  const auto core = InterpreterCore::Create(std::move(backward->program), {"x", "w"}, {"x@GRAD"},
                                            nullptr, {.check_feed_shapes = false});
  EXPECT_THAT(core, IsOk());
  if (!core.ok()) return {};
  std::vector<float> values;
  for (int64_t i = 0; i < weights.numel(); ++i) values.push_back(static_cast<float>(i + 1));
  const auto out =
      (*core)->Run({Tensor::Of<float>({2}, {1, 2}), Tensor::Of<float>(weights, values)});
  EXPECT_THAT(out, IsOk());
  return out.ok() ? Values<float>((*out)[0]) : std::vector<float>();
}

TEST(ListGradientTest, GoesToWhatWasTaken) {
  EXPECT_THAT(GradientOf(SliceOp(-1, 0, true)), ElementsAre(3, 6));
  EXPECT_THAT(GradientOf(SliceOp(1, 3, false) + kJoin, {4}), ElementsAre(11, 16));
  EXPECT_THAT(GradientOf("  strided_slice(Input=list) -> (Out=part) "
                         "{axes=[0], starts=[2], ends=[-9], strides=[-1]}\n" +
                             kJoin,
                         {4}),
              ElementsAre(9, 14));
}

TEST(ListGradientTest, AddsUpWhereAListIsReadTwice) {
  const std::string ops =
      "  slice(Input=list) -> (Out=a) {axes=[0], starts=[0], ends=[1], decrease_axis=[0]}\n"
      "  reverse(X=list) -> (Out=part) {axis=[0]}\n"
      "  slice(Input=part) -> (Out=b) {axes=[0], starts=[0], ends=[1], decrease_axis=[0]}\n"
      "  elementwise_add(X=a, Y=b) -> (Out=y) {axis=-1}\n";
  EXPECT_THAT(GradientOf(ops), ElementsAre(4, 8));
}

TEST(ListStackTest, AxesAreThoseOfTheResult) {
  const auto stack = [](int axis) {
    return RunText(Listed(absl::StrCat(
                       "  tensor_array_to_tensor(X=list) -> (Out=y, OutIndex=lengths) {axis=", axis,
                       ", use_stack=true}\n")),
                   {kX}, {"y"});
  };
  for (const int axis : {1, -1}) {
    const auto y = stack(axis);
    ASSERT_THAT(y, IsOk()) << axis;
    EXPECT_EQ((*y)[0].shape, (Shape{2, 3}));
    EXPECT_THAT(Values<float>((*y)[0]), ElementsAre(1, 2, 3, 10, 20, 30));
  }
  for (const int axis : {0, -2}) {
    const auto y = stack(axis);
    ASSERT_THAT(y, IsOk()) << axis;
    EXPECT_EQ((*y)[0].shape, (Shape{3, 2}));
  }
  EXPECT_THAT(stack(2), FailsWith(kInvalid, "'axis' is 2, outside of rank 2"));
}

TEST(ListStackTest, HasAGradientAlongItsNewDimension) {
  for (const int axis : {1, -1}) {
    EXPECT_THAT(
        GradientOf(absl::StrCat("  tensor_array_to_tensor(X=list) -> (Out=y, OutIndex=lengths) ",
                                "{axis=", axis, ", use_stack=true}\n"),
                   {2, 3}),
        ElementsAre(1 + 4 + 9, 4 + 10 + 18));
  }
}

// As gradients of arrays begin that nothing makes.
TEST(TensorListsTest, WhatIsFilledLikeAListHasZerosForItsElements) {
  const auto run = [](const std::string& attrs) {
    return RunText(Listed(absl::StrCat("  fill_any_like(X=list) -> (Out=zeros) {", attrs,
                                       "}\n  lod_array_length(X=zeros) -> (Out=n)\n"
                                       "  read_from_array(X=zeros, I=i1) -> (Out=y)\n")),
                   {kX}, {"n", "y"});
  };
  const auto out = run("value=0.0");
  ASSERT_THAT(out, IsOk());
  EXPECT_EQ((*out)[0].data<int64_t>()[0], 3);
  EXPECT_THAT(Values<float>((*out)[1]), ElementsAre(0, 0));
  EXPECT_THAT(run("value=0.0, dtype=3"), FailsWith(kInvalid, "'dtype' is int64 for an array of "));
  EXPECT_THAT(run("value=1.0"), FailsWith(kInvalid, "'value' for an array is to be 0"));
}

}  // namespace
}  // namespace interp::testing::tensor_lists_test
