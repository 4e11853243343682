// The command `interp bench`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "nlohmann/json.hpp"
#include "tests/testing/command.h"

namespace interp::testing::bench_test {
namespace {

using ::testing::HasSubstr;

const std::string kDigits = std::string(INTERP_SOURCE_DIR) + "/tools/digits";

TEST(BenchTest, MeasuresEveryNumberOfStreamsWithEveryBatch) {
  const CommandResult result = RunInterp(
      {"bench", kDigits, "--streams", "1,2", "--batch", "1,3", "--duration", "20ms", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  ASSERT_EQ(report["results"].size(), 4u);
  const auto& last = report["results"][3];
  EXPECT_EQ(last["streams"], 2);
  EXPECT_EQ(last["batch"], 3);
  EXPECT_GT(last["runs"], 0);
  EXPECT_NEAR(last["items_per_s"].get<double>(), 3 * last["runs_per_s"].get<double>(), 1e-6);
  EXPECT_LE(last["latency_ms"]["p50"], last["latency_ms"]["p99"]);
  int64_t runs = 0;
  for (const auto& bucket : last["histogram"]) runs += bucket["runs"].get<int64_t>();
  EXPECT_EQ(last["runs"], runs);
}

TEST(BenchTest, SaysWhatOverloadLeavesUndone) {
  const CommandResult result = RunInterp(
      {"bench", kDigits, "--streams", "1", "--rate", "1000000", "--duration", "20ms", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(nlohmann::json::parse(result.out)["results"][0]["late"], 0);
}

TEST(BenchTest, TheTextHasATableAndAHistogram) {
  const CommandResult result =
      RunInterp({"bench", kDigits, "--streams", "2", "--duration", "20ms"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("streams  threads  batch"));
  EXPECT_THAT(result.out, HasSubstr("\nbest: "));
  EXPECT_THAT(result.out, HasSubstr("from ms"));
}

TEST(BenchTest, BadRequestsAreUsageErrors) {
  const auto error = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"bench", kDigits, "--duration", "20ms"});
    const CommandResult result = RunInterp(flags);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_THAT(error({"--streams", "0"}), HasSubstr("--streams: expected numbers from 1 to 1024"));
  EXPECT_THAT(error({"--batch", "1,x"}), HasSubstr("--batch: expected numbers from 1"));
  EXPECT_THAT(error({"--batch", "2", "--feed", "image=random:3x1x28x28"}),
              HasSubstr("--batch repeats feeds of one item, but 'image' has 3"));
  EXPECT_THAT(error({"--rate", "0"}), HasSubstr("'0' is no number above 0"));
  EXPECT_THAT(error({"--fetch", "nothing"}), HasSubstr("no variable 'nothing'"));
}

}  // namespace
}  // namespace interp::testing::bench_test
