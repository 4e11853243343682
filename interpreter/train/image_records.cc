#include "interpreter/train/image_records.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/catching.h"

namespace interp {
namespace {

// Tells its random numbers from those of ops and of the order of samples.
constexpr uint64_t kPreparationStream = 0x696D616765;

template <typename T>
bool Holds(float value) {
  if constexpr (std::is_floating_point_v<T>) {
    return true;
  } else {
    const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return value >= -limit && value < limit && value == std::trunc(value);
  }
}

template <typename T>
absl::Status WriteLabels(const std::vector<float>& labels, int64_t index, Tensor& tensor) {
  T* const to = tensor.mutable_data<T>() + index * std::ssize(labels);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (!Holds<T>(labels[i])) {
      return InvalidArgument("label ", labels[i], " is no ", Name(tensor.dtype));
    }
    to[i] = static_cast<T>(labels[i]);
  }
  return absl::OkStatus();
}

bool HoldsLabels(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 ||
         dtype == DType::kInt64;
}

// What is wrong with the sample alone: memory that is not there, or not allowed, ends the run.
bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsInvalidArgument(status) ||
         absl::IsUnimplemented(status);
}

std::string FeedText(const FeedSpec& feed) {
  return absl::StrCat("feed '", feed.name, "' ", Name(feed.dtype), ToString(feed.shape));
}

// A sample's dims behind the batch, as declared; the unknown one follows from the number of
// elements.
absl::StatusOr<Shape> SampleShape(const FeedSpec& feed, int64_t elements) {
  std::vector<int64_t> dims;
  int64_t known = 1;
  int64_t unknown = -1;
  for (int d = 1; d < feed.shape.rank(); ++d) {
    if (feed.shape[d] < 0 && unknown < 0) {
      unknown = std::ssize(dims);
      dims.push_back(-1);
      continue;
    }
    dims.push_back(std::max<int64_t>(feed.shape[d], 1));
    known *= dims.back();
  }
  const bool fits = unknown < 0 ? known == elements : elements % known == 0;
  if (!fits) return InvalidArgument(FeedText(feed), ": a record has ", elements, " labels");
  if (unknown >= 0) dims[unknown] = elements / known;
  return Shape(dims);
}

Shape BatchOf(const Shape& sample, int64_t num_samples) {
  Shape shape = {num_samples};
  for (const int64_t dim : sample) shape.push_back(dim);
  return shape;
}

void AppendPath(std::string* text, const RecordFile& file) { absl::StrAppend(text, file.path()); }

// The rows that `kept` names move to the front, in their order.
void Compact(const std::vector<int64_t>& kept, Tensor& feed) {
  const size_t row_bytes = feed.size_bytes() / static_cast<size_t>(feed.shape[0]);
  char* const rows = static_cast<char*>(feed.mutable_raw_data());
  for (size_t i = 0; i < kept.size(); ++i) {
    std::memmove(rows + i * row_bytes, rows + kept[i] * row_bytes, row_bytes);
  }
  feed.shape[0] = std::ssize(kept);
}

}  // namespace

absl::StatusOr<std::shared_ptr<ImageRecords>> ImageRecords::Create(
    std::vector<RecordFile> files, std::vector<FeedSpec> feeds, const ImageRecordOptions& options) {
  std::shared_ptr<ImageRecords> records(
      new ImageRecords(std::move(files), std::move(feeds), options));
  if (records->places_.empty()) {
    return InvalidArgument(absl::StrJoin(records->files_, ", ", AppendPath),
                           ": there are no records");
  }
  INTERP_RETURN_IF_ERROR(records->CheckFeeds());
  INTERP_ASSIGN_OR_RETURN(records->team_, ThreadTeam::Create(options.threads));
  return records;
}

ImageRecords::ImageRecords(std::vector<RecordFile> files, std::vector<FeedSpec> feeds,
                           const ImageRecordOptions& options)
    : files_(std::move(files)),
      feeds_(std::move(feeds)),
      options_(options),
      joined_(options.threads) {
  for (size_t file = 0; file < files_.size(); ++file) {
    for (size_t record = 0; record < files_[file].places().size(); ++record) {
      places_.push_back(
          {.file = static_cast<uint32_t>(file), .record = static_cast<uint32_t>(record)});
    }
  }
}

absl::Status ImageRecords::CheckFeeds() {
  for (size_t i = 0; i < feeds_.size(); ++i) {
    if (i == options_.image_feed || static_cast<int64_t>(i) == options_.label_feed) continue;
    return InvalidArgument(FeedText(feeds_[i]),
                           ": records give a picture and labels, no third feed");
  }
  const FeedSpec& image = feeds_[options_.image_feed];
  if (!HoldsPixels(image.dtype)) {
    return InvalidArgument(FeedText(image), ": no picture can be fed as ", Name(image.dtype));
  }
  if (options_.preparation.width == 0) {
    return InvalidArgument(FeedText(image), " does not say how large pictures are; give a size");
  }
  const Shape sample =
      ShapeOf(options_.preparation.width, options_.preparation.height, options_.preparation.pixels);
  const Shape batch = BatchOf(sample, 1);
  for (int d = 1; d < batch.rank(); ++d) {
    const bool same_rank = image.shape.rank() == batch.rank();
    if (same_rank && (image.shape[d] < 0 || image.shape[d] == batch[d])) continue;
    return InvalidArgument(FeedText(image), " takes no pictures of ", ToString(sample));
  }
  if (options_.label_feed < 0) return absl::OkStatus();
  const FeedSpec& label = feeds_[options_.label_feed];
  if (!HoldsLabels(label.dtype)) {
    return InvalidArgument(FeedText(label),
                           ": expected labels of float32, float64, int32 or int64");
  }
  return FindLabelShape(label);
}

