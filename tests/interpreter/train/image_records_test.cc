// Samples of RecordIO files; tests/core/io/records/pets.rec is of mxnet's im2rec.
#include "interpreter/train/image_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "core/image/encode.h"
#include "interpreter/train/batch_loader.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_folder.h"

namespace interp {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using testing::IsOk;
using testing::SameBits;
using testing::TempFolder;
using testing::Values;

std::string PetsPath() {
  return absl::StrCat(INTERP_SOURCE_DIR, "/tests/core/io/records/pets.rec");
}

std::vector<FeedSpec> Feeds(Shape label = {-1, 1}, DType label_dtype = DType::kInt64) {
  return {{.name = "image", .dtype = DType::kFloat32, .shape = {-1, 3, 8, 8}},
          {.name = "label", .dtype = label_dtype, .shape = label}};
}

ImageRecordOptions RandomCrops(int threads) {
  return {.label_feed = 1,
          .preparation = {.width = 8,
                          .height = 8,
                          .fit = Fit::kRandom,
                          .shorter_side = 0,
                          .mirror = Mirror::kRandom},
          .seed = 3,
          .threads = threads};
}

std::shared_ptr<ImageRecords> Open(const std::string& path, const ImageRecordOptions& options,
                                   const std::vector<FeedSpec>& feeds = Feeds()) {
  std::vector<RecordFile> files;
  files.push_back(RecordFile::Open(path, options.skip_damaged).value());
  return ImageRecords::Create(std::move(files), feeds, options).value();
}

TEST(ImageRecords, GivesPicturesAndLabelsByNumber) {
  const auto records = Open(PetsPath(), RandomCrops(2));
  EXPECT_EQ(records->num_samples(), 10);
  const auto batch = records->Gather({9, 0, 5}, 0);
  ASSERT_THAT(batch, IsOk());
  EXPECT_EQ(batch->feeds[0].shape, (Shape{3, 3, 8, 8}));
  EXPECT_EQ(batch->feeds[1].shape, (Shape{3, 1}));
  EXPECT_THAT(Values<int64_t>(batch->feeds[1]), ElementsAre(2, 0, 1));
}

TEST(ImageRecords, BitsDependOnSeedEpochAndSampleAlone) {
  const auto one = Open(PetsPath(), RandomCrops(1));
  const auto four = Open(PetsPath(), RandomCrops(4));
  std::vector<int64_t> all(10);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<Tensor> first = one->Gather(all, 0)->feeds;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(SameBits(four->Gather(all, 0)->feeds, first));
  EXPECT_FALSE(SameBits(one->Gather(all, 1)->feeds[0], first[0]));
  // Sample 7 alone is what it is in the batch.
  const Tensor seventh = one->Gather({7}, 0)->feeds[0];
  EXPECT_EQ(0, std::memcmp(seventh.raw_data(), first[0].data<float>() + 7 * seventh.numel(),
                           seventh.size_bytes()));
  ImageRecordOptions other = RandomCrops(1);
  other.seed = 4;
  EXPECT_FALSE(SameBits(Open(PetsPath(), other)->Gather(all, 0)->feeds[0], first[0]));
  other = RandomCrops(1);
  other.random = false;
  const auto still = Open(PetsPath(), other);
  EXPECT_TRUE(SameBits(still->Gather(all, 0)->feeds, still->Gather(all, 1)->feeds));
}

TEST(ImageRecords, ALoaderGoesOnToTheSameBits) {
  const BatchOptions options{.batch_size = 3, .seed = 1, .shuffle_block = 2};
  BatchLoader whole(Open(PetsPath(), RandomCrops(2)), options);
  for (int i = 0; i < 9; ++i) {
    const Batch batch = whole.Next().value();
    BatchLoader rest(Open(PetsPath(), RandomCrops(1)), options, batch.position);
    EXPECT_TRUE(SameBits(rest.Next()->feeds, batch.feeds)) << i;
  }
}

// Three records: two of 8 x 8 pixels around one whose picture is cut off.
class DamagedPicture {
 public:
  DamagedPicture() {
    const std::string png = EncodePng({8, 8, std::vector<uint8_t>(8 * 8 * 3, 51)}).value();
    RecordWriter writer = RecordWriter::Create(path()).value();
    for (int i = 0; i < 3; ++i) {
      const absl::string_view picture = absl::string_view(png).substr(0, i == 1 ? 40 : png.size());
      const std::string payload = FormatImageRecord(
          {.labels = {static_cast<float>(i)}, .id = 0, .id2 = 0, .picture = picture});
      EXPECT_THAT(writer.Append(i, payload), IsOk());
    }
    EXPECT_THAT(writer.Commit(), IsOk());
  }
  std::string path() const { return folder_ / "a.rec"; }

