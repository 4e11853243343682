// tests/core/program_builder/*.txt hold what networks of tests/testing/built_nets.cc become: the
// main and the startup program. Keys: `net`, and `test` for the program for evaluation.
#include "core/program_builder.h"

#include <gtest/gtest.h>

#include "core/program_load.h"
#include "core/program_print.h"
#include "passes/verify.h"
#include "tests/testing/built_nets.h"
#include "tests/testing/text_cases.h"

namespace interp {
namespace {

using testing::Build;
using testing::BuiltNet;
using testing::BuiltNets;
using testing::TextCase;

absl::StatusOr<std::string> RunCase(const TextCase& c) {
  const bool is_test = c.Values("test").has_value();
  INTERP_ASSIGN_OR_RETURN(const BuiltProgram built,
                          Build(c.Values("net")->front(), {.is_test = is_test}));
  return absl::StrCat(ToText(built.main), is_test ? "" : ToText(built.startup));
}

class BuiltTextTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BuiltTextTest, Matches) { testing::CheckTextCases(GetParam(), RunCase); }

INSTANTIATE_TEST_SUITE_P(Files, BuiltTextTest,
                         ::testing::ValuesIn(testing::TextCaseFiles("tests/core/program_builder")),
                         [](const auto& info) { return testing::TextCaseName(info.param); });

class BuiltNetTest : public ::testing::TestWithParam<BuiltNet> {};

TEST_P(BuiltNetTest, IsAProgram) {
  ProgramBuilder net;
  GetParam().build(net);
  const absl::StatusOr<BuiltProgram> built = net.Finish();
  ASSERT_TRUE(built.ok()) << built.status();
  for (const Program* program : {&built->main, &built->startup}) {
    EXPECT_EQ(VerifyProgram(*program, OpRegistry::Global()), absl::OkStatus());
    const absl::StatusOr<std::string> bytes = SaveProgram(*program);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const absl::StatusOr<Program> loaded = LoadProgram(*bytes);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(ToText(*loaded), ToText(*program));
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, BuiltNetTest, ::testing::ValuesIn(BuiltNets()),
                         [](const auto& info) { return info.param.name; });

// --- names and parameters ---

TEST(ProgramBuilderTest, AParameterNamedTwiceIsOne) {
  ProgramBuilder net;
  const Value x = net.Data("x", {-1, 6});
  const FcOptions shared{.weight = {.name = "w"}, .bias = std::nullopt};
  net.Fc(net.Fc(x, 6, shared), 6, shared);
  const absl::StatusOr<BuiltProgram> built = net.Finish();
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->startup.blocks[0].ops.size(), 1u);
}

TEST(ProgramBuilderTest, AParameterThatIsNotTrainedStopsGradients) {
  ProgramBuilder net;
  const Value x = net.Data("x", {-1, 6});
  const Value y = net.Fc(x, 6, {.weight = {.trainable = false}, .bias = std::nullopt});
  EXPECT_TRUE(net.Get(y).stop_gradient);
}

TEST(ProgramBuilderTest, NamesOfTheCallerAreNotTakenTwice) {
  ProgramBuilder net;
  const Value x = net.Data("fc_0.tmp_0", {-1, 6});
  EXPECT_EQ(net.NameOf(net.Fc(x, 6, {.bias = std::nullopt})), "fc_0.tmp_1");
}

TEST(ProgramBuilderTest, AnyOpCanBeAdded) {
  ProgramBuilder net;
  const Value x = net.Data("x", {-1, 6});
  const Value out = net.Temporary("clip_0", {-1, 6});
  net.AddOp("clip", {{"X", {x}}}, {{"Out", {out}}}, {{"min", -1.0F}, {"max", 1.0F}});
  const absl::StatusOr<BuiltProgram> built = net.Finish();
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(ToText(built->main, built->main.blocks[0].ops[0]),
            "clip(X=x) -> (Out=clip_0.tmp_0) {min=-1.0, max=1.0}");
}

// --- errors ---

struct Inputs {
  Value x;
  Value image;
  Value label;
};

struct WrongCall {
  const char* name;
  void (*call)(ProgramBuilder& net, const Inputs& in);
  const char* message;
};

const WrongCall kWrongCalls[] = {
    {"UnknownActivation",
     [](ProgramBuilder& net, const Inputs& in) { net.Fc(in.x, 4, {.act = "rellu"}); },
     "fc_0: no activation 'rellu'; nearest: 'relu', 'elu', 'gelu'"},
    {"NoValue", [](ProgramBuilder& net, const Inputs&) { net.Fc({}, 4); },
     "fc_0: an argument is no value of this builder"},
    {"ValueOfAnotherBuilder", [](ProgramBuilder& net, const Inputs&) { net.Relu({100}); },
     "relu_0: an argument is no value of this builder"},
    {"FcOfNoSize", [](ProgramBuilder& net, const Inputs& in) { net.Fc(in.x, 0); },
     "fc_0: size is 0"},
    {"FcOfUnknownWidth",
     [](ProgramBuilder& net, const Inputs&) {
       net.Fc(net.Data("u", {-1, -1}), 4);
     },
     "fc_0: the input is [-1,-1], whose width is not known"},
    {"FcOfIntegers", [](ProgramBuilder& net, const Inputs& in) { net.Fc(in.label, 4); },
     "fc_0: the input is of int64, expected floats"},
    {"ConvOfRows",
     [](ProgramBuilder& net, const Inputs& in) { net.Conv2d(in.x, {.filters = 2, .size = 3}); },
     "conv2d_0: the input is [-1,6], expected [batch, channels, height, width]"},
    {"ConvWithoutSize",
     [](ProgramBuilder& net, const Inputs& in) { net.Conv2d(in.image, {.filters = 2}); },
     "conv2d_0: size, stride and dilation are from 1, padding from 0, to 2147483647"},
    {"ConvLargerThanImage",
     [](ProgramBuilder& net, const Inputs& in) { net.Conv2d(in.image, {.filters = 2, .size = 9}); },
     "conv2d_0: a window of 9 does not fit into 8 with padding 0"},
    {"ConvGroups",
     [](ProgramBuilder& net, const Inputs& in) {
       net.Conv2d(in.image, {.filters = 2, .size = 3, .groups = 2});
     },
     "conv2d_0: groups is 2 for 3 channels and 2 filters"},
    {"PoolType",
     [](ProgramBuilder& net, const Inputs& in) {
       net.Pool2d(in.image, {.size = 2, .type = "mean"});
     },
     "pool2d_0: type is 'mean', expected max or avg"},
    {"LabelOfOtherShape",
     [](ProgramBuilder& net, const Inputs& in) { net.SoftmaxWithCrossEntropy(in.image, in.label); },
     "softmax_with_cross_entropy_0: the label is [-1,1], expected [-1,3,8,1]"},
    {"LabelOfFloats",
     [](ProgramBuilder& net, const Inputs& in) {
       net.CrossEntropy(in.x, net.Data("f", {-1, 1}));
     },
     "softmax_with_cross_entropy_0: the label is of float32, expected int64"},
    {"AddOfOtherShape",
     [](ProgramBuilder& net, const Inputs& in) { net.Add(in.x, net.Data("b", {5})); },
     "elementwise_add_0: shapes [-1,6] and [5] do not broadcast"},
    {"AddOfOtherType", [](ProgramBuilder& net, const Inputs& in) { net.Add(in.x, in.label); },
     "elementwise_add_0: the inputs are of float32 and int64"},
    {"ReshapeToOtherSize",
     [](ProgramBuilder& net, const Inputs&) {
       net.Reshape(net.Data("r", {2, 6}), {5, -1});
     },
     "reshape2_0: shape [2,6] does not become [5,-1]: the sizes differ"},
    {"ConcatOfOtherWidth",
     [](ProgramBuilder& net, const Inputs& in) {
       net.Concat({in.x, net.Data("c", {-1, 5})});
     },
     "concat_0: input 1 is float32[-1,5], the first one float32[-1,6]"},
    {"TransposeOfMoreDims",
     [](ProgramBuilder& net, const Inputs& in) {
       net.Transpose(in.x, {0, 1, 2, 3, 4});
     },
     "transpose_0: the order does not have each of the 2 dims once"},
    {"PoolOfNoSize", [](ProgramBuilder& net, const Inputs& in) { net.Pool2d(in.image, {}); },
     "pool2d_0: size, stride and dilation are from 1, padding from 0, to 2147483647"},
    {"AdaptivePoolOfNoSize",
     [](ProgramBuilder& net, const Inputs& in) { net.Pool2d(in.image, {.adaptive = true}); },
     "pool2d_0: size, stride and dilation are from 1, padding from 0, to 2147483647"},
    {"MatmulOfOtherWidth",
     [](ProgramBuilder& net, const Inputs& in) {
       net.Matmul(in.x, net.Data("m", {5, 2}));
     },
     "matmul_v2_0: shapes [-1,6] and [5,2] do not multiply: 6 and 5"},
    {"EmbeddingWithoutRows",
     [](ProgramBuilder& net, const Inputs& in) { net.Embedding(in.label, {.width = 4}); },
     "embedding_0: rows is 0 and width is 4"},
    {"EmbeddingOfFloats",
     [](ProgramBuilder& net, const Inputs& in) { net.Embedding(in.x, {.rows = 4, .width = 4}); },
     "embedding_0: the ids are of float32, expected int64"},
    {"LstmOfRows", [](ProgramBuilder& net, const Inputs& in) { net.Lstm(in.x, {.hidden = 4}); },
     "lstm_0: the input is float32[-1,6], expected floats of three dims, the last one known"},
    {"HeadsThatDoNotDivide",
     [](ProgramBuilder& net, const Inputs&) {
       net.SelfAttention(net.Data("s", {-1, 5, 6}), {.heads = 4});
     },
     "multi_head_attention_0: 4 heads do not divide a width of 6"},
    {"DropoutOfMoreThanAll", [](ProgramBuilder& net, const Inputs& in) { net.Dropout(in.x, 1.5F); },
     "dropout_0: the probability is 1.5, expected 0 to 1"},
    {"SelectOutside", [](ProgramBuilder& net, const Inputs& in) { net.Select(in.x, 1, 6); },
     "x_slice_0: index 6 is outside of 6"},
    {"TopMoreThanThereAre",
     [](ProgramBuilder& net, const Inputs& in) { net.Accuracy(in.x, in.label, 7); },
     "accuracy_0: k is 7 of an input [-1,6]"},
    {"NameTakenTwice",
     [](ProgramBuilder& net, const Inputs&) {
       net.Data("x", {-1, 2});
     },
     "there are two variables named 'x'"},
    {"ParameterOfOtherShape",
     [](ProgramBuilder& net, const Inputs& in) {
       const FcOptions w{.weight = {.name = "w"}};
       net.Fc(net.Fc(in.x, 4, w), 4, w);
     },
     "fc_1: 'w' is float32[6,4] already, and not float32[4,4]"},
    {"ShapeTooLarge",
     [](ProgramBuilder& net, const Inputs&) {
       net.Data("large", {int64_t{1} << 40, int64_t{1} << 40});
     },
     "'large': shape [1099511627776,1099511627776] is too large"},
};

class WrongCallTest : public ::testing::TestWithParam<WrongCall> {};

TEST_P(WrongCallTest, IsToldByFinish) {
  ProgramBuilder net;
  const Inputs in{.x = net.Data("x", {-1, 6}),
                  .image = net.Data("image", {-1, 3, 8, 8}),
                  .label = net.Data("label", {-1, 1}, DType::kInt64)};
  GetParam().call(net, in);
  // What follows an error does nothing, whatever it gets.
  net.Mean(net.CrossEntropy(net.Fc(net.Flatten(net.Relu({})), 10), in.label));
  net.Lstm(net.SelfAttention(in.image, {.heads = 3}), {.hidden = 2});
  net.Pool2d(net.Conv2d(net.Reshape({}, {0, 0}), {}), {});
  const absl::StatusOr<BuiltProgram> built = net.Finish();
  EXPECT_EQ(built.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(built.status().message()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(Calls, WrongCallTest, ::testing::ValuesIn(kWrongCalls),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ProgramBuilderTest, OwnErrorsAreToldToo) {
  ProgramBuilder net;
  net.Fail("no label in the file");
  EXPECT_EQ(net.Finish().status().message(), "no label in the file");
}

TEST(ProgramBuilderTest, IsFinishedOnce) {
  ProgramBuilder net;
  net.Data("x", {-1, 6});
  EXPECT_TRUE(net.Finish().ok());
  EXPECT_FALSE(net.Finish().ok());
}

}  // namespace
}  // namespace interp
