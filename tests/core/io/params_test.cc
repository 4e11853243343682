#include "core/io/params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "absl/strings/escaping.h"
#include "core/io/file.h"
#include "core/program_parse.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_folder.h"

namespace interp::params_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempFolder;
using testing::Values;

std::string Hex(absl::string_view hex) {
  std::string digits;
  for (const char c : hex) {
    if (c != ' ') digits.push_back(c);
  }
  return absl::HexStringToBytes(digits);
}

// Heads of records as Paddle writes them; the elements follow.
std::string HeadOfMatrix() {  // float32[512,1024]
  return Hex("00000000 0000000000000000 00000000 08000000 0805 108004 108008");
}
std::string HeadOfVector() {  // float32[512]
  return Hex("00000000 0000000000000000 00000000 05000000 0805 108004");
}
std::string HeadOfScalar() {  // int64[]
  return Hex("00000000 0000000000000000 00000000 02000000 0803");
}
std::string HeadOfLodMatrix() {  // float32[5,2], LoD {0,2,5}
  return Hex(
      "00000000 0100000000000000 1800000000000000 0000000000000000 0200000000000000 "
      "0500000000000000 00000000 06000000 0805 1005 1002");
}

BufferRef Copy(absl::string_view bytes) {
  BufferRef buffer = *SystemAllocator().Allocate(bytes.size());
  std::memcpy(buffer->data, bytes.data(), bytes.size());
  return buffer;
}

absl::StatusOr<std::vector<NamedTensor>> Parse(absl::string_view file,
                                               absl::Span<const ParamDecl> params) {
  return ParseCombinedParams(Copy(file), params);
}

std::string MessageOf(absl::string_view file, absl::Span<const ParamDecl> params) {
  return std::string(Parse(file, params).status().message());
}

std::string Written(absl::Span<const NamedTensor> params) {
  const TempFolder folder;
  EXPECT_TRUE(WriteCombinedParams(folder / "p", params).ok());
  return *ReadFile(folder / "p");
}

void WriteFile(const std::string& path, absl::string_view bytes) {
  absl::StatusOr<FileWriter> file = FileWriter::Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Append(bytes).ok() && file->Commit().ok());
}

TEST(ParamsTest, ReadsRecordsOfPaddle) {
  const std::string file = HeadOfLodMatrix() + std::string(40, '\0') + HeadOfMatrix() +
                           std::string(512 * 1024 * 4, 'm') + HeadOfScalar() +
                           Hex("0700000000000000") + HeadOfVector() + std::string(512 * 4, 'v');
  const ParamDecl params[] = {{"a", DType::kFloat32, {-1, 2}},
                              {"b", DType::kFloat32, {512, 1024}},
                              {"c", DType::kInt64, {}},
                              {"d", DType::kFloat32, {-1}}};
  const absl::StatusOr<std::vector<NamedTensor>> tensors = Parse(file, params);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 4);
  EXPECT_EQ((*tensors)[0].first, "a");
  EXPECT_EQ(DescribeType((*tensors)[0].second), "float32[5,2]");
  EXPECT_EQ((*tensors)[0].second.lod, (Lod{{0, 2, 5}}));
  EXPECT_EQ(DescribeType((*tensors)[1].second), "float32[512,1024]");
  EXPECT_THAT(Values<int64_t>((*tensors)[2].second), ElementsAre(7));
  EXPECT_EQ(std::memcmp((*tensors)[3].second.raw_data(), "vvvv", 4), 0);
  EXPECT_EQ((*tensors)[3].first, "d");
}

TEST(ParamsTest, WritesRecordsOfPaddle) {
  Tensor lod_matrix = Tensor::Of<float>({5, 2}, std::vector<float>(10));
  lod_matrix.lod = {{0, 2, 5}};
  const NamedTensor params[] = {{"b", Tensor::Of<float>({512}, std::vector<float>(512))},
                                {"a", Tensor::Of<int64_t>({}, {7})},
                                {"B", lod_matrix}};
  EXPECT_EQ(Written(params), HeadOfLodMatrix() + std::string(40, '\0') + HeadOfScalar() +
                                 Hex("0700000000000000") + HeadOfVector() +
                                 std::string(512 * 4, '\0'));
}