 private:
  TempFolder folder_;
};

TEST(ImageRecords, ADamagedPictureIsAnErrorOrLeftOut) {
  const DamagedPicture file;
  ImageRecordOptions options = RandomCrops(2);
  EXPECT_THAT(Open(file.path(), options)->Gather({0, 1, 2}, 0),
              FailsWith(absl::StatusCode::kInvalidArgument, "a.rec: record 1 at byte "));
  options.skip_damaged = true;
  const auto records = Open(file.path(), options);
  const auto batch = records->Gather({0, 1, 2}, 0);
  ASSERT_THAT(batch, IsOk());
  EXPECT_EQ(batch->feeds[0].shape, (Shape{2, 3, 8, 8}));
  EXPECT_THAT(Values<int64_t>(batch->feeds[1]), ElementsAre(0, 2));
  EXPECT_THAT(Values<float>(batch->feeds[0]), ::testing::Each(51.0F));
  EXPECT_EQ(batch->num_skipped, 1);
  const auto none = records->Gather({1}, 0);
  ASSERT_THAT(none, IsOk());
  EXPECT_THAT(none->feeds, ::testing::IsEmpty());
  EXPECT_EQ(none->num_skipped, 1);
  EXPECT_THAT(none->problem,
              FailsWith(absl::StatusCode::kInvalidArgument, "a.rec: record 1 at byte "));
}

// They would be told as damaged, and trained without.
TEST(ImageRecords, WholePicturesThatMemoryDoesNotHoldAreNotSkipped) {
  const DamagedPicture file;
  ImageRecordOptions options = RandomCrops(1);
  options.skip_damaged = true;
  options.max_picture_bytes = 100;
  EXPECT_THAT(Open(file.path(), options)->Gather({0, 1, 2}, 0),
              FailsWith(absl::StatusCode::kResourceExhausted, "takes more than 100 bytes"));
}

TEST(ImageRecords, AFeedThatHoldsNoPixelsIsToldBeforeTheFirstSample) {
  std::vector<RecordFile> files;
  files.push_back(RecordFile::Open(PetsPath()).value());
  std::vector<FeedSpec> feeds = Feeds();
  feeds[0].dtype = DType::kInt64;
  ImageRecordOptions options = RandomCrops(1);
  options.skip_damaged = true;
  EXPECT_THAT(
      ImageRecords::Create(std::move(files), feeds, options),
      FailsWith(absl::StatusCode::kInvalidArgument, "int64[-1,3,8,8]: no picture can be fed as"));
}

TEST(ImageRecords, ABatchWithoutAWholeSampleIsEmpty) {
  const DamagedPicture file;
  ImageRecordOptions options = RandomCrops(1);
  options.skip_damaged = true;
  BatchLoader loader(Open(file.path(), options), {.batch_size = 1, .shuffle = false});
  std::vector<int64_t> samples;
  std::vector<int64_t> skipped;
  for (int i = 0; i < 4; ++i) {
    const auto batch = loader.Next();
    ASSERT_THAT(batch, IsOk());
    samples.push_back(batch->num_samples);
    skipped.push_back(batch->num_skipped);
  }
  EXPECT_THAT(samples, ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(skipped, ElementsAre(0, 1, 0, 0));
}

// Without an end there would be none.
TEST(ImageRecords, AnEpochWithoutAWholeSampleIsAnError) {
  const DamagedPicture file;
  ImageRecordOptions options = RandomCrops(1);
  options.skip_damaged = true;
  BatchLoader loader(Open(file.path(), options),
                     {.batch_size = 1, .shuffle = false, .num_parts = 3, .part_index = 1});
  EXPECT_THAT(loader.Next(), FailsWith(absl::StatusCode::kInvalidArgument,
                                       "no sample of an epoch is whole; the last batch: "));
}

// The second record says that it has two labels, as the feed wants.
TEST(ImageRecords, TheWidthOfLabelsIsToldWithItsRecord) {
  const TempFolder folder;
  const std::string png = EncodePng({8, 8, std::vector<uint8_t>(8 * 8 * 3, 51)}).value();
  {
    RecordWriter writer = RecordWriter::Create(folder / "a.rec").value();
    for (const size_t labels : {1, 2, 2}) {
      const ImageRecord record{
          .labels = std::vector<float>(labels), .id = 0, .id2 = 0, .picture = png};
      ASSERT_THAT(writer.Append(writer.num_records(), FormatImageRecord(record)), IsOk());
    }
    ASSERT_THAT(writer.Commit(), IsOk());
  }
  ImageRecordOptions options = RandomCrops(1);
  const auto create = [&] {
    std::vector<RecordFile> files;
    files.push_back(RecordFile::Open(folder / "a.rec").value());
    return ImageRecords::Create(std::move(files), Feeds({-1, 2}), options);
  };
  EXPECT_THAT(create(), FailsWith(absl::StatusCode::kInvalidArgument,
                                  "a.rec: record 0 at byte 0: feed 'label' int64[-1,2]: "));
  options.skip_damaged = true;
  const auto records = create();
  ASSERT_THAT(records, IsOk());
  EXPECT_EQ((*records)->Gather({0, 1, 2}, 0)->num_skipped, 1);
}

TEST(ImageRecords, FilesWithoutRecordsAreNamed) {
  const TempFolder folder;
  ASSERT_THAT(RecordWriter::Create(folder / "a.rec")->Commit(), IsOk());
  std::vector<RecordFile> files;
  files.push_back(RecordFile::Open(folder / "a.rec").value());
  EXPECT_THAT(ImageRecords::Create(std::move(files), Feeds(), RandomCrops(1)),
              FailsWith(absl::StatusCode::kInvalidArgument, "a.rec: there are no records"));
}

TEST(ImageRecords, SaysWhatDoesNotFit) {
  const auto create = [](std::vector<FeedSpec> feeds, const ImageRecordOptions& options) {
    std::vector<RecordFile> files;
    files.push_back(RecordFile::Open(PetsPath()).value());
    return ImageRecords::Create(std::move(files), std::move(feeds), options).status();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  ImageRecordOptions options = RandomCrops(1);
  EXPECT_THAT(create(Feeds(), options), IsOk());
  EXPECT_THAT(create(Feeds({-1}), options), IsOk());
  EXPECT_THAT(create(Feeds({-1, 2}), options),
              FailsWith(invalid, "feed 'label' int64[-1,2]: a record has 1 labels"));
  EXPECT_THAT(create(Feeds({-1, 1}, DType::kBool), options), FailsWith(invalid, "expected labels"));
  std::vector<FeedSpec> three = Feeds();
  three.push_back({.name = "weight", .dtype = DType::kFloat32, .shape = {-1, 1}});
  EXPECT_THAT(create(three, options), FailsWith(invalid, "feed 'weight' float32[-1,1]: records"));
  options.preparation.width = 9;
  EXPECT_THAT(create(Feeds(), options), FailsWith(invalid, "takes no pictures of [3,8,9]"));
  options.preparation.width = 0;
  EXPECT_THAT(create(Feeds(), options), FailsWith(invalid, "give a size"));
}

}  // namespace
}  // namespace interp
