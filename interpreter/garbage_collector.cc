#include "interpreter/garbage_collector.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace interp {

// Collects buffers up to the threshold and, with kEvent, lets a thread wait for the devices before
// it drops them.
class GarbageCollector::Collector {
 public:
  Collector(const Plan& plan, DeviceSet* devices, const GcOptions& options)
      : devices_(devices), threshold_bytes_(options.threshold_bytes) {
    if (options.policy != GcPolicy::kEvent || devices == nullptr) return;
    for (size_t i = 0; i < plan.streams.size(); ++i) {
      if (!plan.streams[i].place.on_host()) streams_.push_back(static_cast<int32_t>(i));
    }
    for (const PlanStream& stream : plan.streams) places_.push_back(stream.place);
    thread_ = std::thread([this] { Work(); });
  }

  ~Collector() {
    Flush();
    if (!thread_.joinable()) return;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void Add(BufferRef buffer) {
    std::vector<BufferRef> full;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      collected_bytes_ += buffer->size_bytes;
      collected_.push_back(std::move(buffer));
      if (collected_bytes_ < threshold_bytes_) return;
      full = TakeCollected();
    }
    GiveBack(std::move(full));
  }

  void Flush() {
    std::vector<BufferRef> rest;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      rest = TakeCollected();
    }
    if (!rest.empty()) GiveBack(std::move(rest));
  }

 private:
  // Buffers, and what must have happened on the devices before they are idle.
  struct Batch {
    std::vector<BufferRef> buffers;
    std::vector<std::unique_ptr<DeviceEvent>> events = {};
  };

  std::vector<BufferRef> TakeCollected() {
    collected_bytes_ = 0;
    return std::exchange(collected_, {});
  }

  void GiveBack(std::vector<BufferRef> buffers) {
    if (!thread_.joinable()) return;  // dropped here, in stream order where on a device
    Batch batch{.buffers = std::move(buffers)};
    for (const int32_t stream : streams_) {
      batch.events.push_back(devices_->device(places_[stream]).CreateEvent());
      devices_->stream(stream).Record(*batch.events.back());
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      batches_.push_back(std::move(batch));
    }
    wake_.notify_one();
  }

  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stop_ || !batches_.empty(); });
      if (batches_.empty()) return;
      std::vector<Batch> batches = std::exchange(batches_, {});
      lock.unlock();
      for (Batch& batch : batches) {
        for (const std::unique_ptr<DeviceEvent>& event : batch.events) event->Synchronize();
        batch.buffers.clear();
      }
      lock.lock();
    }
  }

  DeviceSet* const devices_;
  const size_t threshold_bytes_;
  std::vector<int32_t> streams_;  // of devices, by index into Plan::streams
  std::vector<Place> places_;     // by index into Plan::streams
  std::mutex mutex_;              // guards the members below
  std::condition_variable wake_;
  std::vector<BufferRef> collected_;
  size_t collected_bytes_ = 0;
  std::vector<Batch> batches_;
  bool stop_ = false;
  std::thread thread_;
};

GarbageCollector::GarbageCollector(const Plan& plan, const std::vector<Variable*>& variables,
                                   DeviceSet* devices, const GcOptions& options)
    : plan_(plan),
      use_begins_(1, 0),
      free_begins_(1, 0),
      counts_(std::make_unique<std::atomic<int32_t>[]>(plan.vars.size())) {
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    for (const VarId var : plan.gc_check[i]) {
      uses_.push_back({&variables[var]->tensor, var, plan.ref_counts[var]});
    }
    use_begins_.push_back(static_cast<int32_t>(uses_.size()));
    for (const VarId var : plan.frees_in_order[i]) frees_.push_back(&variables[var]->tensor);
    free_begins_.push_back(static_cast<int32_t>(frees_.size()));
  }
  for (size_t var = 0; var < plan.ref_counts.size(); ++var) {
    counts_[var].store(plan.ref_counts[var], std::memory_order_relaxed);
  }
  const bool waits = options.policy == GcPolicy::kEvent && devices != nullptr;
  if (waits || options.threshold_bytes > 1) {
    collector_ = std::make_unique<Collector>(plan, devices, options);
  }
}

GarbageCollector::~GarbageCollector() = default;

inline void GarbageCollector::Free(Tensor& tensor) {
  if (collector_ != nullptr && tensor.has_memory()) collector_->Add(tensor.buffer());
  tensor.DropMemory();
}

void GarbageCollector::After(InstrId id, RunObserver* observer, int worker) {
  for (int32_t i = use_begins_[id]; i < use_begins_[id + 1]; ++i) {
    const Use& use = uses_[i];
    // A count of one from the start has nobody to race with.
    if (use.ref_count > 1) {
      if (counts_[use.var].fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
      counts_[use.var].store(use.ref_count, std::memory_order_relaxed);
    }
    Free(*use.tensor);
    if (observer != nullptr) [[unlikely]]
      observer->OnFree(use.var, id, worker);
  }
}

void GarbageCollector::AfterInOrder(InstrId id, RunObserver* observer) {
  for (int32_t i = free_begins_[id]; i < free_begins_[id + 1]; ++i) Free(*frees_[i]);
  if (observer != nullptr) [[unlikely]] {
    for (const VarId var : plan_.frees_in_order[id]) observer->OnFree(var, id, /*worker=*/0);
  }
}

void GarbageCollector::DropAll() {
  for (const Use& use : uses_) use.tensor->DropMemory();
  Flush();
}

void GarbageCollector::Flush() {
  if (collector_ != nullptr) collector_->Flush();
}

}  // namespace interp
