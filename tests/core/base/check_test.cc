#include "core/base/check.h"

#include <gtest/gtest.h>

namespace interp::testing {
namespace {

TEST(CheckDeathTest, SaysWhatDoesNotHold) {
  const int size = 3;
  INTERP_CHECK(size == 3);
  EXPECT_DEATH(INTERP_CHECK(size == 4), "check_test.cc:[0-9]+: .* does not hold: size == 4");
}

}  // namespace
}  // namespace interp::testing
