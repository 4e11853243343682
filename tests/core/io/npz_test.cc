#include "core/io/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/escaping.h"
#include "core/io/file.h"
#include "core/io/zip_reader.h"
#include "core/io/zip_writer.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_folder.h"

namespace interp::npz_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Values;

// numpy.savez(a=np.array(7, dtype='u1')), NumPy 1.26: local sizes are in a zip64 field.
constexpr absl::string_view kStored =
    "504b03042d000000000000002100760e1389ffffffffffffffff05001400612e6e7079010010008100000000"
    "0000008100000000000000934e554d5059010076007b276465736372273a20277c7531272c2027666f727472"
    "616e5f6f72646572273a2046616c73652c20277368617065273a2028292c207d202020202020202020202020"
    "2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "2020202020200a07504b01022d032d000000000000002100760e138981000000810000000500000000000000"
    "00000000800100000000612e6e7079504b0506000000000100010033000000b80000000000";
// numpy.savez_compressed(b=np.zeros(100, '<f4')).
constexpr absl::string_view kDeflated =
    "504b03042d000000080000002100efb97d1bffffffffffffffff05001400622e6e7079010010001002000000"
    "0000004b000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f5452"
    "9498179f5f94920a12774bcc294e058a17672416a402f91a8606063a9a3a0ab50a64032e865130a80000504b"
    "01022d032d000000080000002100efb97d1b4b00000010020000050000000000000000000000800100000000"
    "622e6e7079504b0506000000000100010033000000820000000000";
// An int8 array [1, 2] as "x.npy" with everything in zip64 records.
constexpr absl::string_view kZip64 =
    "504b03042d000000000000002100ce25f8a6ffffffffffffffff05001400782e6e7079010010008200000000"
    "0000008200000000000000934e554d5059010076007b276465736372273a20277c6931272c2027666f727472"
    "616e5f6f72646572273a2046616c73652c20277368617065273a2028322c292c207d20202020202020202020"
    "2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "2020202020200a0102504b01022d002d000000000000002100ce25f8a6ffffffffffffffff05001c00000000"
    "00000000000000ffffffff782e6e707901001800820000000000000082000000000000000000000000000000"
    "504b06062c000000000000002d002d000000000000000000010000000000000001000000000000004f000000"
    "00000000b900000000000000504b060700000000080100000000000001000000504b050600000000ffffffff"
    "ffffffffffffffff0000";

std::string Bytes(absl::string_view hex) { return absl::HexStringToBytes(hex); }

std::vector<NamedTensor> MustParse(const std::string& file) {
  const absl::StatusOr<std::vector<NamedTensor>> tensors = ParseNpz(file);
  EXPECT_TRUE(tensors.ok()) << tensors.status();
  return tensors.value_or(std::vector<NamedTensor>());
}

std::string MessageOf(const std::string& file) {
  return std::string(ParseNpz(file).status().message());
}

// `file` with `bytes` written over what lies at `offset`.
std::string Patched(std::string file, size_t offset, absl::string_view bytes) {
  return file.replace(offset, bytes.size(), bytes.data(), bytes.size());
}

TEST(NpzTest, ReadsStoredEntriesFromNumPy) {
  const std::vector<NamedTensor> tensors = MustParse(Bytes(kStored));
  ASSERT_EQ(tensors.size(), 1);
  EXPECT_EQ(tensors[0].first, "a");
  EXPECT_EQ(DescribeType(tensors[0].second), "uint8[]");
  EXPECT_THAT(Values<uint8_t>(tensors[0].second), ElementsAre(7));
}

TEST(NpzTest, ReadsDeflatedEntriesFromNumPy) {
  const std::vector<NamedTensor> tensors = MustParse(Bytes(kDeflated));
  ASSERT_EQ(tensors.size(), 1);
  EXPECT_EQ(tensors[0].first, "b");
  EXPECT_EQ(Values<float>(tensors[0].second), std::vector<float>(100, 0));
}

TEST(NpzTest, ReadsZip64Records) {
  const std::vector<NamedTensor> tensors = MustParse(Bytes(kZip64));
  ASSERT_EQ(tensors.size(), 1);
  EXPECT_THAT(Values<int8_t>(tensors[0].second), ElementsAre(1, 2));
}

TEST(NpzTest, FilesRoundTrip) {
  const testing::TempFolder folder;
  const NamedTensor tensors[] = {{"x", Tensor::Of<float>({2}, {1, 2})},
                                 {"block/w_0@GRAD", Tensor::Of<int64_t>({}, {5})},
                                 {"\u03b1", Tensor::Of<float>({0, 3}, {})},
                                 {"", Tensor::Of<int8_t>({1000}, std::vector<int8_t>(1000, 3))}};
  for (const bool compress : {false, true}) {
    ASSERT_TRUE(WriteNpz(folder / "a.npz", tensors, compress).ok());
    const absl::StatusOr<std::vector<NamedTensor>> back = ReadNpz(folder / "a.npz");
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_EQ(back->size(), 4);
    for (size_t i = 0; i < 4; ++i) {
      const auto& [name, tensor] = (*back)[i];
      EXPECT_EQ(name, tensors[i].first);
      EXPECT_EQ(DescribeType(tensor), DescribeType(tensors[i].second));
      EXPECT_EQ(std::memcmp(tensor.raw_data(), tensors[i].second.raw_data(), tensor.size_bytes()),
                0);
    }
  }
}

