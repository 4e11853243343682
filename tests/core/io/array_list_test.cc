// MXNet's lists of arrays. The files in array_lists/ are made by MXNet 1.9.1 (make.py there).
#include "core/io/array_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/array/array_file.h"
#include "core/io/file.h"
#include "tests/testing/arrays.h"
#include "tests/testing/temp_folder.h"

namespace interp::array_list_test {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using testing::IsOk;
using testing::TempFolder;
using testing::Values;

std::string PathOf(const std::string& name) {
  return absl::StrCat(INTERP_SOURCE_DIR, "/tests/core/io/array_lists/", name, ".params");
}

ArrayList Read(const std::string& name) {
  absl::StatusOr<ArrayList> list = ReadArrayList(PathOf(name));
  EXPECT_THAT(list, IsOk());
  return list.ok() ? *std::move(list) : ArrayList();
}

std::string BytesOf(const std::string& path) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  EXPECT_THAT(bytes, IsOk());
  return bytes.ok() ? *std::move(bytes) : "";
}

absl::StatusOr<ArrayList> Parse(const std::string& bytes) {
  std::string copy = bytes;
  return ParseArrayList(BorrowBuffer(copy.data(), copy.size(), /*writable=*/false));
}

TEST(ArrayListTest, ReadsDictsOfMxnet) {
  const ArrayList list = Read("dict");
  EXPECT_TRUE(list.named);
  ASSERT_EQ(list.arrays.size(), 2);
  EXPECT_EQ(list.arrays[0].name, "arg:w");
  EXPECT_EQ(DescribeType(list.arrays[0].tensor), "float32[2,3]");
  EXPECT_THAT(Values<float>(list.arrays[0].tensor), ElementsAre(0, 0.25, 0.5, 0.75, 1, 1.25));
  EXPECT_EQ(list.arrays[1].name, "aux:n");
  EXPECT_THAT(Values<int64_t>(list.arrays[1].tensor), ElementsAre(7, -8));
}

TEST(ArrayListTest, ReadsListsOfMxnet) {
  const ArrayList list = Read("list");
  EXPECT_FALSE(list.named);
  std::vector<std::string> types;
  for (const ListedArray& array : list.arrays) types.push_back(DescribeType(array.tensor));
  EXPECT_THAT(types, ElementsAre("float16[2]", "float64[2]", "uint8[2]", "int32[2]", "int8[2]",
                                 "int64[2]"));
  EXPECT_THAT(Values<double>(list.arrays[1].tensor), ElementsAre(1, 2));
  EXPECT_TRUE(Read("empty").arrays.empty());
}

TEST(ArrayListTest, ReadsOldVersions) {
  const ArrayList list = Read("old");
  ASSERT_EQ(list.arrays.size(), 2);
  EXPECT_EQ(DescribeType(list.arrays[0].tensor), "float32[1,3]");
  EXPECT_EQ(DescribeType(list.arrays[1].tensor), "float32[3,1]");
  EXPECT_THAT(Values<float>(list.arrays[1].tensor), ElementsAre(1, 2, 3));
}

TEST(ArrayListTest, ReadsScalarsAndDimsOfZero) {
  const ArrayList list = Read("scalars");
  ASSERT_EQ(list.arrays.size(), 3);
  EXPECT_EQ(DescribeType(list.arrays[0].tensor), "float32[]");
  EXPECT_THAT(Values<float>(list.arrays[0].tensor), ElementsAre(5));
  EXPECT_EQ(DescribeType(list.arrays[1].tensor), "float32[0,3]");
  EXPECT_THAT(Values<bool>(list.arrays[2].tensor), ElementsAre(true, false));
}

TEST(ArrayListTest, ReadsRows) {
  const ArrayList list = Read("rows");
  ASSERT_EQ(list.arrays.size(), 1);
  ASSERT_TRUE(list.arrays[0].rows.has_value());
  EXPECT_EQ(list.arrays[0].rows->height, 5);
  EXPECT_THAT(list.arrays[0].rows->rows, ElementsAre(1, 3));
  EXPECT_THAT(Values<float>(list.arrays[0].tensor), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(ReadArrayList(PathOf("csr")),
              FailsWith(absl::StatusCode::kUnimplemented, "array 0 of 1: is stored as compressed"));
}

// Files without old versions come back byte by byte.
TEST(ArrayListTest, WritesWhatMxnetWrites) {
  const TempFolder folder;
  for (const char* name : {"dict", "list", "empty", "rows"}) {
    ArrayList list = Read(name);
    // The device that MXNet notes is the first.
    const std::string path = folder / "again.params";
    ASSERT_THAT(WriteArrayList(path, list), IsOk());
    EXPECT_TRUE(BytesOf(path) == BytesOf(PathOf(name))) << name;
  }
  ArrayList scalars = Read("scalars");
  ASSERT_THAT(WriteArrayList(folder / "s.params", scalars), IsOk());
  const absl::StatusOr<ArrayList> again = ReadArrayList(folder / "s.params");
  ASSERT_THAT(again, IsOk());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(testing::SameBits(again->arrays[i].tensor, scalars.arrays[i].tensor));
  }
}

TEST(ArrayListTest, EveryCutIsAnError) {
  for (const char* name : {"dict", "list", "old", "scalars", "rows"}) {
    const std::string bytes = BytesOf(PathOf(name));
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_THAT(Parse(bytes.substr(0, size)),
                  FailsWith(absl::StatusCode::kDataLoss, "ends within"))
          << name << " " << size;
    }
    EXPECT_THAT(Parse(bytes + "x"), FailsWith(absl::StatusCode::kDataLoss, "1 bytes more"));
  }
}

