// fused_pointwise_depthwise gives what the two convolutions give, whatever their windows, what is
// folded into them, the size of images and the number of threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

struct PairCase {
  Shape image;
  int64_t channels = 16;  // of the image between
  int64_t kernel = 3;
  int64_t stride = 1;
  std::string paddings = "[1,1]";
  std::string first = "relu6";
  std::string second = "hard_swish";
  bool norm = true;
  std::string algorithm = "";  // a part of what the fused op says
};

std::string ActivationText(const std::string& type, const std::string& from,
                           const std::string& to) {
  return absl::StrCat("  ", type.empty() ? "assign" : type, "(X=", from, ") -> (Out=", to, ")\n");
}

std::string TextOfPair(const PairCase& test) {
  const int64_t c = test.channels;
  const std::string image = absl::StrCat("[-1,", c, ",-1,-1]");
  std::string text =
      absl::StrCat("block 0\n  var x float32[-1,", test.image[1], ",-1,-1]\n  var w float32[", c,
                   ",", test.image[1], ",1,1] param\n  var v float32[", c, ",1,", test.kernel, ",",
                   test.kernel, "] param\n  var p float32[1] param\n");
  for (const char* name : {"b", "s", "o", "m", "n"}) {
    absl::StrAppend(&text, "  var ", name, " float32[", c, "] param\n");
  }
  for (const char* name : {"a", "d", "e", "f", "g", "h", "y"}) {
    absl::StrAppend(&text, "  var ", name, " float32", image, "\n");
  }
  absl::StrAppend(&text,
                  "  conv2d(Input=x, Filter=w) -> (Output=a)\n"
                  "  elementwise_add(X=a, Y=b) -> (Out=d) {axis=1}\n",
                  ActivationText(test.first, "d", "e"),
                  "  depthwise_conv2d(Input=e, Filter=v) -> (Output=f) {groups=", c, ", strides=[",
                  test.stride, ",", test.stride, "], paddings=", test.paddings, "}\n");
  if (test.norm) {
    absl::StrAppend(&text,
                    "  batch_norm(X=f, Scale=s, Bias=o, Mean=m, Variance=n) -> (Y=g, MeanOut=m, "
                    "VarianceOut=n, SavedMean=sm, SavedVariance=sv) {is_test=true}\n",
                    ActivationText(test.second, "g", "h"),
                    "  elementwise_mul(X=h, Y=p) -> (Out=y)\n");
  } else {
    absl::StrAppend(&text, ActivationText(test.second, "f", "y"));
  }
  return text;
}

std::shared_ptr<Scope> ParametersOf(const PairCase& test) {
  auto scope = std::make_shared<Scope>();
  const int64_t c = test.channels;
  scope->FindOrCreate("w")->tensor = Numbers({c, test.image[1], 1, 1}, 2);
  scope->FindOrCreate("v")->tensor = Numbers({c, 1, test.kernel, test.kernel}, 3);
  scope->FindOrCreate("p")->tensor = Tensor::Of<float>({1}, {-1.5F});
  for (const char* name : {"b", "s", "o", "m"}) {
    scope->FindOrCreate(name)->tensor = Numbers({c}, static_cast<uint64_t>(name[0]));
  }
  scope->FindOrCreate("n")->tensor =
      Tensor::Of<float>({c}, std::vector<float>(static_cast<size_t>(c), 1.25F));
  return scope;
}

