#include "tools/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace interp {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ParseBytesTest, SuffixesArePowersOf1024) {
  EXPECT_EQ(*ParseBytes("512"), 512u);
  EXPECT_EQ(*ParseBytes("64K"), 64u << 10);
  EXPECT_EQ(*ParseBytes("1.5g"), 3u << 29);
  EXPECT_EQ(*ParseBytes("2MiB"), 2u << 20);
  EXPECT_EQ(*ParseBytes("7B"), 7u);
}

TEST(ParseBytesTest, RefusesWhatIsNoAmount) {
  for (const char* text : {"", "K", "-1", "1X", "nan", "1e40", "inf", "12 M B", "0x10"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
  EXPECT_THAT(std::string(ParseBytes("lots").status().message()), HasSubstr("'lots' is no amount"));
}

TEST(FormatBytesTest, ThreeDigitsOfTheLargestUnit) {
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(uint64_t{3} << 30), "3.00 GiB");
}

TEST(ParseDurationTest, UnitsOrSeconds) {
  EXPECT_EQ(*ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(*ParseDuration("2.5s"), milliseconds(2500));
  EXPECT_EQ(*ParseDuration("2.5"), milliseconds(2500));
}

TEST(ParseDurationTest, RefusesWhatIsNotPositive) {
  for (const char* text : {"", "0", "-1s", "soon", "nan", "inf", "1e300", "0x3"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

TEST(CountedTest, OneThingIsNotSeveral) {
  EXPECT_EQ(Counted(1, "epoch"), "1 epoch");
  EXPECT_EQ(Counted(0, "epoch"), "0 epochs");
  EXPECT_EQ(Counted(1, "fetch"), "1 fetch");
  EXPECT_EQ(Counted(2, "fetch"), "2 fetches");
  EXPECT_EQ(Counted(2, "box"), "2 boxes");
}

TEST(ParseDimsTest, SeparatedByAnX) {
  EXPECT_THAT(*ParseDims("1x3x224x224"), ElementsAre(1, 3, 224, 224));
  EXPECT_THAT(*ParseDims("0"), ElementsAre(0));
  EXPECT_THAT(*ParseDims(""), IsEmpty());
  for (const char* text : {"x", "1x", "-1x3", "1x3.5", "99999999999999999999"}) {
    EXPECT_FALSE(ParseDims(text).ok()) << text;
  }
}

}  // namespace
}  // namespace interp
