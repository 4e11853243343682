// interp pack: pictures into record files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "core/image/decode.h"
#include "core/image/encode.h"
#include "core/io/file.h"
#include "core/io/image_record.h"
#include "core/io/record_file.h"
#include "tests/testing/command.h"
#include "tools/pack_pictures.h"
#include "tools/picture_list.h"

namespace interp::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr size_t kMaxBytes = 1 << 24;

struct Packed {
  std::vector<uint64_t> keys;
  std::vector<ImageRecord> headers;  // without the pictures
  std::vector<std::string> pictures;
};

Packed Unpack(const std::string& path) {
  Packed packed;
  const absl::StatusOr<RecordFile> file = RecordFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return packed;
  EXPECT_TRUE(std::filesystem::exists(IndexPathOf(path)));
  std::string joined;
  for (size_t i = 0; i < file->places().size(); ++i) {
    ImageRecord record = ParseImageRecord(file->Read(i, joined)->payload).value();
    packed.keys.push_back(file->places()[i].key);
    packed.pictures.emplace_back(record.picture);
    record.picture = {};
    packed.headers.push_back(record);
  }
  return packed;
}

// cat/0.png, cat/1.jpg, dog/a.PNG and dog/text.txt: 40 x 20, 30 x 60 and 8 x 8 pixels.
class Pets {
 public:
  Pets() {
    std::filesystem::create_directories(root() + "/cat");
    std::filesystem::create_directories(root() + "/dog");
    Write("cat/0.png", *EncodePng(Ramp(40, 20)));
    Write("cat/1.jpg", *EncodeJpeg(Ramp(30, 60), 90));
    Write("dog/a.PNG", *EncodePng(Ramp(8, 8)));
    Write("dog/text.txt", "no picture");
  }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  std::string root() const { return folder_ / "pets"; }
  std::string Bytes(const std::string& name) const { return ReadFile(root() + "/" + name).value(); }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(root() + "/" + name, std::ios::binary) << bytes;
  }
  CommandResult Pack(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"pack", root(), "-o", folder_ / "out.rec"};
    all.insert(all.end(), more.begin(), more.end());
    return RunInterp(all);
  }
  Packed Result() const { return Unpack(folder_ / "out.rec"); }
  // What lies beside the pictures.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "")) {
      if (!entry.is_directory()) names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

 private:
  static Picture<uint8_t> Ramp(int width, int height) {
    Picture<uint8_t> picture{width, height};
    for (int i = 0; i < width * height * 3; ++i) {
      picture.pixels.push_back(static_cast<uint8_t>(i * 200 / (width * height * 3)));
    }
    return picture;
  }

  TemporaryFolder folder_;
};