// The result, with the op fused or with the two.
std::vector<float> RunPair(const PairCase& test, bool fused, int num_threads = 1) {
  const absl::StatusOr<Program> program = ParseProgram(TextOfPair(test));
  EXPECT_THAT(program, IsOk());
  CoreOptions options;
  options.scheduler = SchedulerKind::kTrace;
  options.num_threads = num_threads;
  if (!fused) options.passes.disable = {"fuse_depthwise"};
  const auto core = InterpreterCore::Create(*program, {"x"}, {"y"}, ParametersOf(test), options);
  EXPECT_THAT(core, IsOk());
  if (!core.ok()) return {};
  std::vector<float> values;
  for (int run = 0; run < 2; ++run) {  // the second with what the first has prepared
    const auto results = (*core)->Run({Numbers(test.image, 1)});
    EXPECT_THAT(results, IsOk());
    if (!results.ok()) return {};
    values = ::interp::testing::Values<float>((*results)[0]);
  }
  const auto& instructions = (*core)->plan().instructions;
  const auto pairs =
      std::count_if(instructions.begin(), instructions.end(),
                    [](const Instruction& i) { return i.op_type == "fused_pointwise_depthwise"; });
  EXPECT_EQ(pairs, fused ? 1 : 0);
  return values;
}

void ExpectClose(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 2e-4) << i;
}

TEST(PointwiseDepthwiseTest, GivesWhatTheTwoGive) {
  const std::vector<PairCase> cases = {
      {.image = {1, 8, 7, 9}},
      {.image = {2, 3, 9, 8}, .channels = 40, .kernel = 5, .paddings = "[2,2]", .first = "swish"},
      {.image = {1, 8, 12, 13}, .channels = 24, .stride = 2, .second = "swish"},
      {.image = {1, 8, 12, 13}, .kernel = 5, .stride = 2, .paddings = "[0,3,1,2]", .norm = false},
      {.image = {1, 16, 1, 1}, .first = "", .second = "relu"},
      {.image = {1, 4, 2, 30}, .channels = 17, .kernel = 5, .paddings = "[4,4]"},
      {.image = {1, 256, 9, 9}, .channels = 264, .first = "swish", .norm = false},
      {.image = {2, 300, 9, 9}, .channels = 250},
  };
  for (const PairCase& test : cases) {
    SCOPED_TRACE(TextOfPair(test));
    const std::vector<float> expected = RunPair(test, /*fused=*/false);
    for (const int threads : {1, 3}) ExpectClose(RunPair(test, /*fused=*/true, threads), expected);
  }
}

// The image between is of several megabytes.
TEST(PointwiseDepthwiseTest, GivesTheSameInBands) {
  const std::vector<PairCase> cases = {
      {.image = {1, 16, 112, 112}, .channels = 96, .stride = 2},
      {.image = {2, 8, 97, 101}, .channels = 72, .kernel = 5, .paddings = "[2,2]"},
      {.image = {1, 8, 131, 67}, .channels = 64, .kernel = 5, .stride = 2, .paddings = "[0,4]"},
      {.image = {1, 8, 400, 40}, .channels = 32, .paddings = "[2,2]", .norm = false},
  };
  for (const PairCase& test : cases) {
    SCOPED_TRACE(TextOfPair(test));
    const std::vector<float> expected = RunPair(test, /*fused=*/false);
    for (const int threads : {1, 2, 5}) {
      ExpectClose(RunPair(test, /*fused=*/true, threads), expected);
    }
  }
}

TEST(PointwiseDepthwiseTest, SaysWhatItRan) {
  const PairCase test = {.image = {1, 16, 112, 112}, .channels = 96, .stride = 2};
  const absl::StatusOr<Program> program = ParseProgram(TextOfPair(test));
  ASSERT_THAT(program, IsOk());
  for (const Algorithms algorithms : {Algorithms::kFast, Algorithms::kDirect}) {
    CoreOptions options{.num_threads = 1, .algorithms = algorithms};
    const auto core = InterpreterCore::Create(*program, {"x"}, {"y"}, ParametersOf(test), options);
    ASSERT_THAT(core, IsOk());
    ASSERT_THAT((*core)->Run({Numbers(test.image, 1)}), IsOk());
    std::string said;
    const auto& instructions = (*core)->plan().instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].op_type != "fused_pointwise_depthwise") continue;
      said = (*core)->algorithms()[i];
    }
    const bool in_bands = said.find("bands of") != std::string::npos;
    EXPECT_EQ(in_bands, algorithms == Algorithms::kFast) << said;
  }
}