// The first record that is whole tells.
absl::Status ImageRecords::FindLabelShape(const FeedSpec& label) {
  const auto shape_of = [&](const Place& place) -> absl::StatusOr<Shape> {
    INTERP_ASSIGN_OR_RETURN(const Record record, files_[place.file].Read(place.record, joined_[0]));
    const absl::StatusOr<ImageRecord> parsed = ParseImageRecord(record.payload);
    if (!parsed.ok()) return Annotate(parsed.status(), Describe(place));
    absl::StatusOr<Shape> shape = SampleShape(label, std::ssize(parsed->labels));
    if (!shape.ok()) return Annotate(shape.status(), Describe(place));
    return shape;
  };
  absl::Status first;
  for (const Place& place : places_) {
    const absl::StatusOr<Shape> shape = shape_of(place);
    if (shape.ok()) {
      label_shape_ = *shape;
      return absl::OkStatus();
    }
    first.Update(shape.status());
    if (!options_.skip_damaged) break;
  }
  return first;
}

absl::StatusOr<std::vector<Tensor>> ImageRecords::MakeFeeds(int64_t num_samples) const {
  std::vector<Tensor> feeds(feeds_.size());
  for (size_t i = 0; i < feeds.size(); ++i) {
    const ImagePreparation& preparation = options_.preparation;
    feeds[i].dtype = feeds_[i].dtype;
    feeds[i].shape =
        BatchOf(i == options_.image_feed
                    ? ShapeOf(preparation.width, preparation.height, preparation.pixels)
                    : label_shape_,
                num_samples);
    INTERP_RETURN_IF_ERROR(feeds[i].Allocate(SystemAllocator()));
  }
  return feeds;
}

absl::StatusOr<Gathered> ImageRecords::Gather(absl::Span<const int64_t> samples, int64_t epoch) {
  Gathered batch;
  INTERP_ASSIGN_OR_RETURN(batch.feeds, MakeFeeds(std::ssize(samples)));
  // Threads take one sample after another; where it lies in the batch does not depend on them.
  std::vector<absl::Status> filled(samples.size());
  const auto ends_run = [this](const absl::Status& status) {
    return !status.ok() && !(options_.skip_damaged && IsDamage(status));
  };
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  team_->Run([&](int thread) {
    while (!stop) {
      const size_t i = next++;
      if (i >= samples.size()) break;
      filled[i] = Catching([&] {
        return Fill(samples[i], epoch, static_cast<int64_t>(i), batch.feeds, joined_[thread]);
      });
      if (ends_run(filled[i])) stop = true;
    }
  });
  const auto end = std::ranges::find_if(filled, ends_run);
  if (end != filled.end()) return *end;
  std::vector<int64_t> kept;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (filled[i].ok()) kept.push_back(static_cast<int64_t>(i));
  }
  if (kept.size() == samples.size()) return batch;
  batch.problem = *std::ranges::find_if_not(filled, &absl::Status::ok);
  batch.num_skipped = std::ssize(samples) - std::ssize(kept);
  if (kept.empty()) batch.feeds.clear();
  for (Tensor& feed : batch.feeds) Compact(kept, feed);
  return batch;
}

absl::Status ImageRecords::Fill(int64_t sample, int64_t epoch, int64_t index,
                                std::vector<Tensor>& feeds, std::string& joined) const {
  const Place& place = places_[sample];
  INTERP_ASSIGN_OR_RETURN(const Record record, files_[place.file].Read(place.record, joined));
  absl::StatusOr<ImageRecord> parsed = ParseImageRecord(record.payload);
  if (!parsed.ok()) return Annotate(parsed.status(), Describe(place));
  std::optional<RandomStream> random;
  if (options_.random) {
    random = RandomStream({.seed = options_.seed, .step = static_cast<uint64_t>(epoch)},
                          kPreparationStream)
                 .Split(static_cast<uint64_t>(sample));
  }
  absl::Status status =
      PrepareSample(parsed->picture, options_.preparation, options_.max_picture_bytes, random,
                    index, feeds[options_.image_feed]);
  if (status.ok() && options_.label_feed >= 0) {
    status = FillLabels(*parsed, index, feeds[options_.label_feed]);
  }
  return Annotate(status, Describe(place));
}

absl::Status ImageRecords::FillLabels(const ImageRecord& record, int64_t index,
                                      Tensor& labels) const {
  if (std::ssize(record.labels) != label_shape_.numel()) {
    return InvalidArgument("has ", record.labels.size(), " labels, expected ",
                           label_shape_.numel());
  }
  switch (labels.dtype) {
    case DType::kFloat32:
      return WriteLabels<float>(record.labels, index, labels);
    case DType::kFloat64:
      return WriteLabels<double>(record.labels, index, labels);
    case DType::kInt32:
      return WriteLabels<int32_t>(record.labels, index, labels);
    default:
      return WriteLabels<int64_t>(record.labels, index, labels);
  }
}

std::string ImageRecords::Describe(const Place& place) const {
  const RecordPlace& record = files_[place.file].places()[place.record];
  return absl::StrCat(files_[place.file].path(), ": record ", record.key, " at byte ",
                      record.offset);
}

}  // namespace interp