TEST(ParamsTest, ReadsPackedDims) {
  const std::string file =
      Hex("00000000 0000000000000000 00000000 06000000 0814 1202 0103") + "abc";
  const absl::StatusOr<std::vector<NamedTensor>> tensors =
      Parse(file, {{"a", DType::kUInt8, {1, 3}}});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT(Values<uint8_t>((*tensors)[0].second), ElementsAre('a', 'b', 'c'));
}

template <typename T>
NamedTensor Filled(const std::string& name, const Shape& shape) {
  return {name, Tensor::Of<T>(shape, std::vector<T>(shape.numel(), T(1)))};
}

TEST(ParamsTest, AllDTypesRoundTrip) {
  const bool bools[] = {true, false};
  const std::vector<NamedTensor> params = {Filled<float16>("a", {3}),
                                           Filled<bfloat16>("b", {3}),
                                           {"c", Tensor::Of<bool>({2}, bools)},
                                           Filled<int8_t>("d", {1}),
                                           Filled<int16_t>("e", {5}),
                                           Filled<int32_t>("f", {}),
                                           Filled<int64_t>("g", {0, 4}),
                                           Filled<float>("h", {1, 2, 1, 1, 1, 1, 1, 1, 2}),
                                           Filled<double>("i", {2}),
                                           Filled<std::complex<float>>("j", {2}),
                                           Filled<std::complex<double>>("k", {2}),
                                           Filled<uint8_t>("l", {1})};
  const TempFolder folder;
  ASSERT_TRUE(WriteCombinedParams(folder / "p", params).ok());
  std::vector<ParamDecl> decls;
  for (const auto& [name, t] : params) {
    decls.push_back({name, t.dtype, {t.shape.begin(), t.shape.end()}});
  }
  const absl::StatusOr<std::vector<NamedTensor>> back = ReadParams(folder / "p", decls);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->size(), params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& want = params[i].second;
    const Tensor& got = (*back)[i].second;
    EXPECT_EQ(DescribeType(got), DescribeType(want));
    EXPECT_EQ(std::memcmp(got.raw_data(), want.raw_data(), want.size_bytes()), 0);
  }
}

// Elements at a multiple of four stay in the mapping, which outlives the call; others are copied.
TEST(ParamsTest, AlignedElementsAreNotCopied) {
  const TempFolder folder;
  const std::string aligned =
      Hex("00000000 0000000000000000 00000000 08000000 0805 1001 1001 1001");
  ASSERT_EQ(aligned.size() % 4, 0);
  WriteFile(folder / "p", aligned + Hex("0000803f") + HeadOfVector() + std::string(512 * 4, '\1'));
  const absl::StatusOr<std::vector<NamedTensor>> tensors =
      ReadParams(folder / "p", {{"a", DType::kFloat32, {1, 1, 1}}, {"b", DType::kFloat32, {512}}});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  const Tensor& mapped = (*tensors)[0].second;
  const Tensor& copied = (*tensors)[1].second;
  EXPECT_FALSE(mapped.buffer()->writable);
  EXPECT_TRUE(copied.buffer()->writable);
  EXPECT_THAT(Values<float>(mapped), ElementsAre(1));
  EXPECT_EQ(std::memcmp(copied.raw_data(), "\1\1\1\1", 4), 0);
}

