// Ops whose attributes are variables of the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "passes/train/append_backward.h"
#include "tests/testing/matchers.h"

namespace interp::testing::variable_attributes_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct Feeds {
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
};

// `y` of the program, whose feeds are declared as they are.
absl::StatusOr<Tensor> ResultOf(const std::string& ops, const Feeds& feeds,
                                const std::string& fetch = "y") {
  std::string text = "block 0\n";
  for (size_t i = 0; i < feeds.names.size(); ++i) {
    absl::StrAppend(&text, "  var ", feeds.names[i], " ", Name(feeds.tensors[i].dtype),
                    ToString(feeds.tensors[i].shape), "\n");
  }
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(text + ops));
  INTERP_ASSIGN_OR_RETURN(
      auto core, InterpreterCore::Create(std::move(program), feeds.names, {fetch}, nullptr));
  INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> out, core->Run(feeds.tensors));
  return out[0];
}

Tensor Int(int32_t value) { return Tensor::Of<int32_t>({1}, {value}); }
Tensor Float(float value) { return Tensor::Of<float>({1}, {value}); }

TEST(VariableAttributesTest, UnpoolTakesItsOutputSize) {
  const Feeds feeds = {{"x", "i", "h", "v"},
                       {Tensor::Of<float>({1, 1, 1, 2}, {1, 2}),
                        Tensor::Of<int32_t>({1, 1, 1, 2}, {0, 3}), Int(2), Int(4)}};
  const std::string ops =
      "  unpool(X=x, Indices=i) -> (Out=y) {ksize=[2,2], strides=[2,2], paddings=[0,0], "
      "unpooling_type=\"max\", output_size=vars:[h,v]}\n";
  const auto y = ResultOf(ops, feeds);
  ASSERT_THAT(y, IsOk());
  EXPECT_EQ(y->shape, (Shape{1, 1, 2, 4}));
  EXPECT_THAT(Values<float>(*y), ElementsAre(1, 0, 0, 2, 0, 0, 0, 0));
}

TEST(VariableAttributesTest, TheGradientOfUnpoolTakesItToo) {
  const absl::StatusOr<Program> program = ParseProgram(
      "block 0\n  var x float32[1,1,1,2]\n  var i int32[1,1,1,2]\n  var h int32[1]\n"
      "  var v int32[1]\n  var y float32[1,1,-1,-1]\n  var z float32[1,1,-1,-1]\n"
      "  var loss float32[1]\n"
      "  unpool(X=x, Indices=i) -> (Out=y) {ksize=[2,2], strides=[2,2], paddings=[0,0], "
      "unpooling_type=\"max\", output_size=vars:[h,v]}\n"
      "  square(X=y) -> (Out=z)\n"
      "  reduce_sum(X=z) -> (Out=loss) {reduce_all=true, keep_dim=true}\n");
  ASSERT_THAT(program, IsOk());
  absl::StatusOr<BackwardProgram> backward =
      AppendBackward(*program, {.loss = "loss", .sources = {"x"}}, OpRegistry::Global());
  ASSERT_THAT(backward, IsOk());
  const auto core = InterpreterCore::Create(std::move(backward->program), {"x", "i", "h", "v"},
                                            {"x@GRAD"}, nullptr);
  ASSERT_THAT(core, IsOk());
  const auto out = (*core)->Run({Tensor::Of<float>({1, 1, 1, 2}, {1, 2}),
                                 Tensor::Of<int32_t>({1, 1, 1, 2}, {0, 3}), Int(2), Int(4)});
  ASSERT_THAT(out, IsOk());
  EXPECT_THAT(Values<float>((*out)[0]), ElementsAre(2, 4));
}

TEST(VariableAttributesTest, FillsTakeTheirValue) {
  const Tensor x = Tensor::Of<float>({2}, {1, 2});
  for (const std::string type : {"fill_any_like", "fill_any"}) {
    const auto y = ResultOf(absl::StrCat("  ", type, "(X=x) -> (Out=y) {value=var:v, dtype=-1}\n"),
                            {{"x", "v"}, {x, Int(3)}});
    ASSERT_THAT(y, IsOk()) << type;
    EXPECT_THAT(Values<float>(*y), ElementsAre(3, 3)) << type;
  }
  EXPECT_THAT(
      ResultOf("  fill_any_like(X=x) -> (Out=y) {value=var:v, dtype=-1}\n", {{"x", "v"}, {x, x}}),
      FailsWith(kInvalid, "'value' is float32[2], expected one element"));
}

