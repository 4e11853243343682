#include "core/device/cuda/cuda_trace.h"

#include <algorithm>
#include <utility>

#include "core/device/cuda/cuda_error.h"

namespace interp::cuda {
namespace {

// Nanoseconds from one event to another; events tell floats of milliseconds.
int64_t NsBetween(cudaEvent_t from, cudaEvent_t to) {
  float ms = 0;
  if (!ToStatus(cudaEventElapsedTime(&ms, from, to), "cannot read a time").ok()) return 0;
  return static_cast<int64_t>(static_cast<double>(ms) * 1e6);
}

}  // namespace

void CudaTrace::Clear() {
  for (const Entry& entry : entries_) {
    events_.Give(entry.start);
    events_.Give(entry.end);
  }
  entries_.clear();
  if (zero_ != nullptr) events_.Give(std::exchange(zero_, nullptr));
}

absl::Status CudaTrace::Start(cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  Clear();
  INTERP_ASSIGN_OR_RETURN(zero_, events_.Take());
  INTERP_RETURN_IF_ERROR(ToStatus(cudaEventRecord(zero_, stream), "cannot record an event"));
  on_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

std::vector<DeviceSpan> CudaTrace::Stop() {
  std::lock_guard<std::mutex> lock(mutex_);
  on_.store(false, std::memory_order_release);
  std::vector<DeviceSpan> spans;
  for (Entry& entry : entries_) {
    entry.span.start_ns = NsBetween(zero_, entry.start);
    entry.span.end_ns = entry.span.start_ns + NsBetween(entry.start, entry.end);
    spans.push_back(entry.span);
  }
  Clear();
  std::stable_sort(spans.begin(), spans.end(), [](const DeviceSpan& a, const DeviceSpan& b) {
    return a.start_ns < b.start_ns;
  });
  return spans;
}

std::optional<cudaEvent_t> CudaTrace::Begin(cudaStream_t stream) {
  if (!on_.load(std::memory_order_acquire)) return std::nullopt;
  const absl::StatusOr<cudaEvent_t> start = events_.Take();
  if (!start.ok()) return std::nullopt;
  if (ToStatus(cudaEventRecord(*start, stream), "cannot record an event").ok()) return *start;
  events_.Give(*start);
  return std::nullopt;
}

void CudaTrace::End(cudaEvent_t start, cudaStream_t stream, const DeviceSpan& span) {
  absl::StatusOr<cudaEvent_t> end = events_.Take();
  const bool recorded =
      end.ok() && ToStatus(cudaEventRecord(*end, stream), "cannot record an event").ok();
  std::lock_guard<std::mutex> lock(mutex_);
  if (recorded && zero_ != nullptr) {
    entries_.push_back({.start = start, .end = *end, .span = span});
    return;
  }
  events_.Give(start);
  if (end.ok()) events_.Give(*end);
}

}  // namespace interp::cuda
