// BatchLoader: batches of samples, made ahead on a thread of their own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/status.h"
#include "interpreter/train/sample_order.h"
#include "interpreter/train/sample_source.h"

namespace interp {

// Where training stands in its data: the next batch.
struct DataPosition {
  int64_t epoch = 0;
  int64_t batch = 0;  // within the epoch
  auto operator<=>(const DataPosition&) const = default;
};

struct Batch {
  std::vector<Tensor> feeds;  // in the order of the program's feeds
  DataPosition position;      // its own
  DataPosition next;          // of the batch after it
  int64_t num_samples = 0;    // 0: all are damaged, and there are no feeds
  int64_t num_skipped = 0;    // damaged ones that were left out
};

// Behind what nothing is made ahead.
struct LoaderEnd {
  DataPosition position = {.epoch = std::numeric_limits<int64_t>::max()};  // of no batch any more
  int64_t batches = std::numeric_limits<int64_t>::max();                   // that have samples
};

// After an epoch the next one begins, up to the end.
// Thread-safety: Next from one thread at a time.
class BatchLoader {
 public:
  // REQUIRES: batch_size > 0 and an epoch has a batch.
  BatchLoader(std::shared_ptr<SampleSource> source, const BatchOptions& options,
              DataPosition start = {}, LoaderEnd end = {});
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // Waits for the next batch. An error, of memory, the thread or the source, stays the answer; also
  // where all samples of as many batches as an epoch has are damaged. OutOfRange behind the end.
  absl::StatusOr<Batch> Next();
  // How long Next has waited, in all.
  double waited_ms() const { return waited_ms_; }

 private:
  void Work();
  absl::Status MakeBatches();
  absl::StatusOr<Batch> Make(DataPosition at);

  const std::shared_ptr<SampleSource> source_;
  const BatchOptions options_;
  const int64_t batches_;  // per epoch
  const LoaderEnd limit_;
  // Of the thread.
  DataPosition at_;
  int64_t num_made_ = 0;   // batches with samples
  int64_t num_empty_ = 0;  // the others since the last one of these
  int64_t ordered_epoch_ = -1;
  std::vector<int64_t> order_;
  double waited_ms_ = 0;  // of the caller

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<Batch> ready_;
  absl::Status end_;  // why the thread makes no more
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace interp
