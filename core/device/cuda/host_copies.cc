#include "core/device/cuda/host_copies.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/device/cuda/cuda_error.h"
#include "core/device/cuda/host_writes.h"

namespace interp::cuda {
namespace {

struct CopyInFlight {
  HostCopies* of = nullptr;
  HostCopy copy;
  bool runs = false;
};

// All of the process, by numbers that are not used again.
struct CopiesInFlight {
  std::mutex mutex;  // guards what follows
  std::condition_variable ended;
  uintptr_t last_number = 0;
  std::map<uintptr_t, CopyInFlight> copies;
};

CopiesInFlight& InFlight() {
  static auto& all = *new CopiesInFlight;
  return all;
}

}  // namespace

absl::Status HostCopies::Enqueue(HostCopy copy, cudaStream_t stream) {
  if (copy.staging.has_value()) HostWrites::All().Begin(copy.buffer.get());
  CopiesInFlight& all = InFlight();
  uintptr_t number = 0;
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    number = ++all.last_number;
    all.copies[number] = {.of = this, .copy = std::move(copy)};
  }
  void* const data = reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr)
  absl::Status enqueued =
      ToStatus(cudaLaunchHostFunc(stream, Run, data), "cannot enqueue a call of the host");
  if (enqueued.ok()) return enqueued;
  ToStatus(cudaStreamSynchronize(stream), "cannot wait for a copy").IgnoreError();
  Abandon(number);
  return enqueued;
}

void HostCopies::Run(void* data) {
  CopiesInFlight& all = InFlight();
  const auto number = reinterpret_cast<uintptr_t>(data);
  std::unique_lock<std::mutex> lock(all.mutex);
  const auto found = all.copies.find(number);
  if (found == all.copies.end()) return;
  CopyInFlight& run = found->second;
  run.runs = true;
  lock.unlock();
  std::memcpy(run.copy.to, run.copy.from, run.copy.bytes);
  run.of->Finish(run.copy);
  // Whoever waits may go, and what it owns with it.
  lock.lock();
  all.copies.erase(found);
  all.ended.notify_all();
}

void HostCopies::Abandon(uintptr_t number) {
  CopiesInFlight& all = InFlight();
  std::vector<HostCopy> abandoned;  // finished outside of the lock
  std::unique_lock<std::mutex> lock(all.mutex);
  const auto is_meant = [&](const auto& entry) {
    return entry.second.of == this && (number == 0 || entry.first == number);
  };
  for (auto at = all.copies.begin(); at != all.copies.end();) {
    if (!is_meant(*at) || at->second.runs) {
      ++at;
      continue;
    }
    abandoned.push_back(std::move(at->second.copy));
    at = all.copies.erase(at);
  }
  all.ended.wait(lock,
                 [&] { return std::none_of(all.copies.begin(), all.copies.end(), is_meant); });
  lock.unlock();
  for (HostCopy& copy : abandoned) Finish(copy);
}

void HostCopies::Finish(HostCopy& copy) {
  if (copy.staging.has_value()) {
    HostWrites::All().End(copy.buffer.get());
    staging_.Give(*copy.staging);
  }
  copy.buffer.reset();
}

}  // namespace interp::cuda
