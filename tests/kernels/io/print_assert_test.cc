// print and assert: what they show, when, and in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/program_parse.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<InterpreterCore> CoreOf(absl::string_view text,
                                        const std::vector<std::string>& feeds,
                                        const std::vector<std::string>& fetches,
                                        const CoreOptions& options = {}) {
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  auto core = InterpreterCore::Create(*std::move(program), feeds, fetches, nullptr, options);
  EXPECT_THAT(core, IsOk());
  return core.ok() ? *std::move(core) : nullptr;
}

Tensor Sequences() {
  Tensor x = Tensor::Of<float>({3, 1}, std::vector<float>{1.5f, -2.0f, 1e20f});
  x.lod = {{0, 1, 3}};
  return x;
}

// What a program that prints x shows in `runs` runs.
std::string Shown(absl::string_view attrs, const Tensor& x = Sequences(), int runs = 1) {
  const std::string text = absl::StrCat("block 0\n  var x ", Name(x.dtype), ToString(x.shape),
                                        "\n  print(In=x) -> (Out=y) {", attrs, "}\n");
  const auto core = CoreOf(text, {"x"}, {"y"});
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < runs; ++i) {
    const auto result = core->Run({x});
    EXPECT_THAT(result, IsOk());
    EXPECT_EQ(result->at(0).lod, x.lod);
  }
  return ::testing::internal::GetCapturedStderr();
}

TEST(PrintTest, ShowsTheTensorAsPaddleDoes) {
  EXPECT_EQ(Shown(R"(message="here")"), R"(Variable: x
  - message: here
  - lod: {{0, 1, 3}}
  - place: Place(cpu)
  - shape: [3, 1]
  - layout: NCHW
  - dtype: float32
  - data: [1.5 -2 1e+20]
)");
}

TEST(PrintTest, ShowsWhatIsAskedFor) {
  EXPECT_EQ(Shown("print_tensor_name=false, print_tensor_lod=false, print_tensor_shape=false, "
                  "print_tensor_layout=false, print_tensor_type=false, summarize=2"),
            "  - place: Place(cpu)\n  - data: [1.5 -2]\n");
}

TEST(PrintTest, ShowsOtherDtypes) {
  const auto data = [](const Tensor& x) { return Shown("summarize=3", x); };
  EXPECT_THAT(data(Tensor::Of<int64_t>({2}, {int64_t{1} << 40, -1})),
              HasSubstr("dtype: int64\n  - data: [1099511627776 -1]"));
  EXPECT_THAT(data(Tensor::Of<int8_t>({2}, {int8_t{65}, int8_t{-1}})), HasSubstr("[65 -1]"));
  EXPECT_THAT(data(Tensor::Of<bool>({2}, {true, false})), HasSubstr("[1 0]"));
  EXPECT_THAT(data(Tensor::Of<double>({}, {0.1})), HasSubstr("shape: []\n"));
  EXPECT_THAT(data(Tensor::Of<float>({0, 2}, std::vector<float>())), HasSubstr("data: []"));
}

TEST(PrintTest, StopsAfterTheFirstRuns) {
  const std::string one = Shown("");
  EXPECT_EQ(Shown("first_n=2", Sequences(), 3), one + one);
  EXPECT_EQ(Shown("first_n=-1", Sequences(), 3), one + one + one);
}

TEST(PrintTest, IsSilentInTheOtherPhase) {
  EXPECT_EQ(Shown(R"(print_phase="BACKWARD")"), "");
  EXPECT_EQ(Shown(R"(print_phase="FORWARD", is_forward=false)"), "");
  EXPECT_NE(Shown(R"(print_phase="BACKWARD", is_forward=false)"), "");
  EXPECT_NE(Shown(R"(print_phase="FORWARD")"), "");
}

