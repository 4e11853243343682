#include "interpreter/run/buffer_collector.h"

#include <utility>

namespace interp {

std::unique_ptr<BufferCollector> BufferCollector::Create(const std::vector<PlanStream>& streams,
                                                         DeviceSet* devices,
                                                         const GcOptions& options) {
  const bool waits = options.policy == GcPolicy::kEvent && devices != nullptr;
  if (!waits && options.threshold_bytes <= 1) return nullptr;
  return std::unique_ptr<BufferCollector>(new BufferCollector(streams, devices, options));
}

BufferCollector::BufferCollector(const std::vector<PlanStream>& streams, DeviceSet* devices,
                                 const GcOptions& options)
    : devices_(devices), threshold_bytes_(options.threshold_bytes) {
  if (options.policy != GcPolicy::kEvent || devices == nullptr) return;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (!streams[i].place.on_host()) streams_.push_back(static_cast<int32_t>(i));
    places_.push_back(streams[i].place);
  }
  thread_ = std::thread([this] { Work(); });
}

BufferCollector::~BufferCollector() {
  Flush();
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void BufferCollector::Add(BufferRef buffer) {
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

void BufferCollector::Flush() {
  std::vector<BufferRef> rest;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    rest = TakeCollected();
  }
  if (!rest.empty()) GiveBack(std::move(rest));
}

std::vector<BufferRef> BufferCollector::TakeCollected() {
  collected_bytes_ = 0;
  return std::exchange(collected_, {});
}

void BufferCollector::GiveBack(std::vector<BufferRef> buffers) {
  if (!thread_.joinable()) return;  // dropped here, in stream order where on a device
  Batch batch{.buffers = std::move(buffers)};
  for (const int32_t stream : streams_) {
    if (std::unique_ptr<DeviceEvent> event = EventAfter(stream)) {
      batch.events.push_back(std::move(event));
    }
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    batches_.push_back(std::move(batch));
  }
  wake_.notify_one();
}

std::unique_ptr<DeviceEvent> BufferCollector::EventAfter(int32_t stream) {
  absl::StatusOr<std::unique_ptr<DeviceEvent>> event =
      devices_->device(places_[stream]).CreateEvent();
  if (event.ok() && devices_->stream(stream).Record(**event).ok()) return *std::move(event);
  devices_->stream(stream).Synchronize().IgnoreError();
  return nullptr;
}

void BufferCollector::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || !batches_.empty(); });
    if (batches_.empty()) return;
    std::vector<Batch> batches = std::exchange(batches_, {});
    lock.unlock();
    for (Batch& batch : batches) {
      for (const std::unique_ptr<DeviceEvent>& event : batch.events) {
        event->Synchronize().IgnoreError();  // nothing uses the memory of a lost device
      }
      batch.buffers.clear();
    }
    lock.lock();
  }
}

}  // namespace interp
