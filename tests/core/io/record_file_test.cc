#include "core/io/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_folder.h"

namespace interp {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;
using testing::TempFolder;

void Write(const std::string& path, const std::vector<std::string>& payloads) {
  absl::StatusOr<RecordWriter> writer = RecordWriter::Create(path);
  ASSERT_THAT(writer, IsOk());
  for (size_t i = 0; i < payloads.size(); ++i) {
    ASSERT_THAT(writer->Append(100 + i, payloads[i]), IsOk());
  }
  ASSERT_THAT(writer->Commit(), IsOk());
}

std::vector<std::string> Payloads(const RecordFile& file) {
  std::vector<std::string> payloads;
  std::string joined;
  for (size_t i = 0; i < file.places().size(); ++i) {
    payloads.emplace_back(file.Read(i, joined)->payload);
  }
  return payloads;
}

std::string MxnetFile(const std::string& name) {
  return absl::StrCat(INTERP_SOURCE_DIR, "/tests/core/io/records/", name);
}

TEST(RecordIndex, IsThatOfMxnet) {
  const std::string text = ReadFile(MxnetFile("magic.idx")).value();
  const std::vector<RecordPlace> places = ParseRecordIndex(text).value();
  ASSERT_THAT(places, SizeIs(14));
  EXPECT_EQ(places[1], (RecordPlace{.key = 13, .offset = 8}));
  EXPECT_EQ(FormatRecordIndex(places), text);
  const RecordFile file = RecordFile::Open(MxnetFile("magic.rec")).value();
  EXPECT_EQ(file.places(), places);
  EXPECT_EQ(IndexPathOf("a/train.rec"), "a/train.idx");
  EXPECT_EQ(IndexPathOf("train"), "train.idx");
}

TEST(RecordIndex, ErrorsNameTheLine) {
  EXPECT_THAT(ParseRecordIndex("1\t0\r\n2\t8\n\n"), IsOk());
  for (const char* line :
       {"2", "x\t8", "2\t-8", "2\t8\t9", "2\t99999999999999999999", "\x1b[31m\t8"}) {
    EXPECT_THAT(ParseRecordIndex(absl::StrCat("1\t0\n", line, "\n")),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          absl::StrCat("line 2: '", absl::CEscape(line), "'")));
  }
}

TEST(RecordFile, IsTheSameWithAndWithoutItsIndex) {
  const TempFolder folder;
  Write(folder / "a.rec", {"one", "two", "", "four"});
  const RecordFile indexed = RecordFile::Open(folder / "a.rec").value();
  EXPECT_EQ(indexed.places()[2].key, 102);
  EXPECT_THAT(Payloads(indexed), ElementsAre("one", "two", "", "four"));
  std::filesystem::remove(folder / "a.idx");
  const RecordFile walked = RecordFile::Open(folder / "a.rec").value();
  EXPECT_EQ(walked.places()[2].key, 2);
  EXPECT_EQ(Payloads(walked), Payloads(indexed));
}

TEST(RecordFile, AnIndexInAnyOrderIsReadInThatOfTheFile) {
  const TempFolder folder;
  Write(folder / "a.rec", {"one", "two"});
  std::ofstream(folder / "a.idx") << "101\t12\n100\t0\n";
  EXPECT_THAT(Payloads(*RecordFile::Open(folder / "a.rec")), ElementsAre("one", "two"));
}

TEST(RecordFile, AnIndexOfAnotherFileIsAnError) {
  const TempFolder folder;
  Write(folder / "a.rec", {"one", "two"});
  std::ofstream(folder / "a.idx") << "0\t0\n1\t4000\n";
  EXPECT_THAT(RecordFile::Open(folder / "a.rec"),
              FailsWith(absl::StatusCode::kDataLoss, "a.idx: record 1 is not in "));
  std::ofstream(folder / "a.idx") << "0\t4\n1\t12\n";
  const RecordFile file = RecordFile::Open(folder / "a.rec").value();
  std::string joined;
  EXPECT_THAT(file.Read(0, joined), FailsWith(absl::StatusCode::kDataLoss, "a.rec: byte 4: no"));
  EXPECT_THAT(file.Read(1, joined), IsOk());
}

// The offset of its last line is one of a place before.
TEST(RecordFile, AnIndexThatIsCutOffIsBlamedToo) {
  const TempFolder folder;
  Write(folder / "a.rec", {"one", "two", "six"});
  std::ofstream(folder / "a.idx") << "0\t0\n1\t12\n2\t2";
  const RecordFile file = RecordFile::Open(folder / "a.rec").value();
  std::string joined;
  EXPECT_THAT(file.Read(1, joined),
              FailsWith(absl::StatusCode::kDataLoss, "or the index is not its own"));
}