TEST(PrintTest, RefusesAnUnknownPhase) {
  absl::StatusOr<Program> program =
      ParseProgram("block 0\n  var x float32[1]\n  print(In=x) -> (Out=y) {print_phase=\"UP\"}\n");
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(InterpreterCore::Create(*std::move(program), {"x"}, {"y"}, nullptr, {}),
              FailsWith(absl::StatusCode::kInvalidArgument, "'print_phase' is 'UP'"));
}

// Twenty prints of which nobody reads the output, and of things that do not depend on each other.
TEST(PrintTest, IsNeverDroppedAndKeepsTheOrderOfTheProgram) {
  std::string text = "block 0\n  var x float32[1]\n";
  std::string expected;
  const char* only_message =
      "print_tensor_name=false, print_tensor_lod=false, print_tensor_shape=false, "
      "print_tensor_layout=false, print_tensor_type=false, summarize=0";
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(&text, "  scale(X=x) -> (Out=a", i, ") {scale=", i, ".0}\n  print(In=a", i,
                    ") -> (Out=b", i, ") {message=\"", i, "\", ", only_message, "}\n");
    absl::StrAppend(&expected, "  - message: ", i, "\n  - place: Place(cpu)\n  - data: []\n");
  }
  absl::StrAppend(&text, "  scale(X=x) -> (Out=y) {scale=1.0}\n");
  CoreOptions options;
  options.scheduler = SchedulerKind::kAsync;
  options.num_workers = 4;
  const auto core = CoreOf(text, {"x"}, {"y"}, options);
  for (int run = 0; run < 20; ++run) {
    ::testing::internal::CaptureStderr();
    EXPECT_THAT(core->Run({Tensor::Of<float>({1}, {1.0f})}), IsOk());
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), expected);
  }
}

constexpr absl::string_view kAssert = R"(block 0
  var c bool[1]
  var x float32[3]
  var n int32[1]
  assert(Cond=c, Data=[x, n]) -> () {summarize=long:2}
  scale(X=x) -> (Out=y) {scale=2.0}
)";

std::vector<Tensor> AssertFeeds(bool cond) {
  return {Tensor::Of<bool>({1}, {cond}), Tensor::Of<float>({3}, {1.0f, 2.5f, 3.0f}),
          Tensor::Of<int32_t>({1}, {7})};
}

TEST(AssertTest, FailsTheRunAndShowsTheData) {
  const auto core = CoreOf(kAssert, {"c", "x", "n"}, {"y"});
  EXPECT_THAT(core->Run(AssertFeeds(true)), IsOk());
  EXPECT_THAT(core->Run(AssertFeeds(false)),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "the condition 'c' is false; data: 'x' float32[3] [1 2.5], 'n' int32[1] "
                        "[7]"));
  EXPECT_THAT(core->Run(AssertFeeds(true)), IsOk());
}

TEST(AssertTest, NeedsNoData) {
  const auto core =
      CoreOf(absl::StrReplaceAll(kAssert, {{", Data=[x, n]", ""}}), {"c", "x"}, {"y"});
  EXPECT_THAT(core->Run({AssertFeeds(false)[0], AssertFeeds(false)[1]}),
              FailsWith(absl::StatusCode::kInvalidArgument, "the condition 'c' is false"));
}

TEST(AssertTest, TakesOneBool) {
  const auto run = [](const std::string& type, const Tensor& cond) {
    const auto core =
        CoreOf(absl::StrReplaceAll(kAssert, {{"bool[1]", type}}), {"c", "x", "n"}, {"y"});
    std::vector<Tensor> feeds = AssertFeeds(true);
    feeds[0] = cond;
    return core->Run(feeds).status();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(run("bool[2]", Tensor::Of<bool>({2}, {true, true})), FailsWith(kInvalid, "one bool"));
  EXPECT_THAT(run("int32[1]", Tensor::Of<int32_t>({1}, {1})), FailsWith(kInvalid, "one bool"));
  EXPECT_THAT(run("bool[]", Tensor::Of<bool>({}, {true})), IsOk());
}

}  // namespace
}  // namespace interp::testing