TEST(Pack, AFolderIsLabelledByItsFolders) {
  const Pets pets;
  const CommandResult result = pets.Pack({"--write-labels", pets / "labels.txt"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("out.rec: 3 records, "));
  EXPECT_THAT(result.out, HasSubstr("    0         2  cat\n    1         1  dog\n"));
  const Packed packed = pets.Result();
  EXPECT_THAT(packed.keys, ElementsAre(0, 1, 2));
  EXPECT_EQ(packed.headers[2].id, 2);
  EXPECT_THAT(packed.headers[2].labels, ElementsAre(1));
  EXPECT_THAT(packed.pictures, ElementsAre(pets.Bytes("cat/0.png"), pets.Bytes("cat/1.jpg"),
                                           pets.Bytes("dog/a.PNG")));
  EXPECT_EQ(ReadFile(pets / "labels.txt").value(), "cat\ndog\n");
  EXPECT_THAT(pets.Files(), ElementsAre("labels.txt", "out.idx", "out.rec"));
}

TEST(Pack, ListsHaveSeveralLabelsAndTheirOrder) {
  const Pets pets;
  std::ofstream(pets / "some.lst") << "7\t1.5\t-2\tpets/dog/a.PNG\n\n3\t0\t4\tpets/cat/1.jpg\r\n";
  const CommandResult result = RunInterp(
      {"pack", pets / "some.lst", "-o", pets / "out.rec", "--write-list", pets / "again.lst"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Packed packed = pets.Result();
  EXPECT_THAT(packed.keys, ElementsAre(7, 3));
  EXPECT_THAT(packed.headers[0].labels, ElementsAre(1.5, -2));
  EXPECT_THAT(packed.headers[1].labels, ElementsAre(0, 4));
  EXPECT_EQ(ReadFile(pets / "again.lst").value(),
            "7\t1.5\t-2\tpets/dog/a.PNG\n3\t0\t4\tpets/cat/1.jpg\n");
}

TEST(Pack, LabelsMayBeAnyNumbers) {
  const Pets pets;
  std::ofstream(pets / "some.lst") << "0\t-2\tpets/dog/a.PNG\n1\tnan\tpets/cat/1.jpg\n"
                                      "2\tnan\tpets/cat/0.png\n3\t1e30\tpets/cat/0.png\n";
  const CommandResult result = RunInterp({"pack", pets / "some.lst", "-o", pets / "out.rec"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("   -2         1\n1e+30         1\n  nan         2\n"));
  EXPECT_EQ(RunInterp({"info", pets / "out.rec"}).exit_code, 0);
}

TEST(Pack, ReadsTheListsOfMxnet) {
  const std::string folder = absl::StrCat(INTERP_SOURCE_DIR, "/tests/core/io/records/");
  const PictureList list = ParsePictureList(ReadFile(folder + "pets.lst").value()).value();
  ASSERT_THAT(list.pictures, SizeIs(10));
  EXPECT_EQ(list.pictures[4].id, 4);
  EXPECT_THAT(list.pictures[4].labels, ElementsAre(1));
  EXPECT_EQ(list.pictures[4].path, "bee/0.png");
}

TEST(Pack, ResizesAndCropsWhatIsLarger) {
  const Pets pets;
  const auto sizes = [&](const std::vector<std::string>& flags) {
    const CommandResult result = pets.Pack(flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<std::pair<int, int>> all;
    for (const std::string& picture : pets.Result().pictures) {
      const PictureSize size = SizeOfPicture(picture).value();
      all.emplace_back(size.width, size.height);
    }
    return all;
  };
  using Sizes = std::vector<std::pair<int, int>>;
  EXPECT_EQ(sizes({"--resize", "10"}), (Sizes{{20, 10}, {10, 20}, {8, 8}}));
  EXPECT_EQ(sizes({"--center-crop"}), (Sizes{{20, 20}, {30, 30}, {8, 8}}));
  EXPECT_EQ(sizes({"--resize", "10", "--center-crop"}), (Sizes{{10, 10}, {10, 10}, {8, 8}}));
}

TEST(Pack, EncodesWhatChangesOrWhatIsAskedFor) {
  const Pets pets;
  const auto pictures = [&](const std::vector<std::string>& flags) {
    EXPECT_EQ(pets.Pack(flags).exit_code, 0);
    return pets.Result().pictures;
  };
  std::vector<std::string> resized = pictures({"--resize", "10"});
  EXPECT_THAT(resized[0], StartsWith("\xff\xd8"));
  EXPECT_EQ(resized[2], pets.Bytes("dog/a.PNG"));
  const std::vector<std::string> coarse = pictures({"--resize", "10", "--quality", "5"});
  EXPECT_LT(coarse[1].size(), resized[1].size());
  const std::vector<std::string> png = pictures({"--encoding", "png"});
  EXPECT_EQ(png[0], pets.Bytes("cat/0.png"));
  EXPECT_EQ(DecodePicture(png[1], kMaxBytes)->pixels,
            DecodePicture(pets.Bytes("cat/1.jpg"), kMaxBytes)->pixels);
}

TEST(Pack, AnyNumberOfThreadsGivesTheSameBytes) {
  const Pets pets;
  std::vector<std::string> files;
  for (const char* threads : {"1", "4"}) {
    ASSERT_EQ(
        pets.Pack({"--resize", "9", "--threads", threads, "--shuffle", "--seed", "5"}).exit_code,
        0);
    files.push_back(ReadFile(pets / "out.rec").value() + ReadFile(pets / "out.idx").value());
  }
  EXPECT_EQ(files[0], files[1]);
}

TEST(Pack, PartsTogetherHoldEveryPicture) {
  const Pets pets;
  const CommandResult result = pets.Pack({"--parts", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("out_1.rec: 3 records"));
  EXPECT_THAT(Unpack(pets / "out_0.rec").keys, ElementsAre(0, 1));
  EXPECT_THAT(Unpack(pets / "out_1.rec").keys, ElementsAre(2));
}

TEST(Pack, DamagedPicturesAreErrorsOrToldAndLeftOut) {
  const Pets pets;
  pets.Write("cat/1.jpg", pets.Bytes("cat/1.jpg").substr(0, 300));
  const CommandResult stopped = pets.Pack();
  EXPECT_EQ(stopped.exit_code, 2);
  EXPECT_THAT(stopped.err, HasSubstr("pets/cat/1.jpg: damaged or cut off"));
  EXPECT_THAT(pets.Files(), IsEmpty());
  const CommandResult skipped = pets.Pack({"--skip-damaged"});
  EXPECT_EQ(skipped.exit_code, 0);
  EXPECT_THAT(skipped.err, HasSubstr("warning: "));
  EXPECT_THAT(skipped.out, HasSubstr("skipped 1 damaged picture"));
  EXPECT_THAT(pets.Result().keys, ElementsAre(0, 2));
  EXPECT_EQ(pets.Pack({"--pass-through"}).exit_code, 0);
  EXPECT_THAT(pets.Result().pictures, SizeIs(3));
}

TEST(Pack, ListsAndCountsAreOfWhatWasPacked) {
  const Pets pets;
  pets.Write("cat/1.jpg", "no picture");
  const CommandResult result = pets.Pack({"--skip-damaged", "--write-list", pets / "out.lst"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ReadFile(pets / "out.lst").value(), "0\t0\tcat/0.png\n2\t1\tdog/a.PNG\n");
  EXPECT_THAT(result.out, HasSubstr("    0         1  cat\n    1         1  dog\n"));
}

TEST(Pack, LinksToFoldersAreFollowed) {
  const Pets pets;
  std::filesystem::create_directories(pets / "other");
  std::filesystem::copy_file(pets.root() + "/dog/a.PNG", pets / "other/b.png");
  std::filesystem::create_directory_symlink(pets / "other", pets.root() + "/bee");
  const CommandResult result = pets.Pack();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("    0         1  bee\n    1         2  cat\n"));
  std::filesystem::create_directory_symlink(pets.root(), pets / "other/round");
  const CommandResult loop = pets.Pack();
  EXPECT_EQ(loop.exit_code, 2);
  EXPECT_THAT(loop.err, HasSubstr("bee/round' is a link to a folder that it lies in"));
}

TEST(Pack, PathsOfListsMayBeAbsoluteAndSpaced) {
  const Pets pets;
  std::ofstream(pets / "some.lst") << "\xef\xbb\xbf"
                                   << "7\t 1 \t " << pets.root() << "/dog/a.PNG \n";
  const CommandResult result = RunInterp({"pack", pets / "some.lst", "-o", pets / "out.rec"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(pets.Result().pictures, ElementsAre(pets.Bytes("dog/a.PNG")));
}

// A pipe would be waited for.
TEST(Pack, PipesAreNoPictures) {
  const Pets pets;
  ASSERT_EQ(mkfifo((pets.root() + "/cat/2.png").c_str(), 0600), 0);
  const CommandResult result = pets.Pack();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("cat/2.png' is not a regular file"));
}

// Five times what the new picture takes, beside the old one.
TEST(Pack, WhatResizingTakesIsBounded) {
  const Pets pets;
  PictureList list;
  list.pictures.push_back({.id = 0, .labels = {0}, .path = "cat/0.png"});
  PackOptions options;
  options.root = pets.root();
  options.shorter_side = 19;
  options.max_bytes = 40 * 20 * 3;
  const std::atomic<bool> stop{false};
  const auto pack = [&] {
    return PackPictures(
               list, pets / "out.rec", options, [](size_t) {}, stop)
        .status();
  };
  EXPECT_EQ(pack().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(pack().message()),
              HasSubstr("resizing 20 x 40 pixels to 19 x 38 takes more than 2400 bytes"));
  options.max_bytes += 38 * 19 * 15;
  EXPECT_TRUE(pack().ok());
}

TEST(Pack, OutputsAreCheckedBeforeTheWork) {
  const Pets pets;
  pets.Write("cat/1.jpg", "no picture");  // would be told first
  const auto error = [&](const std::vector<std::string>& more, int code) {
    const CommandResult result = pets.Pack(more);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_FALSE(ReadFile(pets / "out.rec").ok());
    return result.err;
  };
  EXPECT_THAT(error({"--write-list", pets / "no/x.lst"}, 1), HasSubstr("cannot create"));
  EXPECT_THAT(error({"--write-list", pets / "out.rec"}, 2),
              HasSubstr("the records and --write-list are both '"));
  EXPECT_THAT(error({"--write-labels", pets / "./out.idx"}, 2),
              HasSubstr("their index and --write-labels are both '"));
  std::filesystem::create_directory(pets / "out.idx");
  EXPECT_THAT(error({}, 1), HasSubstr("out.idx': Is a directory"));
}

TEST(Pack, AListThatCannotBeWrittenLeavesNoRecords) {
  const Pets pets;
  const CommandResult result = pets.Pack({"--write-list", "/dev/full"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot write '/dev/full'"));
  EXPECT_THAT(pets.Files(), IsEmpty());
}

TEST(Pack, NamesThatNoListHoldsAreErrors) {
  const Pets pets;
  pets.Write("cat/a\tb.png", pets.Bytes("cat/0.png"));
  EXPECT_EQ(pets.Pack().exit_code, 0);
  EXPECT_THAT(pets.Pack({"--write-list", pets / "out.lst"}).err,
              HasSubstr("'cat/a\\tb.png' cannot stand in a list"));
}

TEST(Pack, AnInterruptionLeavesNothing) {
  const Pets pets;
  const PictureList list = ListFolder(pets.root()).value();
  const auto pack = [&](bool stop) {
    const std::atomic<bool> stopped{stop};
    PackOptions options;
    options.root = pets.root();
    return PackPictures(
               list, pets / "out.rec", options, [](size_t) {}, stopped)
        .status();
  };
  EXPECT_EQ(pack(true).code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(pets.Files(), IsEmpty());
  EXPECT_TRUE(pack(false).ok());
}

TEST(Pack, SaysWhatIsWrong) {
  const Pets pets;
  const auto error = [&](const std::vector<std::string>& arguments, int code = 2) {
    const CommandResult result = RunInterp(arguments);
    EXPECT_EQ(result.exit_code, code) << result.err;
    return result.err;
  };
  const std::string out = pets / "out.rec";
  EXPECT_THAT(error({"pack", pets.root(), "-o", pets / "out"}), HasSubstr("ends in .rec"));
  EXPECT_THAT(error({"pack", pets / "none.lst", "-o", out}), HasSubstr("cannot open"));
  EXPECT_THAT(error({"pack", pets.root(), "-o", pets / "no/out.rec"}, 1),
              HasSubstr("cannot create"));
  EXPECT_THAT(error({"pack", pets.root(), "-o", out, "--seed", "1"}),
              HasSubstr("without --shuffle"));
  EXPECT_THAT(error({"pack", pets.root(), "-o", out, "--pass-through", "--resize", "9"}),
              HasSubstr("--resize has no effect with --pass-through"));
  EXPECT_THAT(error({"pack", pets.root(), "-o", out, "--encoding", "png", "--quality", "9"}),
              HasSubstr("--quality has no effect where no picture becomes a JPEG"));
  EXPECT_THAT(error({"pack", pets.root(), "-o", out, "--quality", "9"}), HasSubstr("no effect"));
  std::ofstream(pets / "one.lst") << "0\t0\tpets/cat/0.png\n";
  EXPECT_THAT(error({"pack", pets / "one.lst", "-o", out, "--write-labels", pets / "l.txt"}),
              HasSubstr("--write-labels has no effect with a list"));
  std::filesystem::create_directories(pets / "empty");
  EXPECT_THAT(error({"pack", pets / "empty", "-o", out}), HasSubstr("there are no pictures"));
  for (const auto& [line, problem] : std::vector<std::pair<std::string, std::string>>{
           {"1\ta.png", "line 2: has 2 cells"},
           {"x\t1\ta.png", "line 2: 'x' is no number from 0 on"},
           {"1\tcat\ta.png", "line 2: label 'cat' is no number"},
           {"1\t1e999\ta.png", "line 2: label '1e999' is no number of 32 bits"},
           {"0.0\t1\ta.png", "line 2: number 0 is there a second time"},
           {std::string("1\t1\ta\0b.png", 10), "line 2: holds a zero byte"},
           {"1\t1\t", "line 2: the path is empty"}}) {
    std::ofstream(pets / "bad.lst") << "0\t0\tpets/cat/0.png\n" << line << "\n";
    EXPECT_THAT(error({"pack", pets / "bad.lst", "-o", out}), HasSubstr("bad.lst: " + problem));
  }
  std::ofstream(pets / "gone.lst") << "0\t0\tpets/gone.png\n";
  EXPECT_THAT(error({"pack", pets / "gone.lst", "-o", out}), HasSubstr("pets/gone.png"));
}

}  // namespace
}  // namespace interp::testing