// Also those that lie in the mapping.
TEST(ParamsTest, ValuesMayBeChangedByHand) {
  const TempFolder folder;
  const std::string bytes =
      Hex("00000000 0000000000000000 00000000 08000000 0805 1001 1001 1001 0000803f");
  WriteFile(folder / "p", bytes);
  const auto read = [&] { return ReadParams(folder / "p", {{"a", DType::kFloat32, {1, 1, 1}}}); };
  absl::StatusOr<std::vector<NamedTensor>> tensors = read();
  const absl::StatusOr<std::vector<NamedTensor>> others = read();
  ASSERT_TRUE(tensors.ok() && others.ok()) << tensors.status();
  Tensor& mapped = (*tensors)[0].second;
  ASSERT_FALSE(mapped.buffer()->writable);
  mapped.mutable_data<float>()[0] = 3;
  EXPECT_THAT(Values<float>(mapped), ElementsAre(3));
  EXPECT_THAT(Values<float>((*others)[0].second), ElementsAre(1));
  EXPECT_EQ(*ReadFile(folder / "p"), bytes);
}

TEST(ParamsTest, BoolsBecomeZeroOrOne) {
  const std::string file = Hex("00000000 0000000000000000 00000000 04000000 0800 1003 000180");
  const absl::StatusOr<std::vector<NamedTensor>> tensors = Parse(file, {{"a", DType::kBool, {3}}});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ(std::memcmp((*tensors)[0].second.raw_data(), "\0\1\1", 3), 0);
}

TEST(ParamsTest, FoldersHaveAFilePerVariable) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "sub");
  WriteFile(folder / "fc.w_0", HeadOfScalar() + "12345678");
  WriteFile(folder / "sub/b", HeadOfVector() + std::string(512 * 4, 'v'));
  const absl::StatusOr<std::vector<NamedTensor>> tensors =
      ReadParams(folder.path(), {{"sub/b", DType::kFloat32, {512}}, {"fc.w_0", DType::kInt64, {}}});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ((*tensors)[0].first, "sub/b");
  EXPECT_EQ((*tensors)[1].first, "fc.w_0");

  EXPECT_EQ(ReadParams(folder.path(), {{"x", DType::kInt64, {}}}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadParams(folder.path(), {{"fc.w_0", DType::kInt64, {2}}}).status().message(),
            (folder / "fc.w_0") +
                ": parameter 'fc.w_0' at byte 0: the file has int64[], the program declares "
                "int64[2]");
}

// As Paddle saves quantised programs.
TEST(ParamsTest, WeightsOfInt8WidenWhereFloat32IsDeclared) {
  const std::string file =
      Hex("00000000 0000000000000000 00000000 04000000 0815 1003") + std::string("\x05\x80\x7f", 3);
  const ParamDecl quantised = {
      .name = "w", .dtype = DType::kFloat32, .dims = {3}, .quantised = true};
  const auto tensors = Parse(file, {quantised});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  const Tensor& w = (*tensors)[0].second;
  ASSERT_EQ(w.dtype, DType::kFloat32);
  EXPECT_EQ(w.data<float>()[0], 5);
  EXPECT_EQ(w.data<float>()[1], -128);
  EXPECT_EQ(w.data<float>()[2], 127);
  EXPECT_EQ(MessageOf(file, {{"w", DType::kFloat32, {3}}}),
            "parameter 'w' at byte 0: the file has int8[3], the program declares float32[3]");
}

TEST(ParamsTest, ValuesAreRoundedToADeclaredHalf) {
  const std::string file = HeadOfVector() + std::string(2048, '\0');
  const auto tensors = Parse(file, {{"w", DType::kFloat16, {512, 1}}});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ((*tensors)[0].second.dtype, DType::kFloat16);
  EXPECT_EQ((*tensors)[0].second.shape, Shape({512, 1}));
}

