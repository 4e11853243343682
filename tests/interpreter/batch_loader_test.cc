#include "interpreter/train/batch_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "interpreter/train/dataset.h"
#include "tests/testing/matchers.h"
#include "tests/testing/no_threads.h"

namespace interp {
namespace {

using ::testing::ElementsAre;
using testing::FailsWith;
using testing::IsOk;

// Samples 0, 1, ... as [n,1] floats and [n] integers.
std::shared_ptr<SampleSource> Counting(int64_t count) {
  std::vector<float> floats(count);
  std::iota(floats.begin(), floats.end(), 0.0F);
  const std::vector<int64_t> integers(floats.begin(), floats.end());
  auto dataset = std::make_shared<Dataset>();
  dataset->arrays.emplace_back("x", Tensor::Of<float>(Shape{count, 1}, floats));
  dataset->arrays.emplace_back("y", Tensor::Of<int64_t>(Shape{count}, integers));
  dataset->num_samples = count;
  return SourceOf(dataset);
}

std::vector<int64_t> Labels(const Batch& batch) {
  const Tensor& labels = batch.feeds[1];
  return {labels.data<int64_t>(), labels.data<int64_t>() + labels.numel()};
}

TEST(BatchLoader, CutsInOrder) {
  BatchLoader loader(Counting(5), {.batch_size = 2, .shuffle = false});
  for (int epoch = 0; epoch < 2; ++epoch) {
    const auto first = loader.Next();
    ASSERT_THAT(first, IsOk());
    EXPECT_THAT(Labels(*first), ElementsAre(0, 1));
    EXPECT_EQ(first->feeds[0].shape, (Shape{2, 1}));
    EXPECT_THAT(Labels(*loader.Next()), ElementsAre(2, 3));
    const auto last = loader.Next();
    EXPECT_THAT(Labels(*last), ElementsAre(4));
    EXPECT_EQ(last->num_samples, 1);
    EXPECT_EQ(last->next, (DataPosition{.epoch = epoch + 1, .batch = 0}));
  }
}

TEST(BatchLoader, DropsTheLastBatchThatIsNotFull) {
  BatchLoader loader(Counting(5), {.batch_size = 2, .shuffle = false, .drop_last = true});
  ASSERT_THAT(loader.Next(), IsOk());
  EXPECT_THAT(Labels(*loader.Next()), ElementsAre(2, 3));
  EXPECT_THAT(Labels(*loader.Next()), ElementsAre(0, 1));
}

TEST(BatchLoader, ShufflesEachEpochAnewAndLosesNothing) {
  const BatchOptions options{.batch_size = 100, .seed = 7};
  BatchLoader loader(Counting(100), options);
  const std::vector<int64_t> first = Labels(*loader.Next());
  const std::vector<int64_t> second = Labels(*loader.Next());
  EXPECT_NE(first, second);
  for (std::vector<int64_t> order : {first, second}) {
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  }
  EXPECT_EQ(first, SampleOrder(100, options, 0));
  EXPECT_NE(first, SampleOrder(100, {.batch_size = 100, .seed = 8}, 0));
}

TEST(BatchLoader, GoesOnFromAnyPosition) {
  const BatchOptions options{.batch_size = 3, .seed = 1};
  BatchLoader whole(Counting(10), options);
  std::vector<Batch> batches;
  for (int i = 0; i < 12; ++i) batches.push_back(*whole.Next());
  for (int i = 0; i < 12; ++i) {
    BatchLoader rest(Counting(10), options, batches[i].position);
    EXPECT_EQ(Labels(*rest.Next()), Labels(batches[i])) << i;
  }
}

// Counts what is gathered of it.
class CountedSource : public SampleSource {
 public:
  int64_t num_samples() const override { return 4; }
  absl::StatusOr<Gathered> Gather(absl::Span<const int64_t> samples, int64_t /*epoch*/) override {
    ++num_gathered;
    Gathered batch;
    batch.feeds.push_back(
        Tensor::Of<float>(Shape{std::ssize(samples)}, std::vector<float>(samples.size())));
    return batch;
  }
  std::atomic<int> num_gathered = 0;
};

TEST(BatchLoader, MakesNothingBehindItsEnd) {
  for (const LoaderEnd end : {LoaderEnd{.position = {.epoch = 1}}, LoaderEnd{.batches = 2}}) {
    const auto source = std::make_shared<CountedSource>();
    {
      BatchLoader loader(source, {.batch_size = 2, .ahead = 8}, {}, end);
      EXPECT_THAT(loader.Next(), IsOk());
      EXPECT_THAT(loader.Next(), IsOk());
      EXPECT_THAT(loader.Next(), FailsWith(absl::StatusCode::kOutOfRange, "no more batches"));
    }
    EXPECT_EQ(source->num_gathered, 2);
  }
}

TEST(BatchLoader, EndsWhileBatchesAreBeingMade) {
  for (int i = 0; i < 50; ++i) {
    BatchLoader loader(Counting(1000), {.batch_size = 10, .ahead = 2});
    if (i % 2 == 0) {
      EXPECT_THAT(loader.Next(), IsOk());
    }
  }
}

// So many samples that their order does not fit into any memory.
TEST(BatchLoader, ExceptionsOnItsThreadBecomeErrors) {
  auto dataset = std::make_shared<Dataset>();
  dataset->num_samples = int64_t{1} << 61;
  BatchLoader loader(SourceOf(dataset), {.batch_size = 1});
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(loader.Next().ok());
}

TEST(BatchLoader, WithoutAThreadThereAreNoBatches) {
  const testing::NoThreads none;
  BatchLoader loader(Counting(5), {.batch_size = 2});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(loader.Next(),
                FailsWith(absl::StatusCode::kResourceExhausted, "the system gives no thread"));
  }
}

FeedSpec Feed(std::string name, DType dtype, Shape shape) {
  return {.name = std::move(name), .dtype = dtype, .shape = shape};
}

TEST(FitDataset, ConvertsAndReshapes) {
  const std::vector<NamedTensor> arrays = {
      {"label", Tensor::Of<int64_t>(Shape{2}, {3, 4})},
      {"image", Tensor::Of<uint8_t>(Shape{2, 2, 2}, {0, 255, 51, 0, 0, 0, 0, 102})},
      {"other", Tensor::Of<float>(Shape{7}, std::vector<float>(7))}};
  const auto dataset = FitDataset(arrays, {Feed("image", DType::kFloat32, {-1, 1, 2, 2}),
                                           Feed("label", DType::kInt32, {-1, 1})});
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ(dataset->num_samples, 2);
  const Tensor& image = dataset->arrays[0].second;
  EXPECT_EQ(image.shape, (Shape{2, 1, 2, 2}));
  EXPECT_EQ(image.data<float>()[1], 1.0F);
  EXPECT_FLOAT_EQ(image.data<float>()[7], 0.4F);
  const Tensor& label = dataset->arrays[1].second;
  EXPECT_EQ(label.shape, (Shape{2, 1}));
  EXPECT_EQ(label.data<int32_t>()[1], 4);
}

TEST(FitDataset, SeveralUnknownDimsAreTheArrays) {
  const std::vector<NamedTensor> arrays = {
      {"x", Tensor::Of<float>(Shape{2, 3, 1, 2}, std::vector<float>(12))}};
  const auto fit = [&](const Shape& shape) {
    return FitDataset(arrays, {Feed("x", DType::kFloat32, shape)});
  };
  const auto dataset = fit({-1, 3, -1, -1});
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ(dataset->arrays[0].second.shape, (Shape{2, 3, 1, 2}));
  EXPECT_THAT(fit({-1, 2, -1, -1}), FailsWith(absl::StatusCode::kInvalidArgument, "[-1,2,-1,-1]"));
}

TEST(FitDataset, SaysWhatDoesNotFit) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const std::vector<NamedTensor> arrays = {
      {"x", Tensor::Of<float>(Shape{2, 3}, {1, 2, 3, 4, 5, 6.5})},
      {"y", Tensor::Of<int64_t>(Shape{3}, {1, 2, 300})},
      {"below", Tensor::Of<float>(Shape{1}, {-5})},
      {"none", Tensor::Of<int64_t>(Shape{0, 3}, {})}};
  const auto fit = [&](const std::vector<FeedSpec>& feeds) { return FitDataset(arrays, feeds); };
  EXPECT_THAT(fit({Feed("z", DType::kFloat32, {-1, 3})}),
              FailsWith(absl::StatusCode::kNotFound, "no array for feed 'z' float32[-1,3]"));
  EXPECT_THAT(fit({Feed("x", DType::kFloat32, {-1, 4})}),
              FailsWith(invalid, "array 'x': has samples of 3 elements"));
  EXPECT_THAT(fit({Feed("x", DType::kFloat32, {-1, -1, -1})}),
              FailsWith(invalid, "array 'x': has samples of 3 elements (shape [2,3]), expected"));
  EXPECT_THAT(fit({Feed("x", DType::kFloat32, {-1, -1, -1, 3})}), FailsWith(invalid, "expected"));
  EXPECT_THAT(fit({Feed("x", DType::kInt64, {-1, 3})}),
              FailsWith(invalid, "element 5 is 6.5, which is no int64"));
  EXPECT_THAT(fit({Feed("y", DType::kUInt8, {-1})}), FailsWith(invalid, "element 2 is 300"));
  EXPECT_THAT(fit({Feed("below", DType::kUInt8, {-1})}), FailsWith(invalid, "element 0 is -5"));
  EXPECT_THAT(fit({Feed("x", DType::kFloat32, {-1, 3}), Feed("y", DType::kInt64, {-1})}),
              FailsWith(invalid, "array 'y' has 3 samples, 'x' has 2"));
  EXPECT_THAT(fit({Feed("none", DType::kInt64, {-1, 3})}), FailsWith(invalid, "no samples"));
  EXPECT_THAT(fit({}), FailsWith(invalid, "feeds nothing"));
}

}  // namespace
}  // namespace interp
