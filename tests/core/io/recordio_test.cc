// RecordIO: files of MXNet, which tests/core/io/records/make_records.py has written, and our own.
#include "core/io/recordio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/io/file.h"
#include "core/io/image_record.h"
#include "core/io/little_endian.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_folder.h"

namespace interp::recordio_test {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;

const std::string& Magic() {
  static const std::string& magic = *new std::string("\x0a\x23\xd7\xce");
  return magic;
}

// Those of make_records.py.
std::vector<std::string> Payloads() {
  const std::string& m = Magic();
  return {"",
          "a",
          "abc",
          "abcd",
          "abcde",
          m,
          m + m,
          "1234" + m,
          m + "12",
          "1" + m + "234",
          "12" + m + "34",
          "123" + m + "4",
          "1234" + m + "5678" + m + "90",
          "12345" + m + m + m};
}

std::string MxnetFile(const std::string& name) {
  return ReadFile(absl::StrCat(INTERP_SOURCE_DIR, "/tests/core/io/records/", name))
      .value_or("none");
}

struct Contents {
  std::vector<std::string> payloads;
  std::vector<DamagedRange> damaged;
  absl::Status status;
};

Contents ReadAll(absl::string_view file, ByteRange range, bool skip_damaged = false) {
  RecordReader reader(file, range, skip_damaged);
  Contents contents;
  while (true) {
    const absl::StatusOr<std::optional<Record>> record = reader.Next();
    contents.status = record.status();
    if (!record.ok() || !record->has_value()) break;
    contents.payloads.emplace_back((*record)->payload);
  }
  contents.damaged = reader.damage().ranges;
  return contents;
}
Contents ReadAll(absl::string_view file, bool skip_damaged = false) {
  return ReadAll(file, {.begin = 0, .end = file.size()}, skip_damaged);
}

std::string FileOf(const std::vector<std::string>& payloads) {
  std::string file;
  for (const std::string& payload : payloads) EXPECT_THAT(AppendRecord(payload, file), IsOk());
  return file;
}

TEST(RecordIo, WritesTheBytesOfMxnet) { EXPECT_EQ(FileOf(Payloads()), MxnetFile("magic.rec")); }

TEST(RecordIo, ReadsTheFilesOfMxnet) {
  const std::string file = MxnetFile("magic.rec");
  const Contents contents = ReadAll(file);
  EXPECT_THAT(contents.status, IsOk());
  EXPECT_EQ(contents.payloads, Payloads());
}

TEST(RecordIo, AMagicNumberAtAnyPlaceComesBack) {
  for (int before = 0; before <= 8; ++before) {
    for (int after = 0; after <= 5; ++after) {
      const std::string payload = std::string(before, 'x') + Magic() + std::string(after, 'y');
      EXPECT_THAT(ReadAll(FileOf({payload, "next"})).payloads, ElementsAre(payload, "next"))
          << before << " " << after;
    }
  }
}

TEST(RecordIo, EveryCutOffFileIsAnErrorOrEndsWithARecord) {
  const std::string file = MxnetFile("magic.rec");
  std::vector<uint64_t> ends = {0};
  std::string joined;
  while (ends.back() < file.size()) ends.push_back(ReadRecord(file, ends.back(), joined)->end);
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string cut = file.substr(0, size);
    const Contents contents = ReadAll(cut);
    const auto whole = std::ranges::upper_bound(ends, size) - ends.begin() - 1;
    EXPECT_THAT(contents.payloads, SizeIs(whole)) << size;
    EXPECT_EQ(contents.status.ok(), std::ranges::binary_search(ends, size)) << size;
    if (!contents.status.ok()) {
      EXPECT_THAT(contents.status, FailsWith(absl::StatusCode::kDataLoss, "cut off"));
    }
    const Contents skipped = ReadAll(cut, /*skip_damaged=*/true);
    EXPECT_THAT(skipped.status, IsOk());
    EXPECT_EQ(skipped.payloads, contents.payloads);
    EXPECT_EQ(skipped.damaged.size(), contents.status.ok() ? 0 : 1) << size;
  }
}

// record 0 | record 1 | record 2: bytes of the middle one change.
TEST(RecordIo, ADamagedRecordIsAnErrorOrSkippedUpToTheNextHead) {
  const std::string first = FileOf({"first"});
  const std::string file = FileOf({"first", std::string(40, 'x'), "third"});
  const auto damage = [&](size_t at, char value) {
    std::string damaged = file;
    damaged[first.size() + at] = value;
    return damaged;
  };
  const uint64_t begin = first.size();
  for (const auto& [damaged, problem] : std::vector<std::pair<std::string, std::string>>{
           {damage(0, 'x'), "byte 16: no record: found ced72378, expected ced7230a"},
           {damage(4, 44), "byte 16: the record says 44 bytes, but another part begins at byte 64"},
           {damage(4, 60), "byte 16: cut off: the record says 60 bytes, but only 56 are left"},
           {damage(7, 1), "byte 16: cut off: the record says 16777256 bytes, but only 56 are left"},
           {damage(7, 0x60), "byte 16: a part of kind 3, expected 0 or 1, which begin a record"},
           {damage(7, 0x20), "byte 64: a part of kind 0, expected 2 or 3 of the record at byte 16"},
           {damage(4, 20), "byte 44: no record: found 78787878"}}) {
    EXPECT_THAT(ReadAll(damaged).status, FailsWith(absl::StatusCode::kDataLoss, problem));
    const Contents skipped = ReadAll(damaged, /*skip_damaged=*/true);
    EXPECT_THAT(skipped.status, IsOk());
    EXPECT_EQ(skipped.payloads.front(), "first");
    ASSERT_THAT(skipped.damaged, SizeIs(1)) << problem;
    EXPECT_THAT(skipped.damaged[0].problem, HasSubstr(problem));
    if (skipped.damaged[0].bytes.begin == begin) {
      EXPECT_THAT(skipped.payloads, ElementsAre("first", "third")) << problem;
      EXPECT_EQ(skipped.damaged[0].bytes.end, 64) << problem;
    }
  }
}

