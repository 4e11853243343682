// The example engine_cases: what holds of its output under any timing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/command.h"

namespace interp::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(EngineCasesTest, ShowsWhatHoldsUnderAnyTiming) {
  const CommandResult result = RunProgram("examples/engine_cases", {});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  // The readers of A come in either order.
  EXPECT_THAT(result.out, AnyOf(HasSubstr("order: A = 2, B = A + 1, C = A + 2, free A\n"),
                                HasSubstr("order: A = 2, C = A + 2, B = A + 1, free A\n")));
  EXPECT_THAT(result.out, HasSubstr("B = 3, C = 4, A is freed\n"));

  const std::string numbers = ": 1097 1058 1014 1077 1005 1034\n";
  for (const char* engine :
       {"on the pushing thread", "one worker", "four workers", "four workers, once more"}) {
    EXPECT_THAT(result.out, HasSubstr(engine + numbers));
  }

  EXPECT_THAT(result.out, HasSubstr("variable 'A': version 0, 1 granted, 4 waiting\n"
                                    "  #1 'A = 1' write, granted; running\n"
                                    "  #2 'B = A + 1' read, waiting; blocked by 1\n"
                                    "  #3 'C = A + 2' read, waiting; blocked by 1\n"
                                    "  #4 'A = C * 2' write, waiting; blocked by 2\n"
                                    "  #5 'D = A + 3' read, waiting; blocked by 1\n"
                                    "variable 'B': version 0, 1 granted, 0 waiting\n"
                                    "  #2 'B = A + 1' write, granted; blocked by 1\n"
                                    "variable 'C': version 0, 1 granted, 1 waiting\n"
                                    "  #3 'C = A + 2' write, granted; blocked by 1\n"
                                    "  #4 'A = C * 2' read, waiting; blocked by 2\n"
                                    "variable 'D': version 0, 1 granted, 0 waiting\n"
                                    "  #5 'D = A + 3' write, granted; blocked by 1\n"));
  const std::string end = ", A = C * 2, D = A + 3\nA = 6, B = 2, C = 3, D = 9\n";
  EXPECT_THAT(result.out, AnyOf(HasSubstr("order: A = 1, B = A + 1, C = A + 2" + end),
                                HasSubstr("order: A = 1, C = A + 2, B = A + 1" + end)));
}

}  // namespace
}  // namespace interp::testing
