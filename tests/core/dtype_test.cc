#include "core/dtype.h"

#include <gtest/gtest.h>

namespace interp {
namespace {

constexpr DType kAll[] = {
    DType::kBool,      DType::kInt16,      DType::kInt32,      DType::kInt64,     DType::kFloat16,
    DType::kFloat32,   DType::kFloat64,    DType::kUInt8,      DType::kInt8,      DType::kBFloat16,
    DType::kComplex64, DType::kComplex128, DType::kFloat8E4M3, DType::kFloat8E5M2};

TEST(DTypeTest, NamesAndCodesLeadBack) {
  for (const DType dtype : kAll) {
    EXPECT_EQ(DTypeFromName(Name(dtype)), dtype);
    EXPECT_EQ(DTypeFromCode(static_cast<int>(dtype)), dtype);
    EXPECT_GT(SizeOf(dtype), 0);
  }
}

TEST(DTypeTest, OtherNamesAndCodesAreNone) {
  EXPECT_EQ(DTypeFromName("float31"), std::nullopt);
  EXPECT_EQ(DTypeFromName("undefined"), std::nullopt);
  for (const int code : {-1, 7, 9, 17, 25, 29, 34, 1 << 30}) {
    EXPECT_EQ(DTypeFromCode(code), std::nullopt) << code;
  }
  EXPECT_EQ(SizeOf(DType::kUndefined), 0);
  EXPECT_EQ(Name(DType::kUndefined), "undefined");
}

TEST(DTypeTest, SizeTReadsAsInt64) { EXPECT_EQ(DTypeFromCode(19), DType::kInt64); }

template <typename T>
void ExpectStoredAs(DType dtype) {
  EXPECT_EQ(DTypeOf<T>, dtype);
  EXPECT_EQ(SizeOf(dtype), sizeof(T));
}

TEST(DTypeTest, CppTypesHaveTheSizeOfTheirDType) {
  ExpectStoredAs<bool>(DType::kBool);
  ExpectStoredAs<int8_t>(DType::kInt8);
  ExpectStoredAs<uint8_t>(DType::kUInt8);
  ExpectStoredAs<int16_t>(DType::kInt16);
  ExpectStoredAs<int32_t>(DType::kInt32);
  ExpectStoredAs<int64_t>(DType::kInt64);
  ExpectStoredAs<float16>(DType::kFloat16);
  ExpectStoredAs<bfloat16>(DType::kBFloat16);
  ExpectStoredAs<float>(DType::kFloat32);
  ExpectStoredAs<double>(DType::kFloat64);
  ExpectStoredAs<std::complex<float>>(DType::kComplex64);
  ExpectStoredAs<std::complex<double>>(DType::kComplex128);
}

TEST(DTypeTest, TellsFloatsFromTheRest) {
  EXPECT_TRUE(IsFloating(DType::kFloat16));
  EXPECT_TRUE(IsFloating(DType::kBFloat16));
  EXPECT_FALSE(IsFloating(DType::kInt32));
  EXPECT_FALSE(IsFloating(DType::kComplex64));
}

}  // namespace
}  // namespace interp