TEST(ParamsTest, NamesMustNotLeaveTheFolder) {
  const TempFolder folder;
  for (const std::string& name :
       {std::string("../x"), std::string("/etc/passwd"), std::string("a/../../x"), std::string()}) {
    EXPECT_EQ(ReadParams(folder.path(), {{name, DType::kInt64, {}}}).status().message(),
              folder.path() + ": '" + name + "' is no name for a file in it");
  }
  EXPECT_EQ(
      ReadParams(folder.path(), {{std::string("a\0b", 3), DType::kInt64, {}}}).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(ParamsTest, DeclarationsAreChecked) {
  const std::string file = HeadOfScalar() + "12345678" + HeadOfVector() + std::string(2048, 'v');
  const ParamDecl a = {"a", DType::kInt64, {}};
  EXPECT_EQ(MessageOf(file, {a, {"b", DType::kFloat32, {511}}}),
            "parameter 'b' at byte 30: the file has float32[512], the program declares "
            "float32[511]");
  EXPECT_EQ(MessageOf(file, {a, {"b", DType::kInt32, {512}}}),
            "parameter 'b' at byte 30: the file has float32[512], the program declares int32[512]");
  EXPECT_EQ(MessageOf(file, {a, {"b", DType::kFloat32, {512, 2}}}),
            "parameter 'b' at byte 30: the file has float32[512], the program declares "
            "float32[512,2]");
  EXPECT_TRUE(Parse(file, {a, {"b", DType::kUndefined, {}}}).ok());
}

// As mixed precision declares the joined weight of a recurrent layer, which no op of the program
// reads.
TEST(ParamsTest, WhatNoOpNamesMayHaveAnyDtype) {
  const absl::StatusOr<Program> program = ParseProgram(
      "block 0\n  var joined float16[512] param\n  var w float64[512] param\n"
      "  scale(X=w) -> (Out=y)\n");
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string file = HeadOfVector() + std::string(2048, 'v');
  const std::vector<ParamDecl> declared = ParamsOf(*program);
  ASSERT_EQ(declared.size(), 2u);
  const auto tensors = Parse(file, {declared[0]});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ((*tensors)[0].second.dtype, DType::kFloat32);
  EXPECT_EQ(MessageOf(file, {declared[1]}),
            "parameter 'w' at byte 0: the file has float32[512], the program declares "
            "float64[512]");
}

TEST(ParamsTest, TheNumberOfParametersIsChecked) {
  const std::string file = HeadOfScalar() + "12345678";
  const ParamDecl a = {"a", DType::kInt64, {}};
  EXPECT_EQ(MessageOf(file, {a, {"b", DType::kInt64, {}}}),
            "byte 30: the file ends before parameter 'b', 2 of 2");
  EXPECT_EQ(MessageOf(file + file, {a}), "byte 30: 30 bytes follow the last of 1 parameters, 'a'");
  EXPECT_EQ(MessageOf(file, {}), "byte 0: 30 bytes follow the last of 0 parameters");
  EXPECT_TRUE(Parse("", {}).ok());
}

TEST(ParamsTest, DamagedRecordsAreErrors) {
  const auto message = [](absl::string_view hex) {
    const absl::Status status = ParseParamRecords(Hex(hex)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    return std::string(status.message());
  };
  EXPECT_EQ(message("000000"), "record #0: byte 0: the file ends within the LoD tensor version");
  EXPECT_EQ(message("01000000"),
            "record #0: byte 0: LoD tensor version is 1, expected 0; not a parameter file?");
  EXPECT_EQ(message("00000000 ff000000000000ff"),
            "record #0: byte 4: 18374686479671623935 LoD levels do not fit into the file");
  EXPECT_EQ(message("00000000 0100000000000000 0900000000000000 000000000000000000"),
            "record #0: byte 12: a LoD level of 9 bytes, but 9 are left");
  EXPECT_EQ(message("00000000 0000000000000000 00000001"),
            "record #0: byte 12: tensor version is 16777216, expected 0; not a parameter file?");
  EXPECT_EQ(message("00000000 0000000000000000 00000000 ffffffff"),
            "record #0: byte 16: a description of -1 bytes, but 0 are left");
  EXPECT_EQ(message("00000000 0000000000000000 00000000 03000000 0805"),
            "record #0: byte 16: a description of 3 bytes, but 2 are left");
  EXPECT_EQ(message("00000000 0000000000000000 00000000 02000000 0885"),
            "record #0: byte 20: the description is damaged");
  EXPECT_EQ(message("00000000 0000000000000000 00000000 02000000 0807"),
            "record #0: byte 20: the description has no known element type");
  EXPECT_EQ(message("00000000 0000000000000000 00000000 02000000 1001"),
            "record #0: byte 20: the description has no known element type");
  EXPECT_EQ(message("00000000 0000000000000000 00000000 0e000000 0805 120a 01010101010101010101"),
            "record #0: byte 20: 10 dims, the most is 9");
  EXPECT_EQ(message("00000000 0000000000000000 00000000 0d000000 0805 10ffffffffffffffffff01"),
            "record #0: byte 20: dims [-1] are negative or too large");
  EXPECT_EQ(message("00000000 0000000000000000 00000000 08000000 0805 10ffffffff7f"),
            "record #0: byte 28: float32[34359738367] needs 137438953468 bytes, but only 0 are "
            "left");
}

TEST(ParamsTest, LodsMustFitTheShape) {
  Tensor tensor = Tensor::Of<float>({4}, {1, 2, 3, 4});
  const auto message = [&](const Lod& lod) {
    tensor.lod = lod;
    return std::string(ParseParamRecords(Written({{"a", tensor}})).status().message());
  };
  EXPECT_EQ(message({{0, 4}}), "");
  EXPECT_EQ(message({{0, 1, 2}, {0, 3, 4}}), "");
  EXPECT_EQ(message({{0, 3}}),
            "record #0: byte 0: LoD level 0 is not a list of offsets from 0 to 4");
  EXPECT_THAT(message({{1, 4}}), HasSubstr("LoD level 0"));
  EXPECT_THAT(message({{0, 3, 2, 4}}), HasSubstr("LoD level 0"));
  EXPECT_THAT(message({{}}), HasSubstr("LoD level 0"));
  EXPECT_THAT(message({{0, 1, 3}, {0, 3, 4}}), HasSubstr("LoD level 0"));
  tensor = Tensor::Of<float>({}, {1});
  EXPECT_EQ(message({{0, 1}}), "record #0: byte 0: a LoD on a tensor without dims");
}

TEST(ParamsTest, ListsRecordsWithoutAProgram) {
  const std::string file = HeadOfScalar() + "12345678" + HeadOfVector() + std::string(2048, 'v');
  const absl::StatusOr<std::vector<ParamRecord>> records = ParseParamRecords(file);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 2);
  EXPECT_EQ((*records)[1].offset, 30);
  EXPECT_EQ((*records)[1].data_offset, 55);
  EXPECT_EQ((*records)[1].shape, (Shape{512}));
  EXPECT_EQ((*records)[1].size_bytes(), 2048);
}

TEST(ParamsTest, WhatCannotBeWrittenIsAnError) {
  const TempFolder folder;
  const std::string path = folder / "p";
  const NamedTensor a = Filled<float>("a", {1});
  EXPECT_EQ(WriteCombinedParams(path, {a, a}).message(),
            path + ": parameter 'a': it appears twice");
  Tensor tensor;
  EXPECT_EQ(WriteCombinedParams(path, {{"a", tensor}}).message(),
            path + ": parameter 'a': the tensor has no dtype");
  tensor.dtype = DType::kFloat32;
  EXPECT_EQ(WriteCombinedParams(path, {{"a", tensor}}).message(),
            path + ": parameter 'a': a tensor of float32[] has no memory to write");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ParamsTest, SurvivesDamage) {
  const std::string file = HeadOfLodMatrix() + std::string(40, '\0') + HeadOfScalar() + "12345678";
  const ParamDecl params[] = {{"a", DType::kUndefined, {}}, {"b", DType::kUndefined, {}}};
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(Parse(file.substr(0, size), params).ok()) << size;
  }
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    (void)Parse(damaged, params);
  }
}

}  // namespace
}  // namespace interp::params_test
