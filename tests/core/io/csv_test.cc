#include "core/io/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using testing::IsOk;

template <typename T>
std::vector<T> Elements(const Tensor& tensor) {
  return std::vector<T>(tensor.data<T>(), tensor.data<T>() + tensor.numel());
}

TEST(Csv, GivesIntegersAndFloats) {
  const auto arrays = ParseCsv("x[0],label,x[1]\r\n0.5, 3,-1\r\n1e2,4,2\n\n");
  ASSERT_THAT(arrays, IsOk());
  ASSERT_EQ(arrays->size(), 2U);
  EXPECT_EQ((*arrays)[0].first, "x");
  EXPECT_EQ((*arrays)[0].second.shape, (Shape{2, 2}));
  EXPECT_THAT(Elements<double>((*arrays)[0].second), ElementsAre(0.5, -1, 100, 2));
  EXPECT_EQ((*arrays)[1].first, "label");
  EXPECT_EQ((*arrays)[1].second.shape, (Shape{2, 1}));
  EXPECT_THAT(Elements<int64_t>((*arrays)[1].second), ElementsAre(3, 4));
}

TEST(Csv, AMarkOfUtf8IsNoPartOfAName) {
  const auto arrays = ParseCsv("\xef\xbb\xbfx,y\n1,2\n");
  ASSERT_THAT(arrays, IsOk());
  EXPECT_EQ((*arrays)[0].first, "x");
}

TEST(Csv, NumbersThatAreNoIntegersInAnyLineMakeFloats) {
  const auto arrays = ParseCsv("a,b\n1,1e300\n2.5,7\n");
  ASSERT_THAT(arrays, IsOk());
  EXPECT_EQ((*arrays)[0].second.dtype, DType::kFloat64);
  EXPECT_EQ((*arrays)[1].second.dtype, DType::kFloat64);
}

// A double would round them.
TEST(Csv, IntegersOfAnySizeStayAsTheyAre) {
  const auto arrays = ParseCsv("a,b,c\n9007199254740993,1e3,-0\n-9223372036854775808,-2.0,0.5\n");
  ASSERT_THAT(arrays, IsOk());
  ASSERT_EQ((*arrays)[0].second.dtype, DType::kInt64);
  EXPECT_THAT(Elements<int64_t>((*arrays)[0].second),
              ElementsAre(9007199254740993, std::numeric_limits<int64_t>::min()));
  ASSERT_EQ((*arrays)[1].second.dtype, DType::kInt64);
  EXPECT_THAT(Elements<int64_t>((*arrays)[1].second), ElementsAre(1000, -2));
  ASSERT_EQ((*arrays)[2].second.dtype, DType::kFloat64);
  EXPECT_TRUE(std::signbit(Elements<double>((*arrays)[2].second)[0]));
}

// Of these nobody knows which integer was meant.
TEST(Csv, LargeNumbersThatAreNotWrittenAsIntegersAreFloats) {
  for (const char* number : {"9007199254740993.0", "9223372036854775808", "1e17"}) {
    const std::string text = absl::StrCat("a,b\n1,2\n3,", number, "\n");
    const auto arrays = ParseCsv(text);
    ASSERT_THAT(arrays, IsOk());
    EXPECT_EQ((*arrays)[1].second.dtype, DType::kFloat64) << number;
    EXPECT_THAT(ParseCsv(text, kMaxArrayBytes, {"b"}),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          absl::StrCat("line 3, column 2: '", number, "' is no int64, which ")));
    EXPECT_THAT(ParseCsv(text, kMaxArrayBytes, {"a"}), IsOk());
  }
  EXPECT_THAT(
      ParseCsv("a,b\n1,0.5\n", kMaxArrayBytes, {"b"}),
      FailsWith(absl::StatusCode::kInvalidArgument, "line 2, column 2: '0.5' is no integer"));
}

TEST(Csv, NumbersAreFinite) {
  for (const char* number : {"nan", "-inf", "1e999"}) {
    EXPECT_THAT(ParseCsv(absl::StrCat("a,b\n1,2\n", number, ",4\n")),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          absl::StrCat("line 3, column 1: '", number, "' is no finite number")));
  }
}

TEST(Csv, AHeaderAloneHasNoSamples) {
  const auto arrays = ParseCsv("a,b\n");
  ASSERT_THAT(arrays, IsOk());
  EXPECT_EQ((*arrays)[0].second.shape, (Shape{0, 1}));
}

TEST(Csv, SaysWhereItIsWrong) {
  const auto code = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ParseCsv(""), FailsWith(code, "is empty"));
  EXPECT_THAT(ParseCsv("a,,b\n"), FailsWith(code, "line 1: column 2 has no name"));
  EXPECT_THAT(ParseCsv("a[1]\n"), FailsWith(code, "column 1 is element 1 of 'a'"));
  EXPECT_THAT(ParseCsv("a[x]\n"), FailsWith(code, "expected NAME or NAME[i]"));
  EXPECT_THAT(ParseCsv("a,b\n1,2\n3,x\n"), FailsWith(code, "line 3, column 2: 'x' is no number"));
  EXPECT_THAT(ParseCsv("a,b\n1\n"), FailsWith(code, "line 2 has 1 cells, the header has 2"));
  EXPECT_THAT(ParseCsv("a\n1\n\n2\n"), FailsWith(code, "line 3"));
}

TEST(Csv, ArraysThatTakeTooMuchAreRefusedBeforeTheyAreMade) {
  EXPECT_EQ(ParseCsv("a,b\n1,2\n3,4\n", 32).status(), absl::OkStatus());
  EXPECT_EQ(ParseCsv("a,b\n1,2\n3,4\n", 31).status().message(),
            "the arrays would take 32 bytes, the limit is 31");
}

}  // namespace
}  // namespace interp
