#include "core/device/sim_stream.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "core/device/sim_launch.h"

namespace interp {

bool SimEvent::SynchronizeUntil(std::chrono::steady_clock::time_point deadline) {
  const std::shared_ptr<SimPoint> point = latest();
  return point == nullptr || device_.HostWait(*point, deadline);
}

bool SimEvent::Passed() {
  const std::shared_ptr<SimPoint> point = latest();
  return point == nullptr || point->time_ns() <= device_.NowNs();
}

void SimEvent::Set(std::shared_ptr<SimPoint> point) {
  std::lock_guard<std::mutex> guard(mutex_);
  latest_.swap(point);
}

std::shared_ptr<SimPoint> SimEvent::latest() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return latest_;
}

char* SimStream::Bytes(const void* device, size_t bytes, const Work& work) const {
  char* const at = device_.memory_->Bytes(device, bytes);
  if (at == nullptr && work.errors != nullptr) {
    work.errors->Report(work.tag, absl::InternalError(absl::StrCat(
                                      "a copy of ", bytes, " bytes on stream '", name_,
                                      "' leaves the memory of ", Name(device_.place()))));
  }
  return at;
}

void SimStream::CopyToDevice(void* device, const void* host, BufferRef host_buffer, size_t bytes,
                             const Work& work) {
  char* const to = Bytes(device, bytes, work);
  if (to == nullptr) return;
  Copy(WorkKind::kHostToDevice, to, host, std::move(host_buffer), bytes, work);
}

void SimStream::CopyToHost(void* host, BufferRef host_buffer, const void* device, size_t bytes,
                           const Work& work) {
  const char* const from = Bytes(device, bytes, work);
  if (from == nullptr) return;
  Copy(WorkKind::kDeviceToHost, host, from, std::move(host_buffer), bytes, work);
}

void SimStream::CopyOnDevice(void* to, const void* from, size_t bytes, const Work& work) {
  char* const to_bytes = Bytes(to, bytes, work);
  const char* const from_bytes = Bytes(from, bytes, work);
  if (to_bytes == nullptr || from_bytes == nullptr) return;
  Copy(WorkKind::kDeviceToDevice, to_bytes, from_bytes, BufferRef(), bytes, work);
}

void SimStream::Copy(WorkKind kind, void* to, const void* from, BufferRef host_buffer, size_t bytes,
                     const Work& work) {
  Work copy = work;
  copy.bytes = static_cast<int64_t>(bytes);
  copy.flops = 0;
  Launch(kind, copy, [to, from, bytes, host_buffer = std::move(host_buffer)] {
    if (bytes > 0) std::memmove(to, from, bytes);
    return absl::OkStatus();
  });
}

void SimStream::Fill(void* device, uint8_t value, size_t bytes) {
  char* const at = device_.memory_->Bytes(device, bytes);
  assert(at != nullptr && "filled memory is not of this device");
  SimTask task{.kind = WorkKind::kFill, .work = [at, value, bytes] {
                 std::memset(at, value, bytes);
                 return absl::OkStatus();
               }};
  std::lock_guard<std::mutex> guard(device_.mutex_);
  device_.executor_->Push(index_, std::move(task));
}

absl::Status SimStream::LaunchHostKernel(KernelFn kernel, const BoundArgs& args, const void* attrs,
                                         const KernelContext::Services& services,
                                         const Work& work) {
  INTERP_ASSIGN_OR_RETURN(
      std::shared_ptr<SimLaunch> launch,
      SimLaunch::Capture(kernel, args, attrs, services, device_.place(), *device_.memory_));
  Launch(WorkKind::kKernel, work, [launch = std::move(launch)] { return launch->Run(); });
  return absl::OkStatus();
}

void SimStream::Launch(WorkKind kind, const Work& work, std::function<absl::Status()> run) {
  device_.executor_->Admit(index_);
  SimTask task{.kind = kind, .tag = work.tag, .errors = work.errors, .work = std::move(run)};
  std::lock_guard<std::mutex> guard(device_.mutex_);
  device_.clock_.Launch(index_, kind, work);
  device_.executor_->Push(index_, std::move(task));
}

void SimStream::Record(DeviceEvent& event) {
  std::lock_guard<std::mutex> guard(device_.mutex_);
  static_cast<SimEvent&>(event).Set(device_.PushRecord(index_));
}

void SimStream::Wait(const DeviceEvent& event) {
  std::lock_guard<std::mutex> guard(device_.mutex_);
  std::shared_ptr<SimPoint> point = static_cast<const SimEvent&>(event).latest();
  if (point == nullptr) return;
  device_.clock_.Wait(index_, point->time_ns());
  if (point->done()) return;
  device_.executor_->Push(index_, {.type = SimTask::Type::kWait, .point = std::move(point)});
}

void SimStream::Synchronize() {
  std::shared_ptr<SimPoint> point;
  {
    std::lock_guard<std::mutex> guard(device_.mutex_);
    point = device_.PushRecord(index_);
  }
  device_.HostWait(*point);
}

}  // namespace interp