// The windows of all rows of the first thread lie in the padding.
TEST(PointwiseDepthwiseTest, SaysWhatItRanWhereAThreadHasOnlyPadding) {
  const PairCase test = {.image = {1, 8, 64, 64}, .channels = 64, .paddings = "[1000,10,1,1]"};
  const auto program = ParseProgram(TextOfPair(test));
  ASSERT_THAT(program, IsOk());
  CoreOptions options{.num_threads = 2};
  const auto core = InterpreterCore::Create(*program, {"x"}, {"y"}, ParametersOf(test), options);
  ASSERT_THAT(core, IsOk());
  ASSERT_THAT((*core)->Run({Numbers(test.image, 1)}), IsOk());
  const std::vector<std::string> algorithms = (*core)->algorithms();
  EXPECT_TRUE(std::any_of(algorithms.begin(), algorithms.end(), [](const std::string& name) {
    return name.find("bands of") != std::string::npos;
  }));
  ExpectClose(RunPair(test, /*fused=*/true, /*num_threads=*/2), RunPair(test, /*fused=*/false));
}

// As a convolution does.
TEST(PointwiseDepthwiseTest, HandsNoLodOn) {
  OpRun run = {"fused_pointwise_depthwise",
               {{"Input", Numbers({3, 4, 6, 6}, 1, {{0, 2, 3}})},
                {"Filter", Numbers({16, 4, 1, 1}, 2)},
                {"DepthwiseFilter", Numbers({16, 1, 3, 3}, 3)}},
               {"Output"},
               "depthwise_groups=16"};
  EXPECT_EQ(OutputsOf(run)[0].lod, Lod());
}

TEST(PointwiseDepthwiseTest, IsLeftOutWhereAllResultsAreLookedAt) {
  const PairCase test = {.image = {1, 8, 7, 9}};
  const auto program = ParseProgram(TextOfPair(test));
  ASSERT_THAT(program, IsOk());
  const CoreOptions options{.check_nan_inf = true};
  const auto core = InterpreterCore::Create(*program, {"x"}, {"y"}, ParametersOf(test), options);
  ASSERT_THAT(core, IsOk());
  for (const Instruction& instruction : (*core)->plan().instructions) {
    EXPECT_FALSE(absl::StartsWith(instruction.op_type, "fused_")) << instruction.op_type;
  }
}

TEST(PointwiseDepthwiseTest, RefusesWhatDoesNotFit) {
  const OpRun good = {"fused_pointwise_depthwise",
                      {{"Input", Numbers({1, 4, 6, 6}, 1)},
                       {"Filter", Numbers({16, 4, 1, 1}, 2)},
                       {"DepthwiseFilter", Numbers({16, 1, 3, 3}, 3)}},
                      {"Output"},
                      "depthwise_groups=16"};
  EXPECT_EQ(OutputsOf(good)[0].shape, Shape({1, 16, 4, 4}));
  OpRun window = good;
  window.inputs[1].second = Numbers({16, 4, 3, 3}, 2);
  OpRun groups = good;
  groups.attrs = "depthwise_groups=4";
  OpRun channels = good;
  channels.inputs[2].second = Numbers({32, 1, 3, 3}, 3);
  OpRun bias = good;
  bias.inputs.push_back({"DepthwiseBias", Numbers({4}, 1)});
  OpRun residual = good;
  residual.attrs = "depthwise_groups=16, depthwise_fuse_residual=true";
  OpRun format = good;
  format.attrs = "depthwise_groups=16, depthwise_data_format=\"NHWC\"";
  ExpectRefusals({{window, "expected a convolution of 1 x 1"},
                  {groups, "Filter"},
                  {channels, "expected one of each of 16 channels"},
                  {bias, "depthwise: input 'Bias' has shape [4]"},
                  {residual, "depthwise: a residual"},
                  {format, "differ in 'data_format'"}});
}

}  // namespace
}  // namespace interp::testing
