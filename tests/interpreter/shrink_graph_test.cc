#include "tests/testing/shrink_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/program_parse.h"
#include "core/program_print.h"
#include "tests/testing/differential.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

int CountOf(const Program& program, absl::string_view type) {
  const std::vector<Op>& ops = program.blocks[0].ops;
  return static_cast<int>(
      std::count_if(ops.begin(), ops.end(), [&](const Op& op) { return op.type == type; }));
}

TEST(ShrinkGraphTest, KeepsWhatTheFailureNeeds) {
  const DifferentialCase test = MakeCase(7, {.num_ops = 80, .num_devices = 2});
  const auto needs_two = [](const ShrunkProgram& candidate) {
    return CountOf(candidate.program, "view") >= 1 && CountOf(candidate.program, "split2") >= 1;
  };
  ASSERT_TRUE(needs_two({test.program, {}}));
  const ShrunkProgram small = Shrink(test.program, needs_two);
  EXPECT_TRUE(needs_two(small));
  EXPECT_EQ(CountOf(small.program, "view"), 1);
  EXPECT_EQ(CountOf(small.program, "split2"), 1);
  EXPECT_EQ(CountOf(small.program, "fetch"), 0);
  EXPECT_LE(small.program.blocks[0].ops.size(), 6u) << ToText(small.program);
}

TEST(ShrinkGraphTest, CandidatesAreProgramsThatRun) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const DifferentialCase test = MakeCase(seed, {.num_ops = 40});
    int tries = 0;
    Shrink(test.program, [&](const ShrunkProgram& candidate) {
      DifferentialCase smaller = test;
      smaller.program = candidate.program;
      for (std::vector<Tensor>& run : smaller.feeds) {
        std::vector<Tensor> kept;
        for (const int32_t column : candidate.feeds) kept.push_back(run[column]);
        run = std::move(kept);
      }
      const absl::StatusOr<Expected> expected = RunReference(smaller);
      EXPECT_THAT(expected, IsOk()) << ToText(candidate.program);
      return ++tries % 8 == 0;  // whatever
    });
    EXPECT_GT(tries, 10);
  }
}

TEST(ShrinkGraphTest, FeedsAreCountedAnew) {
  const DifferentialCase test = MakeCase(3, {.num_ops = 30, .num_feeds = 4});
  const auto reads_last_feed = [](const ShrunkProgram& candidate) {
    const VarId x2 = candidate.program.Find("x2");
    const std::vector<Op>& ops = candidate.program.blocks[0].ops;
    return std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
      return op.type == "feed" && op.outputs[0].args[0] == x2;
    });
  };
  const ShrunkProgram small = Shrink(test.program, reads_last_feed);
  EXPECT_THAT(small.feeds, ElementsAre(2));
  ASSERT_EQ(small.program.blocks[0].ops.size(), 1u);
  EXPECT_EQ(std::get<int32_t>(small.program.blocks[0].ops[0].FindAttr("col")->value), 0);
  EXPECT_EQ(small.program.blocks[0].vars.size(), 2u);  // x2 and the list of feeds
}

TEST(ShrinkGraphTest, ArgumentsGoToo) {
  const auto program = ParseProgram(R"(block 0
  var x int64[2] persistable
  var y int64[2] persistable
  mix(X=[x, y, x]) -> (Out=a)
  mix(X=[x, a, y]) -> (Out=b)
)");
  ASSERT_THAT(program, IsOk());
  const ShrunkProgram small = Shrink(*program, [](const ShrunkProgram& candidate) {
    return !candidate.program.blocks[0].ops.empty() &&
           candidate.program.NameOf(candidate.program.blocks[0].ops.back().outputs[0].args[0]) ==
               "b" &&
           CountOf(candidate.program, "mix") == 2;
  });
  EXPECT_EQ(ToText(small.program, small.program.blocks[0].ops[0]), "mix(X=x) -> (Out=a)");
  EXPECT_EQ(ToText(small.program, small.program.blocks[0].ops[1]), "mix(X=x) -> (Out=b)");
}

TEST(ShrinkGraphTest, TriesAreBounded) {
  const DifferentialCase test = MakeCase(5, {.num_ops = 60});
  int tries = 0;
  Shrink(
      test.program, [&](const ShrunkProgram&) { return ++tries < 0; }, /*max_tries=*/9);
  EXPECT_EQ(tries, 9);
}

// What a failing seed shows.
TEST(ShrinkGraphTest, DifferentialTestsShowTheSmallestProgram) {
  const DifferentialCase test = MakeCase(11, {.num_ops = 50, .images = false});
  const absl::StatusOr<Expected> expected = RunReference(test);
  ASSERT_THAT(expected, IsOk());
  Variant variant = HostVariants()[0];
  variant.options.fail_allocation = [](size_t /*bytes*/) { return true; };
  ::testing::TestPartResultArray failures;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &failures);
    ExpectAgreement(variant, test, *expected);
  }
  ASSERT_EQ(failures.size(), 1);
  const std::string message = failures.GetTestPartResult(0).message();
  EXPECT_THAT(message, HasSubstr("trace: RESOURCE_EXHAUSTED"));
  const size_t begin = message.find("block 0");
  ASSERT_NE(begin, std::string::npos) << message;
  const std::string program = message.substr(begin, message.find("block 0", begin + 1) - begin);
  EXPECT_LE(std::count(program.begin(), program.end(), '\n'), 10) << message;
}

}  // namespace
}  // namespace interp::testing
