// interp run --seed and --random-state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/testing/command.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;

class RandomStateCommandTest : public ::testing::Test {
 protected:
  RandomStateCommandTest() {
    std::ofstream(folder_ / "draw.txt") << "program version=0\n"
                                           "block 0\n"
                                           "  var u float32[4]\n"
                                           "  uniform_random() -> (Out=u) {shape=[4]}\n";
  }
  CommandResult Run(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"run", folder_ / "draw.txt", "--fetch", "u", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunInterp(arguments);
  }
  // What is fetched, as text.
  std::string Drawn(const std::vector<std::string>& more) const {
    const CommandResult result = Run(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    if (result.exit_code != 0) return "";
    return nlohmann::json::parse(result.out).at("fetches").dump();
  }
  std::string state() const { return folder_ / "state"; }

 private:
  TemporaryFolder folder_;
};

TEST_F(RandomStateCommandTest, SeedsDecideTheNumbers) {
  EXPECT_EQ(Drawn({"--seed", "7"}), Drawn({"--seed", "7"}));
  EXPECT_NE(Drawn({"--seed", "7"}), Drawn({"--seed", "8"}));
  EXPECT_EQ(Drawn({"--seed", "0"}), Drawn({}));
  EXPECT_EQ(Drawn({"--seed", "7", "--place", "sim:0"}), Drawn({"--seed", "7"}));
}

TEST_F(RandomStateCommandTest, AFileGoesOnWhereTheLastRunEnded) {
  const std::string third = Drawn({"--seed", "7", "--repeat", "2"});  // the first and two more
  EXPECT_EQ(Drawn({"--seed", "7", "--random-state", state()}), Drawn({"--seed", "7"}));
  Drawn({"--random-state", state()});
  EXPECT_EQ(Drawn({"--random-state", state()}), third);
  std::stringstream text;
  text << std::ifstream(state()).rdbuf();
  EXPECT_EQ(text.str(), "interp random state 1\nseed 7\nstream 0\nstep 3\n");
}

TEST_F(RandomStateCommandTest, RefusesWhatDoesNotFit) {
  Drawn({"--seed", "7", "--random-state", state()});
  const CommandResult other = Run({"--seed", "8", "--random-state", state()});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("goes on with seed 7, but --seed is 8"));
  std::ofstream(state()) << "something else";
  const CommandResult broken = Run({"--random-state", state()});
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_THAT(broken.err, HasSubstr("is no state of random numbers"));
}

}  // namespace
}  // namespace interp::testing
