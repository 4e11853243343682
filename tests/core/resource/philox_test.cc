#include "core/resource/philox.h"

#include <gtest/gtest.h>

namespace interp {
namespace {

// The known answers that Random123 publishes for philox4x32-10 (its file kat_vectors).
static_assert(Philox4x32({0, 0, 0, 0}, {0, 0}) ==
              PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                         {0xffffffff, 0xffffffff}) ==
              PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});

TEST(Philox, GivesTheKnownAnswers) {
  const PhiloxBlock digits_of_pi = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
  const PhiloxBlock expected = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  EXPECT_EQ(Philox4x32(digits_of_pi, {0xa4093822, 0x299f31d0}), expected);
}

}  // namespace
}  // namespace interp
