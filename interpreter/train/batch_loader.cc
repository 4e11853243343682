#include "interpreter/train/batch_loader.h"

#include <chrono>
#include <utility>

#include "core/base/catching.h"

namespace interp {
namespace {

int64_t CountSamples(const std::vector<Tensor>& feeds) {
  if (feeds.empty()) return 0;
  return feeds[0].lod.empty() ? feeds[0].shape[0] : std::ssize(feeds[0].lod[0]) - 1;
}

}  // namespace

BatchLoader::BatchLoader(std::shared_ptr<SampleSource> source, const BatchOptions& options,
                         DataPosition start, LoaderEnd end)
    : source_(std::move(source)),
      options_(options),
      batches_(BatchesPerEpoch(source_->num_samples(), options)),
      limit_(end),
      at_(start) {
  const absl::Status started = Catching([this] {
    thread_ = std::thread([this] { Work(); });
    return absl::OkStatus();
  });
  if (!started.ok()) end_ = started;  // else it is the thread's
}

BatchLoader::~BatchLoader() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
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

// Until the loader goes, its end, or an error.
absl::Status BatchLoader::MakeBatches() {
  while (at_ < limit_.position && num_made_ < limit_.batches) {
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
  return absl::OutOfRangeError("there are no more batches");
}

absl::StatusOr<Batch> BatchLoader::Make(DataPosition at) {
  if (ordered_epoch_ != at.epoch) {
    order_ = SampleOrder(source_->num_samples(), options_, at.epoch);
    ordered_epoch_ = at.epoch;
  }
  Batch batch;
  batch.position = at;
  const bool last = at.batch + 1 >= batches_;
  batch.next = last ? DataPosition{.epoch = at.epoch + 1, .batch = 0}
                    : DataPosition{.epoch = at.epoch, .batch = at.batch + 1};
  const absl::Span<const int64_t> samples =
      absl::MakeConstSpan(order_).subspan(at.batch * options_.batch_size, options_.batch_size);
  INTERP_ASSIGN_OR_RETURN(Gathered gathered, source_->Gather(samples, at.epoch));
  batch.feeds = std::move(gathered.feeds);
  batch.num_samples = CountSamples(batch.feeds);
  batch.num_skipped = gathered.num_skipped;
  if (batch.num_samples > 0) {
    ++num_made_;
    num_empty_ = 0;
  } else if (++num_empty_ >= batches_) {
    return Annotate(gathered.problem, "no sample of an epoch is whole; the last batch");
  }
  return batch;
}

}  // namespace interp
