#include "passes/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "tests/testing/fake_ops.h"

namespace interp {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Program Chain() {
  return *ParseProgram(R"(block 0
  var x float32[2]
  relu(X=x) -> (Out=y)
  tanh(X=y) -> (Out=z)
)");
}

PassContext Context() { return {testing::FakeOps(), {{"x"}}, {{"z"}}}; }

std::vector<absl::string_view> Names(const std::vector<Pass>& passes) {
  std::vector<absl::string_view> names;
  for (const Pass& pass : passes) names.push_back(pass.name);
  return names;
}

TEST(PipelineTest, RunsAndTimesEachPass) {
  const auto result = RunPipeline(Chain(), Context());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->timings.size(), DefaultPipeline({})->size());
  EXPECT_EQ(result->timings[0].pass, "insert_feed_fetch");
  EXPECT_GE(result->timings[0].duration_ns, 0);
  EXPECT_EQ(result->program.blocks[0].ops.back().type, "fetch");
}

TEST(PipelineTest, PassesCanBeDisabledByName) {
  const auto passes = DefaultPipeline({.disable = {"insert_feed_fetch"}});
  ASSERT_TRUE(passes.ok());
  EXPECT_THAT(Names(*passes), Not(Contains("insert_feed_fetch")));
}

TEST(PipelineTest, UnknownNamesListThePasses) {
  const auto passes = DefaultPipeline({.disable = {"inplase"}});
  EXPECT_EQ(passes.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(passes.status().message()),
              HasSubstr("no pass named 'inplase' to disable; passes are insert_feed_fetch"));
  EXPECT_FALSE(DefaultPipeline({.print_after = {"x"}}).ok());
  EXPECT_TRUE(DefaultPipeline({.print_after = {"all"}}).ok());
  EXPECT_FALSE(DefaultPipeline({.disable = {"all"}}).ok());
}

// Counts its runs in the version of the program.
absl::StatusOr<Program> CountRun(Program program, const PassContext& /*context*/) {
  ++program.version;
  return program;
}

TEST(PipelineTest, ExtraPassesRunWhereTheCallerPutsThem) {
  const Pass first = {"first_of_mine", "counts", CountRun};
  const Pass second = {"second_of_mine", "counts", CountRun};
  const Pass last = {"last_of_mine", "counts", CountRun};
  PipelineOptions options{.extra = {{first, "prune"}, {second, "prune"}, {last, ""}},
                          .print = nullptr};
  const auto passes = DefaultPipeline(options);
  ASSERT_TRUE(passes.ok()) << passes.status();
  const std::vector<absl::string_view> names = Names(*passes);
  const auto prune = std::find(names.begin(), names.end(), "prune");
  ASSERT_GE(prune - names.begin(), 2);
  EXPECT_EQ(*(prune - 2), "first_of_mine");
  EXPECT_EQ(*(prune - 1), "second_of_mine");
  EXPECT_EQ(names.back(), "last_of_mine");
  const int64_t version = Chain().version;
  EXPECT_EQ(RunPipeline(Chain(), Context(), options)->program.version, version + 3);
  options.disable = {"second_of_mine"};
  EXPECT_EQ(RunPipeline(Chain(), Context(), options)->program.version, version + 2);
}

TEST(PipelineTest, NamesOfExtraPassesAreTheirOwn) {
  const auto error = [](const ExtraPass& extra) {
    return std::string(DefaultPipeline({.extra = {extra}, .print = nullptr}).status().message());
  };
  EXPECT_EQ(error({{"prune", "counts", CountRun}, ""}), "there are two passes named 'prune'");
  EXPECT_THAT(error({{"mine", "counts", CountRun}, "purne"}),
              HasSubstr("no pass named 'purne' to put 'mine' before; passes are"));
}

TEST(PipelineTest, PrintsAfterNamedPasses) {
  std::vector<std::string> printed;
  PipelineOptions options{.print_after = {"insert_feed_fetch"}};
  options.print = [&](absl::string_view pass, const Program& program) {
    printed.push_back(absl::StrCat(pass, " ", program.blocks[0].ops.size()));
  };
  ASSERT_TRUE(RunPipeline(Chain(), Context(), options).ok());
  EXPECT_THAT(printed, ElementsAre("insert_feed_fetch 4"));
}

TEST(PipelineTest, UnknownOpsAreReportedWhenTheyRemain) {
  const auto result =
      RunPipeline(*ParseProgram("block 0\n  var x float32[2]\n  tahn(X=x) -> (Out=z)"), Context());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("nearest: 'tanh'"));
}

TEST(PipelineTest, ABrokenProgramIsReportedAsSuch) {
  const auto result = RunPipeline(*ParseProgram("block 0\n  tanh(X=x) -> (Out=z)"), Context());
  EXPECT_EQ(result.status().message(),
            "block 0, op #0 tanh: input 'X' is 'x', which is not declared and which no earlier op "
            "writes");
}

TEST(PipelineTest, TellsWhatToFeedInsteadOfAReader) {
  PassContext context = Context();
  context.fetches = {"y"};
  context.feeds.emplace();
  const auto result = RunPipeline(*ParseProgram(R"(block 0
  var b reader persistable
  var image float32[2]
  read(Reader=b) -> (Out=[image, label])
  elementwise_add(X=image, Y=label) -> (Out=y)
)"),
                                  context);
  EXPECT_EQ(result.status().message(),
            "block 0, op #0 read: readers do not run here; feed 'image' and 'label' or fetch what "
            "does not need them");
}

TEST(PipelineTest, APassThatBreaksTheProgramIsNamed) {
  const Pass bad = {"bad", "drops the first op", [](Program program, const PassContext&) {
                      program.blocks[0].ops.erase(program.blocks[0].ops.begin());
                      return absl::StatusOr<Program>(std::move(program));
                    }};
  const auto result = RunPasses(Chain(), Context(), {bad});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(result.status().message(),
            "pass 'bad' broke the program: block 0, op #0 tanh: input 'X' is 'y', which is not "
            "declared and which no earlier op writes");
  EXPECT_TRUE(RunPasses(Chain(), Context(), {bad}, {.verify = false}).ok());
}

}  // namespace
}  // namespace interp
