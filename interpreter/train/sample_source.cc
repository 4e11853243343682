#include "interpreter/train/sample_source.h"

#include <cstring>
#include <utility>

namespace interp {
namespace {

class DatasetSource : public SampleSource {
 public:
  explicit DatasetSource(std::shared_ptr<const Dataset> dataset) : dataset_(std::move(dataset)) {}

  int64_t num_samples() const override { return dataset_->num_samples; }

  absl::StatusOr<Gathered> Gather(absl::Span<const int64_t> samples, int64_t /*epoch*/) override {
    Gathered batch;
    for (const auto& [name, array] : dataset_->arrays) {
      Tensor& feed = batch.feeds.emplace_back();
      feed.shape = array.shape;
      feed.shape[0] = std::ssize(samples);
      feed.dtype = array.dtype;
      INTERP_RETURN_IF_ERROR(feed.Allocate(SystemAllocator()));
      const size_t sample_bytes = array.size_bytes() / static_cast<size_t>(dataset_->num_samples);
      const char* from = static_cast<const char*>(array.raw_data());
      char* to = static_cast<char*>(feed.mutable_raw_data());
      for (const int64_t sample : samples) {
        std::memcpy(to, from + sample * sample_bytes, sample_bytes);
        to += sample_bytes;
      }
    }
    return batch;
  }

 private:
  const std::shared_ptr<const Dataset> dataset_;
};

}  // namespace

std::shared_ptr<SampleSource> SourceOf(std::shared_ptr<const Dataset> dataset) {
  return std::make_shared<DatasetSource>(std::move(dataset));
}

}  // namespace interp