TEST(NpzTest, EqualContentGivesEqualFiles) {
  const testing::TempFolder folder;
  const NamedTensor tensors[] = {{"x", Tensor::Of<float>({2}, {1, 2})}};
  ASSERT_TRUE(WriteNpz(folder / "a", tensors).ok());
  ASSERT_TRUE(WriteNpz(folder / "b", tensors).ok());
  EXPECT_EQ(*ReadFile(folder / "a"), *ReadFile(folder / "b"));
}

TEST(NpzTest, ClaimsBeyondTheLimitAreRefused) {
  EXPECT_EQ(ParseNpz(Bytes(kDeflated), 500).status().message(),
            "the arrays would take 528 bytes, the limit is 500");
  EXPECT_TRUE(ParseNpz(Bytes(kDeflated), 528).ok());
}

// A ratio that is possible and unusual: memory follows the data in several steps.
TEST(NpzTest, ReadsWhatWasCompressedALot) {
  const std::vector<float> zeros(int64_t{3} << 20);
  const std::vector<NamedTensor> tensors = {{"z", Tensor::Of<float>({int64_t{3} << 20}, zeros)}};
  const testing::TempFolder folder;
  ASSERT_TRUE(WriteNpz(folder / "z.npz", tensors, /*compress=*/true).ok());
  const absl::StatusOr<std::vector<NamedTensor>> back = ReadNpz(folder / "z.npz");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Values<float>((*back)[0].second), zeros);
}

TEST(NpzTest, NothingIsWrittenOnErrors) {
  const testing::TempFolder folder;
  const Tensor tensor = Tensor::Of<float>({1}, {1});
  const std::string path = folder / "a";
  EXPECT_EQ(WriteNpz(path, {{"x", tensor}, {"x", tensor}}).message(), path + ": 'x' appears twice");
  EXPECT_EQ(WriteNpz(path, {{"x", Tensor()}}).message(),
            path + ": 'x': a tensor of undefined[] has no memory to write");
  EXPECT_EQ(ReadFile(path).status().code(), absl::StatusCode::kNotFound);
}

// More entries than the 16 bits of the old end record can count.
TEST(ZipTest, ManyEntriesNeedZip64) {
  const testing::TempFolder folder;
  absl::StatusOr<FileWriter> file = FileWriter::Create(folder / "a.zip");
  ASSERT_TRUE(file.ok());
  ZipWriter zip(*file);
  for (int i = 0; i < 65536; ++i) ASSERT_TRUE(zip.Add(absl::StrCat(i), {}, false).ok());
  ASSERT_TRUE(zip.Finish().ok());
  ASSERT_TRUE(file->Commit().ok());
  const std::string archive = *ReadFile(folder / "a.zip");
  const absl::StatusOr<std::vector<ZipEntry>> entries = ListZip(archive);
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 65536);
  EXPECT_EQ(entries->back().name, "65535");
}

TEST(ZipTest, CommentsAndFoldersAreSkipped) {
  std::string archive = Bytes(kStored);
  archive = Patched(archive, archive.size() - 2, absl::string_view("\4\0", 2)) + "text";
  EXPECT_EQ(MustParse(archive).size(), 1);
  for (size_t at = 0; (at = archive.find("a.npy", at)) != std::string::npos; ++at) {
    archive = Patched(archive, at, "aaaa/");
  }
  EXPECT_TRUE(MustParse(archive).empty());
}

// Offsets of fields in kStored.
constexpr size_t kEntry = 0xb8;  // its record of the central directory
constexpr size_t kEnd = 0xeb;    // the end record

