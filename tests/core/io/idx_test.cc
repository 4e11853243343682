#include "core/io/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/matchers.h"

namespace interp {
namespace {

using testing::FailsWith;
using testing::IsOk;

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

const std::string& Images() {
  static const auto& file = *new std::string(
      Bytes({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 253, 254, 255}));
  return file;
}

TEST(Idx, ReadsBytes) {
  ASSERT_TRUE(IsIdx(Images()));
  const auto tensor = ParseIdx(Images());
  ASSERT_THAT(tensor, IsOk());
  EXPECT_EQ(tensor->dtype, DType::kUInt8);
  EXPECT_EQ(tensor->shape, (Shape{2, 1, 3}));
  EXPECT_EQ(tensor->data<uint8_t>()[5], 255);
}

TEST(Idx, TurnsBigEndianRound) {
  const auto ints = ParseIdx(Bytes({0, 0, 0x0C, 1, 0, 0, 0, 2, 0, 0, 1, 2, 255, 255, 255, 254}));
  ASSERT_THAT(ints, IsOk());
  EXPECT_EQ(ints->data<int32_t>()[0], 258);
  EXPECT_EQ(ints->data<int32_t>()[1], -2);
  const auto floats = ParseIdx(Bytes({0, 0, 0x0D, 1, 0, 0, 0, 1, 0x3F, 0x80, 0, 0}));
  ASSERT_THAT(floats, IsOk());
  EXPECT_EQ(floats->data<float>()[0], 1.0F);
}

TEST(Idx, EveryCutOffFileIsAnError) {
  for (size_t size = 0; size < Images().size(); ++size) {
    EXPECT_FALSE(ParseIdx(Images().substr(0, size)).ok()) << size;
  }
  EXPECT_THAT(ParseIdx(Images() + "x"),
              FailsWith(absl::StatusCode::kDataLoss, "has 7 bytes of elements, expected"));
}

TEST(Idx, ClaimsOfMemoryAreChecked) {
  const std::string huge = Bytes({0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 1});
  EXPECT_THAT(ParseIdx(huge), FailsWith(absl::StatusCode::kDataLoss, "elements"));
  EXPECT_THAT(ParseIdx(Images(), 5), FailsWith(absl::StatusCode::kResourceExhausted, "more than"));
  EXPECT_THAT(ParseIdx(Bytes({0, 0, 7, 1, 0, 0, 0, 0})),
              FailsWith(absl::StatusCode::kUnimplemented, "type 7"));
}

}  // namespace
}  // namespace interp