// Any byte set to any of some values: an error or arrays, and no memory that the file has not.
TEST(ArrayListTest, DamagedBytesAreErrorsOrValues) {
  for (const char* name : {"dict", "rows", "old", "scalars"}) {
    const std::string bytes = BytesOf(PathOf(name));
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const char value : {'\x00', '\x01', '\x7f', '\x80', '\xff'}) {
        std::string damaged = bytes;
        damaged[at] = value;
        const absl::StatusOr<ArrayList> list = Parse(damaged);
        if (!list.ok()) continue;
        size_t total = 0;
        for (const ListedArray& array : list->arrays) total += array.tensor.size_bytes();
        EXPECT_LE(total, bytes.size()) << name << " " << at;
      }
    }
  }
}

TEST(ArrayListTest, MessagesTellWhatIsWrong) {
  const std::string bytes = BytesOf(PathOf("dict"));
  EXPECT_THAT(Parse(std::string(64, '\0')),
              FailsWith(absl::StatusCode::kDataLoss, "is no list of arrays: it starts with 0"));
  std::string wrong = bytes;
  wrong[24] = 'x';
  EXPECT_THAT(Parse(wrong), FailsWith(absl::StatusCode::kDataLoss, "array 0 of 2: starts with"));
  wrong = bytes;
  wrong[16] = 100;
  EXPECT_THAT(Parse(wrong),
              FailsWith(absl::StatusCode::kUnimplemented, "array 2 of 100: has MXNet's dtype"));
  EXPECT_THAT(ReadArrayList("/nowhere.params"),
              FailsWith(absl::StatusCode::kNotFound, "/nowhere.params"));
  const TempFolder folder;
  const Tensor one = Tensor::Of<float>({1}, {1});
  const auto write = [&](const ArrayList& list) {
    return WriteArrayList(folder / "bad.params", list);
  };
  EXPECT_THAT(write({.arrays = {{"a", one, {}}, {"a", one, {}}}, .named = true}),
              FailsWith(absl::StatusCode::kInvalidArgument, "two arrays are named 'a'"));
  EXPECT_THAT(write({.arrays = {{"a", one, RowIndex{.rows = {3}, .height = 3}}}, .named = true}),
              FailsWith(absl::StatusCode::kInvalidArgument, "do not fit"));
  Tensor complex;
  complex.dtype = DType::kComplex64;
  EXPECT_THAT(write({.arrays = {{"a", complex, {}}}, .named = true}),
              FailsWith(absl::StatusCode::kUnimplemented, "no dtype complex64"));
  EXPECT_FALSE(MappedFile::Open(folder / "bad.params").ok());
}

// 20 MB of zeros would be five million arrays that are "none", and a gigabyte of memory.
TEST(ArrayListTest, CountsAreBoundedByTheFile) {
  std::string file(24 + (5U << 22), '\0');
  const uint64_t magic = 0x112;
  const uint64_t count = 5U << 20;
  std::memcpy(file.data(), &magic, sizeof(magic));
  std::memcpy(file.data() + 16, &count, sizeof(count));
  EXPECT_THAT(Parse(file), FailsWith(absl::StatusCode::kDataLoss, "expected at most 1048576"));
}

TEST(ArrayFileTest, SavesAndLoadsArrays) {
  const TempFolder folder;
  auto runtime = testing::MakeRuntime({.engine = {.devices = {testing::MakeDevice({})}}});
  const Place sim{PlaceKind::kSim, 0};
  const Array x = testing::ArrayOf(*runtime, {2}, {1, 2}, sim);
  const Array y = testing::ArrayOf(*runtime, {}, {3});
  for (const char* name : {"a.params", "a.npz"}) {
    ASSERT_THAT(SaveArrays(folder / name, {{"x", x}, {"y", y}}), IsOk());
    const absl::StatusOr<std::vector<NamedArray>> loaded = LoadArrays(*runtime, folder / name, sim);
    ASSERT_THAT(loaded, IsOk());
    ASSERT_EQ(loaded->size(), 2);
    EXPECT_EQ((*loaded)[0].first, "x");
    EXPECT_EQ((*loaded)[0].second.place(), sim);
    EXPECT_THAT(testing::FloatsOf((*loaded)[0].second), ElementsAre(1, 2));
    EXPECT_EQ((*loaded)[1].second.shape(), Shape());
    EXPECT_THAT(testing::FloatsOf((*loaded)[1].second), ElementsAre(3));
  }
  const Array rows = *runtime->FromRows(Tensor::Of<float>({1, 1}, {5}), {.rows = {2}, .height = 3});
  ASSERT_THAT(SaveArrays(folder / "r.params", {{"", rows}, {"", Array()}}), IsOk());
  const auto loaded = LoadArrays(*runtime, folder / "r.params");
  ASSERT_THAT(loaded, IsOk());
  EXPECT_THAT((*loaded)[0].second.ReadRows()->index.rows, ElementsAre(2));
  EXPECT_FALSE((*loaded)[1].second);
  EXPECT_THAT(SaveArrays(folder / "r.npz", {{"r", rows}}),
              FailsWith(absl::StatusCode::kUnimplemented, "which .npz has not"));
  const Array unwritten = *runtime->New({1}, DType::kFloat32);
  EXPECT_THAT(SaveArrays(folder / "u.params", {{"u", unwritten}}),
              FailsWith(absl::StatusCode::kNotFound, "array 'u': "));
  EXPECT_FALSE(MappedFile::Open(folder / "u.params").ok());
}

}  // namespace
}  // namespace interp::array_list_test
