#include "core/device/sim_stream.h"

#include <cstring>
#include <utility>

#include "core/device/sim_launch.h"

namespace interp {

absl::StatusOr<bool> SimEvent::SynchronizeUntil(std::chrono::steady_clock::time_point deadline) {
  const std::shared_ptr<SimPoint> point = latest();
  if (point != nullptr && !device_.HostWait(*point, deadline)) return false;
  INTERP_RETURN_IF_ERROR(device_.status());
  return true;
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

absl::StatusOr<char*> SimStream::Bytes(const void* device, size_t bytes) const {
  char* const at = device_.memory_->Bytes(device, bytes);
  if (at != nullptr) return at;
  return absl::InternalError(absl::StrCat("a copy of ", bytes, " bytes on stream '", name_,
                                          "' leaves the memory of ", Name(device_.place())));
}

absl::Status SimStream::CopyToDevice(void* device, const void* host, BufferRef host_buffer,
                                     size_t bytes, const Work& work) {
  INTERP_ASSIGN_OR_RETURN(char* const to, Bytes(device, bytes));
  return Copy(WorkKind::kHostToDevice, to, host, std::move(host_buffer), bytes, work);
}

absl::Status SimStream::CopyToHost(void* host, BufferRef host_buffer, const void* device,
                                   size_t bytes, const Work& work) {
  INTERP_ASSIGN_OR_RETURN(const char* const from, Bytes(device, bytes));
  return Copy(WorkKind::kDeviceToHost, host, from, std::move(host_buffer), bytes, work);
}

absl::Status SimStream::CopyOnDevice(void* to, const void* from, size_t bytes, const Work& work) {
  INTERP_ASSIGN_OR_RETURN(char* const to_bytes, Bytes(to, bytes));
  INTERP_ASSIGN_OR_RETURN(const char* const from_bytes, Bytes(from, bytes));
  if (to_bytes < from_bytes + bytes && from_bytes < to_bytes + bytes) {
    return absl::InternalError(absl::StrCat("a copy of ", bytes, " bytes on stream '", name_,
                                            "' overlaps what it copies"));
  }
  return Copy(WorkKind::kDeviceToDevice, to_bytes, from_bytes, BufferRef(), bytes, work);
}

absl::Status SimStream::CopyFromPeer(void* to, const void* from, Place peer, size_t bytes,
                                     const Work& work) {
  INTERP_ASSIGN_OR_RETURN(char* const to_bytes, Bytes(to, bytes));
  const char* const from_bytes = SimMemory::BytesOf(peer, from, bytes);
  if (from_bytes == nullptr) {
    return absl::InternalError(absl::StrCat("a copy of ", bytes, " bytes on stream '", name_,
                                            "' leaves the memory of ", interp::Name(peer)));
  }
  return Copy(WorkKind::kPeerToPeer, to_bytes, from_bytes, BufferRef(), bytes, work);
}

absl::Status SimStream::Copy(WorkKind kind, void* to, const void* from, BufferRef host_buffer,
                             size_t bytes, const Work& work) {
  Work copy = work;
  copy.bytes = static_cast<int64_t>(bytes);
  copy.flops = 0;
  return device_.Launch(index_, kind, copy,
                        [to, from, bytes, host_buffer = std::move(host_buffer)] {
                          if (bytes > 0) std::memmove(to, from, bytes);
                          return absl::OkStatus();
                        });
}

absl::Status SimStream::Fill(void* device, uint8_t value, size_t bytes) {
  INTERP_ASSIGN_OR_RETURN(char* const at, Bytes(device, bytes));
  return device_.Push(index_, {.kind = WorkKind::kFill, .work = [at, value, bytes] {
                                 std::memset(at, value, bytes);
                                 return absl::OkStatus();
                               }});
}

absl::Status SimStream::LaunchHostKernel(KernelFn kernel, const BoundArgs& args, const void* attrs,
                                         const KernelContext::Services& services,
                                         const Work& work) {
  INTERP_ASSIGN_OR_RETURN(
      std::shared_ptr<SimLaunch> launch,
      SimLaunch::Capture(kernel, args, attrs, services, device_.place(), *device_.memory_));
  return device_.Launch(index_, WorkKind::kKernel, work,
                        [launch = std::move(launch)] { return launch->Run(); });
}

// Recorded on a lost device, too: who waits already is to wake up.
absl::Status SimStream::RecordOwn(DeviceEvent& event) {
  std::lock_guard<std::mutex> guard(device_.mutex_);
  static_cast<SimEvent&>(event).Set(device_.PushRecord(index_));
  return device_.status();
}

absl::Status SimStream::WaitOwn(const DeviceEvent& event) {
  std::lock_guard<std::mutex> guard(device_.mutex_);
  std::shared_ptr<SimPoint> point = static_cast<const SimEvent&>(event).latest();
  if (point == nullptr) return device_.status();
  device_.clock_.Wait(index_, point->time_ns());
  if (point->done()) return device_.status();
  device_.executor_->Push(index_, {.type = SimTask::Type::kWait, .point = std::move(point)});
  return device_.status();
}

absl::Status SimStream::Synchronize() {
  std::shared_ptr<SimPoint> point;
  {
    std::lock_guard<std::mutex> guard(device_.mutex_);
    point = device_.PushRecord(index_);
  }
  device_.HostWait(*point);
  return device_.status();
}

}  // namespace interp
