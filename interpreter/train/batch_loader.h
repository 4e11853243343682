// BatchLoader: batches of a dataset, made ahead on a thread of their own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/status.h"
#include "interpreter/train/dataset.h"

namespace interp {

// Where training stands in its data: the next batch.
struct DataPosition {
  int64_t epoch = 0;
  int64_t batch = 0;  // within the epoch
  bool operator==(const DataPosition&) const = default;
};

struct BatchOptions {
  int64_t batch_size = 64;
  // A new order in each epoch, which `seed` and the epoch decide.
  bool shuffle = true;
  uint64_t seed = 0;
  // Leaves out the last batch of an epoch when it is not full.
  bool drop_last = false;
  int ahead = 4;  // batches made before they are wanted
};

struct Batch {
  std::vector<Tensor> feeds;  // in the order of the dataset's arrays
  DataPosition position;      // its own
  DataPosition next;          // of the batch after it
  int64_t num_samples = 0;
};

// How many batches an epoch has.
int64_t BatchesPerEpoch(int64_t num_samples, const BatchOptions& options);

// The order of the samples in an epoch.
std::vector<int64_t> SampleOrder(int64_t num_samples, const BatchOptions& options, int64_t epoch);

// Endless: after an epoch the next one begins.
// Thread-safety: Next from one thread at a time.
class BatchLoader {
 public:
  // REQUIRES: batch_size > 0 and an epoch has a batch.
  BatchLoader(std::shared_ptr<const Dataset> dataset, const BatchOptions& options,
              DataPosition start = {});
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // Waits for the next batch. An error, of memory or of the thread, stays the answer.
  absl::StatusOr<Batch> Next();
  // How long Next has waited, in all.
  double waited_ms() const { return waited_ms_; }

 private:
  void Work();
  absl::Status MakeBatches();
  absl::StatusOr<Batch> Make(DataPosition at);

  const std::shared_ptr<const Dataset> dataset_;
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