// One record would be read twice and the other never.
TEST(RecordFile, AnIndexThatHoldsARecordTwiceIsAnError) {
  const TempFolder folder;
  Write(folder / "a.rec", {"one", "two"});
  std::ofstream(folder / "a.idx") << "0\t0\n1\t0\n";
  EXPECT_THAT(RecordFile::Open(folder / "a.rec"),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "a.idx: two records begin at byte 0: the index is damaged"));
}

TEST(RecordFile, WhatAnIndexLeavesOutAtEitherEndIsTold) {
  const TempFolder folder;
  Write(folder / "a.rec", {"one", "two", "six"});
  EXPECT_THAT(RecordFile::Open(folder / "a.rec")->unindexed(), IsEmpty());
  std::ofstream(folder / "a.idx") << "1\t12\n";
  EXPECT_THAT(RecordFile::Open(folder / "a.rec")->unindexed(),
              ElementsAre(ByteRange{.begin = 0, .end = 12}, ByteRange{.begin = 24, .end = 36}));
}

// As it is when a packer was killed; all records would be left out without a word.
TEST(RecordFile, AnIndexOfNothingIsAnError) {
  const TempFolder folder;
  Write(folder / "a.rec", {"one", "two"});
  std::ofstream(folder / "a.idx") << "\n";
  EXPECT_THAT(RecordFile::Open(folder / "a.rec"),
              FailsWith(absl::StatusCode::kDataLoss, "a.idx: names no record of "));
  EXPECT_THAT(Payloads(*RecordFile::Open(folder / "a.rec", /*skip_damaged=*/true)),
              ElementsAre("one", "two"));
}

// It would be waited for.
TEST(RecordFile, APipeIsNoIndex) {
  const TempFolder folder;
  Write(folder / "a.rec", {"one"});
  std::filesystem::remove(folder / "a.idx");
  ASSERT_EQ(mkfifo((folder / "a.idx").c_str(), 0600), 0);
  EXPECT_THAT(Payloads(*RecordFile::Open(folder / "a.rec")), ElementsAre("one"));
}

TEST(RecordFile, WhatIsDamagedIsToldOrLeftOut) {
  const TempFolder folder;
  Write(folder / "a.rec", {"one", "two", "three"});
  std::fstream(folder / "a.rec", std::ios::in | std::ios::out | std::ios::binary).seekp(12) << "x";
  std::filesystem::remove(folder / "a.idx");
  EXPECT_THAT(RecordFile::Open(folder / "a.rec"),
              FailsWith(absl::StatusCode::kDataLoss, "a.rec: byte 12: no record"));
  const RecordFile file = RecordFile::Open(folder / "a.rec", /*skip_damaged=*/true).value();
  EXPECT_THAT(Payloads(file), ElementsAre("one", "three"));
  ASSERT_THAT(file.damage().ranges, SizeIs(1));
  EXPECT_EQ(file.damage().ranges[0].bytes, (ByteRange{.begin = 12, .end = 24}));
}

TEST(RecordWriter, LeavesNothingWithoutCommit) {
  const TempFolder folder;
  {
    absl::StatusOr<RecordWriter> writer = RecordWriter::Create(folder / "a.rec");
    ASSERT_THAT(writer, IsOk());
    ASSERT_THAT(writer->Append(0, "one"), IsOk());
  }
  EXPECT_THAT(std::vector(std::filesystem::directory_iterator(folder.path()), {}), IsEmpty());
}

TEST(RecordWriter, LinksStayLinksAndLeadToWhatIsNew) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "real");
  for (const char* name : {"a.rec", "a.idx"}) {
    std::ofstream(folder / "real/" + name) << "old";
    std::filesystem::create_symlink(folder / "real/" + name, folder / name);
  }
  Write(folder / "a.rec", {"one"});
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "a.idx"));
  EXPECT_EQ(ReadFile(folder / "real/a.idx").value_or("gone"), "100\t0\n");
  EXPECT_THAT(Payloads(*RecordFile::Open(folder / "real/a.rec")), ElementsAre("one"));
}

// The rename of one file is not followed by a lack of room for the next one.
TEST(RecordWriter, FlushLeavesOnlyTheRenamesToCommit) {
  const TempFolder folder;
  absl::StatusOr<RecordWriter> writer = RecordWriter::Create(folder / "a.rec");
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(writer->Append(0, "one"), IsOk());
  ASSERT_THAT(writer->Flush(), IsOk());
  std::vector<uint64_t> sizes;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().extension(), ".partial");
    sizes.push_back(entry.file_size());
  }
  EXPECT_THAT(sizes, ::testing::UnorderedElementsAre(12, 4));
  ASSERT_THAT(writer->Commit(), IsOk());
  EXPECT_EQ(ReadFile(folder / "a.idx").value(), "0\t0\n");
}

TEST(RecordFile, AnEmptyFileHasNoRecords) {
  const TempFolder folder;
  Write(folder / "a.rec", {});
  EXPECT_THAT(RecordFile::Open(folder / "a.rec")->places(), IsEmpty());
}

}  // namespace
}  // namespace interp