TEST(RecordIo, PartsHoldTheRecordsOfMxnet) {
  const std::string file = MxnetFile("pets.rec");
  // What ImageRecordIter of mxnet 1.9.1 delivers with num_parts: labels.
  using Parts = std::vector<std::vector<float>>;
  const std::vector<Parts> all = {
      {{0, 0, 0, 0, 1, 1, 1, 2, 2, 2}},
      {{0, 0, 0, 0}, {1, 1, 1}, {2, 2, 2}},
      {{0, 0, 0}, {0, 1, 1}, {1, 2}, {2, 2}},
      {{0, 0}, {0}, {0, 1}, {1}, {1, 2}, {2}, {2}},
  };
  for (const Parts& expected : all) {
    for (size_t i = 0; i < expected.size(); ++i) {
      const ByteRange part = PartOfRecords(file, static_cast<int64_t>(i), std::ssize(expected));
      std::vector<float> labels;
      for (const std::string& payload : ReadAll(file, part).payloads) {
        labels.push_back(ParseImageRecord(payload)->labels[0]);
      }
      EXPECT_EQ(labels, expected[i]) << i << " of " << expected.size();
    }
  }
}

TEST(RecordIo, EachRecordLiesInExactlyOnePart) {
  const std::string pets = MxnetFile("pets.rec");
  for (const std::string& file : {pets, MxnetFile("magic.rec"), FileOf({"one"}), std::string()}) {
    const std::vector<std::string> whole = ReadAll(file).payloads;
    for (int64_t count = 1; count < 40; ++count) {
      std::vector<std::string> together;
      uint64_t end = 0;
      for (int64_t i = 0; i < count; ++i) {
        const ByteRange part = PartOfRecords(file, i, count);
        EXPECT_EQ(part.begin, end);
        end = part.end;
        const Contents contents = ReadAll(file, part);
        EXPECT_THAT(contents.status, IsOk());
        together.insert(together.end(), contents.payloads.begin(), contents.payloads.end());
      }
      EXPECT_EQ(end, file.size());
      EXPECT_EQ(together, whole) << count;
    }
  }
}

TEST(RecordIo, ARecordThatIsTooLongIsRefused) {
  const testing::TempFolder folder;
  std::ofstream(folder / "sparse").put('\0');
  std::filesystem::resize_file(folder / "sparse", kMaxRecordBytes);
  const std::shared_ptr<const MappedFile> payload = MappedFile::Open(folder / "sparse").value();
  std::string file = "before";
  EXPECT_THAT(AppendRecord(payload->bytes(), file),
              FailsWith(absl::StatusCode::kInvalidArgument, "536870912 bytes, expected fewer"));
  EXPECT_EQ(file, "before");
}

TEST(ImageRecord, ReadsTheLabelsOfMxnet) {
  const std::string file = MxnetFile("labels.rec");
  const std::vector<std::string> payloads = ReadAll(file).payloads;
  ASSERT_THAT(payloads, SizeIs(3));
  const ImageRecord several = ParseImageRecord(payloads[0]).value();
  EXPECT_THAT(several.labels, ElementsAre(1.5, -2, 3));
  EXPECT_EQ(several.id, 7);
  EXPECT_EQ(several.id2, 8);
  EXPECT_EQ(several.picture, "xyz");
  const ImageRecord one = ParseImageRecord(payloads[1]).value();
  EXPECT_THAT(one.labels, ElementsAre(4));
  EXPECT_EQ(one.id, uint64_t{1} << 40);
  EXPECT_THAT(one.picture, IsEmpty());
  EXPECT_THAT(ParseImageRecord(payloads[2])->labels, ElementsAre(9));
  EXPECT_EQ(FormatImageRecord(several), payloads[0]);
  EXPECT_EQ(FormatImageRecord(one), payloads[1]);
}

TEST(ImageRecord, EveryCutOffHeaderIsAnError) {
  const std::string payload =
      FormatImageRecord({.labels = {1, 2, 3}, .id = 1, .id2 = 0, .picture = ""});
  for (size_t size = 0; size < payload.size(); ++size) {
    EXPECT_THAT(ParseImageRecord(payload.substr(0, size)),
                FailsWith(absl::StatusCode::kDataLoss, size < 24 ? "header of 24" : "3 labels"));
  }
}

// Junk between records: places beyond the first ones are counted, not kept.
TEST(RecordIo, OfManyDamagedPlacesTheFirstAreKept) {
  std::string file;
  const size_t places = Damage::kMostRanges + 7;
  for (size_t i = 0; i < places; ++i) file += "junkjunk" + FileOf({"x"});
  RecordReader reader(file, {.begin = 0, .end = file.size()}, /*skip_damaged=*/true);
  size_t records = 0;
  while (reader.Next()->has_value()) ++records;
  EXPECT_EQ(records, places);
  EXPECT_EQ(reader.damage().num_ranges, places);
  EXPECT_EQ(reader.damage().num_bytes, 8 * places);
  ASSERT_THAT(reader.damage().ranges, SizeIs(Damage::kMostRanges));
  EXPECT_EQ(reader.damage().ranges.back().bytes.end - reader.damage().ranges.back().bytes.begin, 8);
}

}  // namespace
}  // namespace interp::recordio_test
