#include "core/io/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/io/file.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_folder.h"

namespace interp::npy_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Values;

// A file of format version 1 with this header text.
std::string File(absl::string_view header, absl::string_view elements) {
  const char length[] = {static_cast<char>(header.size() & 255),
                         static_cast<char>(header.size() >> 8)};
  return absl::StrCat(absl::string_view("\x93NUMPY\x01\0", 8), absl::string_view(length, 2), header,
                      elements);
}

std::string HeaderOf(absl::string_view descr, absl::string_view shape,
                     absl::string_view fortran = "False") {
  return absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", fortran, ", 'shape': ", shape,
                      ", }\n");
}

Tensor MustParse(absl::string_view file) {
  const absl::StatusOr<Tensor> tensor = ParseNpy(file);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.value_or(Tensor());
}

std::string MessageOf(absl::string_view file) {
  return std::string(ParseNpy(file).status().message());
}

std::string ErrorOfHeader(absl::string_view header) { return MessageOf(File(header, "")); }

// What numpy.save makes of np.asfortranarray(np.arange(6, dtype='>i2').reshape(2, 3)).
TEST(NpyTest, ReadsBigEndianFortranOrderFromNumPy) {
  const std::string file =
      File(HeaderOf(">i2", "(2, 3)", "True"), absl::string_view("\0\0\0\3\0\1\0\4\0\2\0\5", 12));
  const Tensor tensor = MustParse(file);
  EXPECT_EQ(tensor.shape, (Shape{2, 3}));
  EXPECT_THAT(Values<int16_t>(tensor), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(NpyTest, ReadsFortranOrderOfRankThree) {
  const std::string file =
      File(HeaderOf("|i1", "(2, 2, 2)", "True"), absl::string_view("\0\4\2\6\1\5\3\7", 8));
  EXPECT_THAT(Values<int8_t>(MustParse(file)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(NpyTest, ReadsAllVersions) {
  const std::string header = HeaderOf("|u1", "(2,)");
  const std::string v1 = File(header, "ab");
  EXPECT_THAT(Values<uint8_t>(MustParse(v1)), ElementsAre('a', 'b'));
  for (const char version : {'\2', '\3'}) {
    std::string file = v1;
    file[6] = version;
    file.insert(10, 2, '\0');  // the length has four bytes
    EXPECT_THAT(Values<uint8_t>(MustParse(file)), ElementsAre('a', 'b'));
  }
}

TEST(NpyTest, ReadsWhatPythonWouldTakeForTheSameDictionary) {
  EXPECT_EQ(MustParse(File("{\"shape\":(),'fortran_order':False,'descr':'|u1'}", "a")).shape,
            Shape());
  EXPECT_EQ(
      MustParse(File("{'shape': (1L, 2L), 'descr': '<u1', 'fortran_order': True}  ", "ab")).shape,
      (Shape{1, 2}));
}

TEST(NpyTest, SwapsTheHalvesOfComplexNumbersOnTheirOwn) {
  const std::string file =
      File(HeaderOf(">c8", "()"), absl::string_view("\x3f\x80\0\0\x40\0\0\0", 8));
  EXPECT_THAT(Values<std::complex<float>>(MustParse(file)), ElementsAre(std::complex<float>(1, 2)));
}

TEST(NpyTest, BoolsBecomeZeroOrOne) {
  const Tensor tensor = MustParse(File(HeaderOf("|b1", "(3,)"), absl::string_view("\0\1\2", 3)));
  EXPECT_EQ(std::memcmp(tensor.raw_data(), "\0\1\1", 3), 0);
}

TEST(NpyTest, BFloat16IsUInt16) {
  for (const absl::string_view descr : {"<u2", "|V2"}) {
    const Tensor tensor =
        MustParse(File(HeaderOf(descr, "(1,)"), absl::string_view("\x80\x3f", 2)));
    EXPECT_EQ(tensor.dtype, DType::kBFloat16);
    EXPECT_EQ(static_cast<float>(tensor.data<bfloat16>()[0]), 1.0f);
  }
}

// Shares a buffer where the elements are usable as they lie.
TEST(NpyTest, SharesABufferWhenItCan) {
  const auto parse = [](const std::string& file) {
    BufferRef buffer = *SystemAllocator().Allocate(file.size());
    std::memcpy(buffer->data, file.data(), file.size());
    const absl::StatusOr<Tensor> tensor = ParseNpy(buffer);
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return std::pair(tensor->buffer().get() == buffer.get(), *tensor);
  };
  const NpyParts parts = *FormatNpy(Tensor::Of<float>({2}, {1, 2}));
  const auto [shared, tensor] = parse(absl::StrCat(parts.header, parts.element_bytes()));
  EXPECT_TRUE(shared);
  EXPECT_THAT(Values<float>(tensor), ElementsAre(1, 2));

  const std::string odd = HeaderOf("<f4", "(1,) ");
  const auto [unaligned_shared, unaligned] =
      parse(File(odd.size() % 2 == 0 ? odd + " " : odd, absl::string_view("\0\0\x80\x3f", 4)));
  EXPECT_FALSE(unaligned_shared);
  EXPECT_THAT(Values<float>(unaligned), ElementsAre(1));
}

TEST(NpyTest, WritesWhatNumPyWrites) {
  const NpyParts parts = *FormatNpy(Tensor::Of<int8_t>({2}, {1, 2}));
  const std::string text = "{'descr': '|i1', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(parts.header, File(text + std::string(118 - text.size() - 1, ' ') + "\n", ""));
  EXPECT_THAT(FormatNpy(Tensor::Of<float>({}, {1}))->header, HasSubstr("'<f4'"));
  EXPECT_THAT(FormatNpy(Tensor::Of<float>({}, {1}))->header, HasSubstr("'shape': (), }"));
  EXPECT_THAT(FormatNpy(Tensor::Of<float>({0, 3}, {}))->header, HasSubstr("'shape': (0, 3), }"));
}

template <typename T>
void ExpectRoundTrip(const testing::TempFolder& folder, const Tensor& tensor) {
  const std::string path = folder / "a.npy";
  ASSERT_TRUE(WriteNpy(path, tensor).ok());
  const absl::StatusOr<Tensor> back = ReadNpy(path);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(DescribeType(*back), DescribeType(tensor));
  EXPECT_EQ(std::memcmp(back->raw_data(), tensor.raw_data(), tensor.size_bytes()), 0);
}

template <typename T>
void ExpectRoundTrips(const testing::TempFolder& folder) {
  ExpectRoundTrip<T>(folder, Tensor::Of<T>({2, 1}, {T(1), T(0)}));
  ExpectRoundTrip<T>(folder, Tensor::Of<T>({}, {T(1)}));
  ExpectRoundTrip<T>(folder, Tensor::Of<T>({0}, {}));
  ExpectRoundTrip<T>(folder, Tensor::Of<T>({1, 1, 1, 1, 1, 1, 1, 1, 1}, {T(1)}));
}

TEST(NpyTest, FilesRoundTrip) {
  const testing::TempFolder folder;
  ExpectRoundTrips<int8_t>(folder);
  ExpectRoundTrips<uint8_t>(folder);
  ExpectRoundTrips<int16_t>(folder);
  ExpectRoundTrips<int32_t>(folder);
  ExpectRoundTrips<int64_t>(folder);
  ExpectRoundTrips<float16>(folder);
  ExpectRoundTrips<bfloat16>(folder);
  ExpectRoundTrips<float>(folder);
  ExpectRoundTrips<double>(folder);
  ExpectRoundTrips<std::complex<float>>(folder);
  ExpectRoundTrips<std::complex<double>>(folder);
  const bool bools[] = {true, false};
  ExpectRoundTrip<bool>(folder, Tensor::Of<bool>({2}, bools));
}

TEST(NpyTest, ChannelsLastIsWrittenPlain) {
  Tensor tensor = Tensor::Of<int8_t>({1, 2, 1, 2}, {1, 10, 2, 20});
  tensor.layout = Layout::kChannelsLast;
  EXPECT_EQ(FormatNpy(tensor)->element_bytes(), absl::string_view("\1\2\12\24", 4));
}

TEST(NpyTest, WhatCannotBeWrittenIsAnError) {
  const testing::TempFolder folder;
  Tensor tensor;
  tensor.dtype = DType::kFloat32;
  tensor.shape = {2};
  EXPECT_EQ(WriteNpy(folder / "a", tensor).message(),
            (folder / "a") + ": a tensor of float32[2] has no memory to write");
  tensor.dtype = DType::kFloat8E4M3;
  ASSERT_TRUE(tensor.Allocate(SystemAllocator()).ok());
  EXPECT_EQ(WriteNpy(folder / "a", tensor).message(),
            (folder / "a") + ": a tensor of float8_e4m3fn cannot be stored as .npy");
}

TEST(NpyTest, DamagedPrefixesAreErrors) {
  EXPECT_EQ(MessageOf(""), "byte 0: no .npy file");
  EXPECT_EQ(MessageOf("PK\3\4 and so on"), "byte 0: no .npy file");
  EXPECT_EQ(MessageOf("\x93NUMPY"), "byte 6: the file ends here");
  EXPECT_EQ(MessageOf(absl::string_view("\x93NUMPY\1\0\1", 9)), "byte 9: the file ends here");
  EXPECT_EQ(MessageOf(absl::string_view("\x93NUMPY\4\0\1\0\0\0", 12)),
            "byte 6: format version 4.0, expected 1.0 to 3.0");
  EXPECT_EQ(MessageOf(absl::string_view("\x93NUMPY\2\0\xff\xff\xff\xff{", 13)),
            "byte 8: a header of 4294967295 bytes, but only 1 are left");
}

TEST(NpyTest, DamagedHeadersAreErrors) {
  EXPECT_EQ(ErrorOfHeader(""), "byte 10: the header ends before '{'");
  EXPECT_EQ(ErrorOfHeader("{'descr': '<f4',"), "byte 26: the header ends before a string");
  EXPECT_EQ(ErrorOfHeader("{'descr' '<f4'}"), "byte 19: found '\\'', expected ':'");
  EXPECT_EQ(ErrorOfHeader("{'descr"), "byte 11: a string does not end");
  EXPECT_EQ(ErrorOfHeader("{'descr': '<f4'}"),
            "byte 26: the header lacks one of 'descr', 'fortran_order' and 'shape'");
  EXPECT_EQ(ErrorOfHeader("{'descr': '<f4', 'descr': '<f4'}"),
            "byte 35: key 'descr' appears twice");
  EXPECT_EQ(ErrorOfHeader("{'x': 1}"), "byte 15: unknown key 'x'");
  EXPECT_EQ(ErrorOfHeader("{'fortran_order': None}"), "byte 28: found 'N', expected True or False");
  EXPECT_EQ(ErrorOfHeader(HeaderOf("<f4", "()") + "x"),
            "byte 66: found 'x', expected the end of the header");
  EXPECT_EQ(ErrorOfHeader(HeaderOf("<f4", "2")), "byte 60: found '2', expected '('");
  EXPECT_EQ(ErrorOfHeader(HeaderOf("<f4", "(2")), "byte 64: found '}', expected a dim");
  EXPECT_EQ(ErrorOfHeader(HeaderOf("<f4", "(2 3)")), "byte 63: found '3', expected ',' or ')'");
}

TEST(NpyTest, OtherTypesAreErrors) {
  for (const absl::string_view descr : {"<u4", "|O", "<U8", "|S3", "<f16", "<M8[ns]", "", "<"}) {
    EXPECT_EQ(ErrorOfHeader(HeaderOf(descr, "()")),
              absl::StrCat("arrays of type '", descr, "' are not supported"));
  }
  EXPECT_EQ(ErrorOfHeader("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"),
            "arrays of records are not supported");
}

TEST(NpyTest, ImpossibleShapesAreErrors) {
  EXPECT_EQ(ErrorOfHeader(HeaderOf("<f4", "(-1,)")), "byte 61: found '-', expected a dim");
  EXPECT_EQ(ErrorOfHeader(HeaderOf("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1)")),
            "byte 89: the array has more than 9 dims");
  EXPECT_EQ(ErrorOfHeader(HeaderOf("<f4", "(99999999999999999999,)")),
            "byte 81: a dim does not fit into 64 bits");
  EXPECT_EQ(ErrorOfHeader(HeaderOf("<f4", "(4294967296, 4294967296)")),
            "shape [4294967296,4294967296] is too large for memory");
}

TEST(NpyTest, SizesMustAgree) {
  EXPECT_EQ(MessageOf(File(HeaderOf("<f4", "(2,)"), "1234567")),
            "byte 68: 7 bytes of elements, expected 8 for float32[2]");
  EXPECT_EQ(MessageOf(File(HeaderOf("<f4", "(2,)"), "123456789")),
            "byte 68: 9 bytes of elements, expected 8 for float32[2]");
  EXPECT_EQ(MessageOf(File(HeaderOf("|i1", "(1000000000000,)"), "1")),
            "byte 80: 1 bytes of elements, expected 1000000000000 for int8[1000000000000]");
}

TEST(NpyTest, FilesBeyondTheLimitAreRefused) {
  const testing::TempFolder folder;
  const std::string path = folder / "a.npy";
  ASSERT_TRUE(WriteNpy(path, Tensor::Of<float>({4}, {1, 2, 3, 4})).ok());
  EXPECT_TRUE(ReadNpy(path, 144).ok());
  EXPECT_EQ(ReadNpy(path, 143).status().message(),
            absl::StrCat(path, ": has 144 bytes, the limit is 143"));
}

TEST(NpyTest, ErrorsOfFilesStartWithThePath) {
  const testing::TempFolder folder;
  absl::StatusOr<FileWriter> file = FileWriter::Create(folder / "a.npy");
  ASSERT_TRUE(file.ok() && file->Append("text").ok() && file->Commit().ok());
  EXPECT_EQ(ReadNpy(folder / "a.npy").status().message(),
            (folder / "a.npy") + ": byte 0: no .npy file");
}

}  // namespace
}  // namespace interp::npy_test
