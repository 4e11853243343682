#include "core/device/cuda/staging_buffers.h"

#include <algorithm>
#include <bit>

#include "core/base/check.h"
#include "core/device/cuda/cuda_error.h"

namespace interp::cuda {

StagingBuffers::~StagingBuffers() {
  for (const InFlight& ended : in_flight_) {
    free_[ended.buffer.size_class].push_back(ended.buffer.data);
    events_.Give(ended.end);
  }
  for (const std::vector<void*>& buffers : free_) {
    for (void* const data : buffers) cudaFreeHost(data);
  }
}

bool StagingBuffers::TakeFree(int size_class, StagingBuffer& buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (free_[size_class].empty()) return false;
  buffer = {.data = free_[size_class].back(), .size_class = size_class};
  free_[size_class].pop_back();
  in_use_bytes_ += SizeOf(size_class);
  return true;
}

absl::StatusOr<StagingBuffer> StagingBuffers::Take(size_t bytes, cudaStream_t stream) {
  INTERP_CHECK(bytes <= kMaxBytes);
  const int size_class = std::max<int>(kSmallest, std::bit_width(bytes - (bytes > 0 ? 1 : 0)));
  StagingBuffer buffer;
  if (TakeFree(size_class, buffer)) return buffer;
  Reap();
  if (TakeFree(size_class, buffer)) return buffer;
  if (IsFull(size_class)) {
    INTERP_RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream), "cannot wait for copies"));
    Reap();
    if (TakeFree(size_class, buffer)) return buffer;
  }
  buffer.size_class = size_class;
  INTERP_RETURN_IF_ERROR(
      ToStatus(cudaHostAlloc(&buffer.data, SizeOf(size_class), cudaHostAllocPortable),
               "cannot pin memory of the host"));
  std::lock_guard<std::mutex> lock(mutex_);
  in_use_bytes_ += SizeOf(size_class);
  return buffer;
}

void StagingBuffers::Give(StagingBuffer buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  free_[buffer.size_class].push_back(buffer.data);
  in_use_bytes_ -= SizeOf(buffer.size_class);
}

absl::Status StagingBuffers::GiveAfter(StagingBuffer buffer, cudaStream_t stream) {
  absl::StatusOr<cudaEvent_t> end = events_.Take();
  absl::Status status = end.status();
  if (status.ok()) status = ToStatus(cudaEventRecord(*end, stream), "cannot record an event");
  if (status.ok()) {
    std::lock_guard<std::mutex> lock(mutex_);
    in_flight_.push_back({.buffer = buffer, .end = *end});
    return absl::OkStatus();
  }
  if (end.ok()) events_.Give(*end);
  // Waiting is the other way to know.
  ToStatus(cudaStreamSynchronize(stream), "cannot wait for copies").IgnoreError();
  Give(buffer);
  return status;
}

bool StagingBuffers::IsFull(int size_class) {
  std::lock_guard<std::mutex> lock(mutex_);
  return in_use_bytes_ + SizeOf(size_class) > kMostInUse;
}

void StagingBuffers::Reap() {
  std::vector<InFlight> copies;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    copies.swap(in_flight_);
  }
  // Without the lock, for which callbacks of streams wait. Where the device is lost nothing is in
  // flight either; any other error says nothing of the copy.
  const auto pending = [](const InFlight& copy) {
    const cudaError_t error = QueryEvent(copy.end);
    return error != cudaSuccess && !LosesDevice(error);
  };
  const auto ended = std::stable_partition(copies.begin(), copies.end(), pending);
  for (auto copy = ended; copy != copies.end(); ++copy) {
    Give(copy->buffer);
    events_.Give(copy->end);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  in_flight_.insert(in_flight_.end(), copies.begin(), ended);
}

}  // namespace interp::cuda
