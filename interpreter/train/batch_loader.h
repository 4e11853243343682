// BatchLoader: batches of samples, made ahead on a thread of their own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
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
  bool operator==(const DataPosition&) const = default;
};

struct Batch {
  std::vector<Tensor> feeds;  // in the order of the program's feeds
  DataPosition position;      // its own
  DataPosition next;          // of the batch after it
  int64_t num_samples = 0;
};

// Endless: after an epoch the next one begins.
// Thread-safety: Next from one thread at a time.
class BatchLoader {
 public:
  // REQUIRES: batch_size > 0 and an epoch has a batch.
  BatchLoader(std::shared_ptr<SampleSource> source, const BatchOptions& options,
              DataPosition start = {});
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // Waits for the next batch. An error, of memory, the thread or the source, stays the answer.
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
  // Of the thread.
  DataPosition at_;
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
