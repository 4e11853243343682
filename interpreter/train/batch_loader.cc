#include "interpreter/train/batch_loader.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/catching.h"
#include "core/resource/random_stream.h"

namespace interp {

int64_t BatchesPerEpoch(int64_t num_samples, const BatchOptions& options) {
  const int64_t full = num_samples / options.batch_size;
  return options.drop_last || num_samples % options.batch_size == 0 ? full : full + 1;
}

std::vector<int64_t> SampleOrder(int64_t num_samples, const BatchOptions& options, int64_t epoch) {
  std::vector<int64_t> order(num_samples);
  std::iota(order.begin(), order.end(), 0);
  if (!options.shuffle) return order;
  const RandomStream random({.seed = options.seed, .step = static_cast<uint64_t>(epoch)}, 0);
  for (int64_t i = num_samples - 1; i > 0; --i) {
    const PhiloxBlock bits = random.Block(static_cast<uint64_t>(i));
    const uint64_t wide = (static_cast<uint64_t>(bits[1]) << 32) | bits[0];
    std::swap(order[i], order[static_cast<int64_t>(wide % static_cast<uint64_t>(i + 1))]);
  }
  return order;
}

BatchLoader::BatchLoader(std::shared_ptr<const Dataset> dataset, const BatchOptions& options,
                         DataPosition start)
    : dataset_(std::move(dataset)),
      options_(options),
      batches_(BatchesPerEpoch(dataset_->num_samples, options)),
      at_(start) {
  thread_ = std::thread([this] { Work(); });
}

BatchLoader::~BatchLoader() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

absl::StatusOr<Batch> BatchLoader::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (ready_.empty()) {
    const auto start = std::chrono::steady_clock::now();
    wake_.wait(lock, [this] { return !ready_.empty() || !end_.ok(); });
    waited_ms_ +=
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  if (ready_.empty()) return end_;
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  wake_.notify_all();
  return batch;
}

void BatchLoader::Work() {
  absl::Status end = Catching([this] { return MakeBatches(); });
  {
    std::lock_guard<std::mutex> lock(mutex_);
    end_ = std::move(end);
  }
  wake_.notify_all();
}

// Until the loader goes, or an error.
absl::Status BatchLoader::MakeBatches() {
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock,
                 [this] { return stop_ || static_cast<int>(ready_.size()) < options_.ahead; });
      if (stop_) return absl::OkStatus();
    }
    INTERP_ASSIGN_OR_RETURN(Batch batch, Make(at_));
    at_ = batch.next;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ready_.push_back(std::move(batch));
    }
    wake_.notify_all();
  }
}

absl::StatusOr<Batch> BatchLoader::Make(DataPosition at) {
  if (ordered_epoch_ != at.epoch) {
    order_ = SampleOrder(dataset_->num_samples, options_, at.epoch);
    ordered_epoch_ = at.epoch;
  }
  Batch batch;
  batch.position = at;
  const bool last = at.batch + 1 >= batches_;
  batch.next = last ? DataPosition{.epoch = at.epoch + 1, .batch = 0}
                    : DataPosition{.epoch = at.epoch, .batch = at.batch + 1};
  const int64_t begin = at.batch * options_.batch_size;
  batch.num_samples = std::min(options_.batch_size, dataset_->num_samples - begin);
  for (const auto& [name, array] : dataset_->arrays) {
    Tensor& feed = batch.feeds.emplace_back();
    feed.shape = array.shape;
    feed.shape[0] = batch.num_samples;
    feed.dtype = array.dtype;
    INTERP_RETURN_IF_ERROR(feed.Allocate(SystemAllocator()));
    const size_t sample_bytes = array.size_bytes() / static_cast<size_t>(dataset_->num_samples);
    const char* from = static_cast<const char*>(array.raw_data());
    char* to = static_cast<char*>(feed.mutable_raw_data());
    for (int64_t i = 0; i < batch.num_samples; ++i) {
      std::memcpy(to + i * sample_bytes, from + order_[begin + i] * sample_bytes, sample_bytes);
    }
  }
  return batch;
}

}  // namespace interp
