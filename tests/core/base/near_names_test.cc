#include "core/base/near_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace interp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NearNamesTest, NearestFirst) {
  EXPECT_THAT(NearNames("hard_swish", {"relu", "hardswish", "hard_swsh_", "swish"}),
              ElementsAre("hardswish", "hard_swsh_", "swish"));
}

TEST(NearNamesTest, PartsLookAlike) {
  EXPECT_THAT(NearNames("conv2d_0", {"conv2d_0.tmp_0_with_a_long_tail", "x"}),
              ElementsAre("conv2d_0.tmp_0_with_a_long_tail"));
}

TEST(NearNamesTest, CharactersThatHaveChangedPlacesAreOneMistake) {
  EXPECT_THAT(NearNames("rnu", {"run", "info", "ops"}), ElementsAre("run"));
}

TEST(NearNamesTest, NothingAlikeGivesNoHint) {
  EXPECT_THAT(NearNames("image", {"softmax", "w"}), IsEmpty());
  EXPECT_EQ(NearNamesHint("image", {"softmax", "w"}), "");
  EXPECT_EQ(NearNamesHint("imag", {"image"}), "; nearest: 'image'");
}

TEST(NearNamesTest, AtMostThree) {
  EXPECT_EQ(NearNames("abc", {"abb", "abd", "abe", "abf"}).size(), 3u);
}

}  // namespace
}  // namespace interp