TEST(VariableAttributesTest, ReverseTakesItsAxes) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  const auto one = ResultOf("  reverse(X=x) -> (Out=y) {axis=var:a}\n", {{"x", "a"}, {x, Int(1)}});
  ASSERT_THAT(one, IsOk());
  EXPECT_THAT(Values<float>(*one), ElementsAre(2, 1, 4, 3));
  const auto both = ResultOf("  reverse(X=x) -> (Out=y) {axis=vars:[a,b]}\n",
                             {{"x", "a", "b"}, {x, Int(0), Int(-1)}});
  ASSERT_THAT(both, IsOk());
  EXPECT_THAT(Values<float>(*both), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(ResultOf("  reverse(X=x) -> (Out=y) {axis=var:a}\n", {{"x", "a"}, {x, Int(2)}}),
              FailsWith(kInvalid, "'axis' is 2, outside of rank 2"));
}

TEST(VariableAttributesTest, MultinomialTakesItsNumberOfSamples) {
  const Tensor x = Tensor::Of<float>({3}, {0, 1, 0});
  const std::string ops = "  multinomial(X=x) -> (Out=y) {num_samples=var:n, replacement=true}\n";
  const auto y = ResultOf(ops, {{"x", "n"}, {x, Int(4)}});
  ASSERT_THAT(y, IsOk());
  EXPECT_THAT(Values<int64_t>(*y), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(ResultOf(ops, {{"x", "n"}, {x, Int(0)}}), FailsWith(kInvalid, "'num_samples' is 0"));
}

TEST(VariableAttributesTest, UniformNumbersTakeTheirBounds) {
  const auto y =
      ResultOf("  uniform_random() -> (Out=y) {shape=[100], dtype=5, min=var:low, max=var:high}\n",
               {{"low", "high"}, {Float(7), Float(8)}});
  ASSERT_THAT(y, IsOk());
  EXPECT_THAT(Values<float>(*y), Each(::testing::AllOf(::testing::Ge(7.0f), ::testing::Le(8.0f))));
}

TEST(VariableAttributesTest, DropoutTakesItsProbability) {
  const Tensor x = Tensor::Of<float>({2}, {4, 8});
  const auto run = [&](float p, const std::string& attrs) {
    return ResultOf(
        absl::StrCat("  dropout(X=x) -> (Out=y, Mask=m) {dropout_prob=var:p, ", attrs, "}\n"),
        {{"x", "p"}, {x, Float(p)}});
  };
  const std::string train = "dropout_implementation=\"upscale_in_train\"";
  const auto all = run(0, train);
  ASSERT_THAT(all, IsOk());
  EXPECT_THAT(Values<float>(*all), ElementsAre(4, 8));
  const auto none = run(1, train);
  ASSERT_THAT(none, IsOk());
  EXPECT_THAT(Values<float>(*none), ElementsAre(0, 0));
  const auto test = run(0.75f, "is_test=true");
  ASSERT_THAT(test, IsOk());
  EXPECT_THAT(Values<float>(*test), ElementsAre(1, 2));
  EXPECT_THAT(run(1.5f, train), FailsWith(kInvalid, "'dropout_prob' is 1.5"));
}

TEST(VariableAttributesTest, TheGradientOfDropoutTakesItToo) {
  const auto x_grad = ResultOf(
      "  dropout_grad(Mask=m, Out@GRAD=g) -> (X@GRAD=x@GRAD) "
      "{dropout_prob=var:p, dropout_implementation=\"upscale_in_train\"}\n",
      {{"m", "g", "p"},
       {Tensor::Of<uint8_t>({2}, {1, 0}), Tensor::Of<float>({2}, {3, 3}), Float(0.25f)}},
      "x@GRAD");
  ASSERT_THAT(x_grad, IsOk());
  EXPECT_THAT(Values<float>(*x_grad), ElementsAre(4, 0));
}

}  // namespace
}  // namespace interp::testing::variable_attributes_test
