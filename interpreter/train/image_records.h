// ImageRecords: pictures and labels in RecordIO files as samples, decoded when they are wanted.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/image/prepare.h"
#include "core/io/image_record.h"
#include "core/io/record_file.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"
#include "interpreter/train/sample_source.h"
#include "interpreter/train/thread_team.h"

namespace interp {

struct ImageRecordOptions {
  size_t image_feed = 0;    // its position among the feeds
  int64_t label_feed = -1;  // below 0: labels are not fed
  ImagePreparation preparation;
  // Whether what the preparation leaves to chance is random, as `seed`, the epoch and the number of
  // the sample decide it.
  bool random = true;
  uint64_t seed = 0;
  int threads = 1;  // that decode
  // Samples whose picture or labels are damaged are left out and counted.
  bool skip_damaged = false;
  size_t max_picture_bytes = size_t{1} << 30;  // of its pixels
};

class ImageRecords : public SampleSource {
 public:
  // The records of all files, one after another. The image feed's batches have the size that the
  // preparation says, the label feed's the number of labels that it declares, or that of the first
  // record, with skip_damaged of the first one that fits. Errors: InvalidArgument for feeds that no
  // record can give, ResourceExhausted for threads.
  static absl::StatusOr<std::shared_ptr<ImageRecords>> Create(std::vector<RecordFile> files,
                                                              std::vector<FeedSpec> feeds,
                                                              const ImageRecordOptions& options);

  int64_t num_samples() const override { return static_cast<int64_t>(places_.size()); }
  // Errors name the file, the record's key and its offset: those of ReadRecord, ParseImageRecord
  // and PrepareSample; InvalidArgument for labels that do not fit the feed.
  absl::StatusOr<Gathered> Gather(absl::Span<const int64_t> samples, int64_t epoch) override;

 private:
  struct Place {
    uint32_t file = 0;
    uint32_t record = 0;  // in RecordFile::places()
  };

  ImageRecords(std::vector<RecordFile> files, std::vector<FeedSpec> feeds,
               const ImageRecordOptions& options);
  absl::Status CheckFeeds();
  absl::Status FindLabelShape(const FeedSpec& label);
  absl::StatusOr<std::vector<Tensor>> MakeFeeds(int64_t num_samples) const;
  absl::Status Fill(int64_t sample, int64_t epoch, int64_t index, std::vector<Tensor>& feeds,
                    std::string& joined) const;
  absl::Status FillLabels(const ImageRecord& record, int64_t index, Tensor& labels) const;
  std::string Describe(const Place& place) const;

  const std::vector<RecordFile> files_;
  const std::vector<FeedSpec> feeds_;
  const ImageRecordOptions options_;
  std::vector<Place> places_;  // by sample
  Shape label_shape_;          // of one sample
  std::unique_ptr<ThreadTeam> team_;
  std::vector<std::string> joined_;  // by thread
};

}  // namespace interp
