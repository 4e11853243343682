// The example two_devices: its simulated times do not depend on the machine.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/testing/command.h"

namespace interp::testing {
namespace {

double NumberBefore(const std::string& text, const std::string& what) {
  const size_t at = text.find(what);
  if (at == std::string::npos) return -1;
  return std::atof(text.c_str() + text.rfind('\n', at) + 1);
}

TEST(TwoDevicesTest, TwoDevicesAreNearlyTwiceAsFastAndGiveTheSame) {
  const CommandResult result = RunProgram("examples/two_devices", {});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GE(NumberBefore(result.out, " x one device"), 1.8) << result.out;
  const std::string label = "weights differ by ";
  const size_t at = result.out.find(label);
  ASSERT_NE(at, std::string::npos) << result.out;
  EXPECT_LT(std::atof(result.out.c_str() + at + label.size()), 1e-5) << result.out;
}

}  // namespace
}  // namespace interp::testing
