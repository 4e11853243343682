// The example two_devices: its simulated times do not depend on the machine.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/testing/command.h"

namespace interp::testing {
namespace {

// Of the row that starts with `what`; 0: there is none.
double GainOf(const std::string& text, const std::string& what) {
  const size_t at = text.find("\n" + what);
  const size_t gain = at == std::string::npos ? at : text.find(" x ", at);
  return gain == std::string::npos ? 0 : std::atof(text.c_str() + text.rfind("us", gain) + 2);
}

TEST(TwoDevicesTest, TwoDevicesAreNearlyTwiceAsFastAndGiveTheSame) {
  const TemporaryFolder folder;
  const CommandResult result = RunProgram("examples/two_devices", {folder / ""});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GE(GainOf(result.out, "2 devices, engine"), 1.8) << result.out;
  EXPECT_GE(GainOf(result.out, "2 devices, plan"), 1.8) << result.out;
  const std::string label = "weights differ by ";
  const size_t at = result.out.find(label);
  ASSERT_NE(at, std::string::npos) << result.out;
  EXPECT_LT(std::atof(result.out.c_str() + at + label.size()), 1e-5) << result.out;
  for (const std::string name : {"one.json", "engine.json", "plan.json"}) {
    std::ifstream file(folder / name);
    const nlohmann::json trace = nlohmann::json::parse(file);
    EXPECT_GT(trace["traceEvents"].size(), 50U) << name;
  }
}

}  // namespace
}  // namespace interp::testing