TEST(ZipTest, DamagedArchivesAreErrors) {
  const std::string file = Bytes(kStored);
  EXPECT_EQ(MessageOf(""), "no zip archive: it is too short");
  EXPECT_EQ(MessageOf(file.substr(0, 200)), "no zip archive, or cut off: it has no end record");
  EXPECT_EQ(MessageOf(Patched(file, kEnd + 16, "\xff\xff")),
            "the central directory at byte 65535 lies outside of the archive");
  EXPECT_EQ(MessageOf(Patched(file, kEnd + 10, "\2")),
            "entry #1 at byte 235: the central directory ends here");
  EXPECT_EQ(MessageOf(Patched(file, kEntry, "X")),
            "entry #0 at byte 184: no entry of the central directory");
  EXPECT_EQ(MessageOf(Patched(file, kEntry + 29, "\1")),
            "entry #0 at byte 184: the central directory ends within this entry");
  EXPECT_EQ(MessageOf(Patched(file, kEntry + 8, "\1")), "entry 'a.npy' at byte 0: it is encrypted");
  EXPECT_EQ(MessageOf(Patched(file, kEntry + 10, "\14")),
            "entry 'a.npy' at byte 0: compression method 12 is not supported");
  EXPECT_EQ(MessageOf(Patched(file, kEntry + 42, "\1")),
            "entry 'a.npy' at byte 1: no local header is there");
  EXPECT_EQ(MessageOf(Patched(file, kEntry + 44, "\1")),
            "entry 'a.npy' at byte 65536: it lies outside of the archive");
  EXPECT_EQ(MessageOf(Patched(file, kEntry + 22, "\1")),
            "entry 'a.npy' at byte 0: its 65665 bytes reach over the end");
  EXPECT_EQ(MessageOf(Patched(file, kEntry + 24, "\x80")),
            "entry 'a.npy' at byte 0: 129 bytes cannot hold the 128 it claims");
  EXPECT_EQ(MessageOf(Patched(file, kEntry - 1, "\1")),
            "entry 'a.npy' at byte 0: its checksum is 6070ab43, expected 89130e76");
  EXPECT_EQ(MessageOf(Patched(file, kEntry + 46, "a.txt")), "entry 'a.txt': no .npy file");
}

TEST(ZipTest, DamagedZip64RecordsAreErrors) {
  const std::string file = Bytes(kZip64);
  constexpr size_t kExtra = 0xb9 + 46 + 5;
  EXPECT_EQ(MessageOf(Patched(file, kExtra + 2, "\x17")),
            "entry #0 at byte 185: its zip64 field is too short");
  EXPECT_EQ(MessageOf(Patched(file, kExtra + 4 + 8 + 7, "\x80")),
            "entry 'x.npy' at byte 0: its 9223372036854775938 bytes reach over the end");
  EXPECT_EQ(MessageOf(Patched(file, kExtra + 4 + 16 + 7, "\x80")),
            "entry 'x.npy' at byte 9223372036854775808: it lies outside of the archive");
  EXPECT_EQ(MessageOf(Patched(file, file.size() - 22 - 12 + 7, "\x80")),
            "byte 320: no zip64 end record is where it says");
}

TEST(ZipTest, DeflatedSizesAreChecked) {
  const std::string file = Bytes(kDeflated);
  constexpr size_t kSize = 0x82 + 24;  // 528 = 0x210
  EXPECT_EQ(MessageOf(Patched(file, kSize, absl::string_view("\x0f", 1))),
            "entry 'b.npy' at byte 0: its compressed data is damaged or does not give 527 bytes");
  EXPECT_EQ(MessageOf(Patched(file, kSize, absl::string_view("\x11", 1))),
            "entry 'b.npy' at byte 0: its compressed data is damaged or does not give 529 bytes");
  // A bomb that claims a gigabyte is seen before any memory is taken.
  EXPECT_EQ(MessageOf(Patched(file, kSize + 3, "\x40")),
            "entry 'b.npy' at byte 0: 75 bytes cannot hold the 1073742352 it claims");
  EXPECT_THAT(MessageOf(Patched(file, 60, "\xff\xff\xff\xff")), HasSubstr("is damaged"));
}

// Two records of the directory that share one piece of compressed data.
TEST(ZipTest, OverlappingEntriesAreErrors) {
  const std::string file = Bytes(kStored);
  const std::string record = file.substr(kEntry, kEnd - kEntry);
  std::string end = file.substr(kEnd);
  end[10] = 2;
  end[12] = static_cast<char>(2 * record.size());
  EXPECT_EQ(MessageOf(file.substr(0, kEntry) + record + record + end),
            "entry 'a.npy' at byte 0: it overlaps entry 'a.npy' at byte 0");
}

TEST(ZipTest, NamesMustDiffer) {
  const testing::TempFolder folder;
  absl::StatusOr<FileWriter> file = FileWriter::Create(folder / "a.npz");
  ASSERT_TRUE(file.ok());
  const std::string npy = Bytes(kStored).substr(55, 129);
  ZipWriter zip(*file);
  ASSERT_TRUE(zip.Add("a.npy", {npy}, /*deflate=*/false).ok());
  ASSERT_TRUE(zip.Add("a.npy", {npy}, /*deflate=*/true).ok());
  ASSERT_TRUE(zip.Finish().ok() && file->Commit().ok());
  EXPECT_EQ(ReadNpz(folder / "a.npz").status().message(),
            (folder / "a.npz") + ": 'a' appears twice");
}

TEST(ZipTest, SurvivesDamage) {
  for (const absl::string_view hex : {kStored, kDeflated, kZip64}) {
    const std::string file = Bytes(hex);
    for (size_t size = 0; size < file.size(); ++size) {
      EXPECT_FALSE(ParseNpz(file.substr(0, size)).ok()) << size;
    }
    for (size_t bit = 0; bit < file.size() * 8; ++bit) {
      (void)ParseNpz(Patched(file, bit / 8, std::string(1, file[bit / 8] ^ (1 << bit % 8))));
    }
  }
}

}  // namespace
}  // namespace interp::npz_test
