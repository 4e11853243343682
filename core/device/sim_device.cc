#include "core/device/sim_device.h"

#include <bit>
#include <cmath>
#include <system_error>
#include <utility>

#include "core/base/check.h"
#include "core/device/sim_stream.h"

namespace interp {
namespace {

absl::Status Check(const SimOptions& options) {
  if (options.index < 0 || options.index >= kMaxDevices) {
    return InvalidArgument("sim:", options.index,
                           " is no device; there are sim:0 to sim:", kMaxDevices - 1);
  }
  if (options.capacity_bytes < kBufferAlignment || options.capacity_bytes > kMaxSimBytes) {
    return InvalidArgument("a simulated device cannot have ", options.capacity_bytes,
                           " bytes of memory, expected ", kBufferAlignment, " to 2^44");
  }
  for (const double rate :
       {options.copy_bytes_per_s, options.memory_bytes_per_s, options.flops_per_s}) {
    if (!(rate > 0) || std::isinf(rate)) {
      return InvalidArgument("a rate of a simulated device is ", rate, ", expected above 0");
    }
  }
  if (options.lose_at < 0) {
    return InvalidArgument("a simulated device is to be lost at kernel or copy ", options.lose_at,
                           ", expected 0 (never) or more");
  }
  constexpr int64_t kLongestNs = 3'600'000'000'000;
  for (const int64_t ns : {options.max_kernel_delay_ns, options.max_copy_delay_ns,
                           options.latency_ns, options.launch_ns}) {
    if (ns < 0 || ns > kLongestNs) {
      return InvalidArgument("a time of a simulated device is ", ns, " ns, expected 0 to an hour");
    }
  }
  return absl::OkStatus();
}

}  // namespace

SimDevice::SimDevice(const SimOptions& options, std::unique_ptr<SimMemory> memory)
    : place_{PlaceKind::kSim, static_cast<int8_t>(options.index)},
      lose_at_(options.lose_at),
      memory_(std::move(memory)),
      executor_(options.execution == SimOptions::Execution::kThreads
                    ? MakeThreadExecutor(options)
                    : MakeInterleavedExecutor(options)),
      clock_(options) {}

SimDevice::~SimDevice() { INTERP_CHECK(used_indices_ == 0 && "a stream outlives its device"); }

absl::StatusOr<std::unique_ptr<Stream>> SimDevice::CreateStream(const std::string& name,
                                                                int priority) {
  return OpenStream(name, priority, /*timed=*/true);
}

absl::StatusOr<std::unique_ptr<Stream>> SimDevice::CreateUntimedStream(const std::string& name) {
  return OpenStream(name, /*priority=*/0, /*timed=*/false);
}

absl::StatusOr<std::unique_ptr<Stream>> SimDevice::OpenStream(const std::string& name, int priority,
                                                              bool timed) {
  INTERP_RETURN_IF_ERROR(status());
  std::lock_guard<std::mutex> guard(mutex_);
  const int index = std::countr_one(used_indices_);
  if (index == kMaxStreams) {
    return ResourceExhausted("cannot create stream '", name, "': ", Name(place_), " has ",
                             kMaxStreams, " streams, its most");
  }
  try {
    executor_->Open(index, priority);
  } catch (const std::system_error& e) {
    return ResourceExhausted("cannot start a thread for stream '", name, "': ", e.what());
  }
  used_indices_ |= uint64_t{1} << index;
  open_streams_ |= uint64_t{1} << index;
  clock_.OpenStream(index, timed);
  return std::make_unique<SimStream>(*this, name, index);
}

void SimDevice::CloseStream(int stream) {
  std::shared_ptr<SimPoint> end;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    end = PushRecord(stream);
    open_streams_ &= ~(uint64_t{1} << stream);
  }
  HostWait(*end);
  executor_->Close(stream);
  std::lock_guard<std::mutex> guard(mutex_);
  used_indices_ &= ~(uint64_t{1} << stream);
}

absl::StatusOr<std::unique_ptr<DeviceEvent>> SimDevice::CreateEvent() {
  INTERP_RETURN_IF_ERROR(status());
  return std::make_unique<SimEvent>(*this);
}

absl::StatusOr<void*> SimDevice::AllocateRaw(size_t bytes) {
  INTERP_RETURN_IF_ERROR(status());
  return memory_->Allocate(bytes);
}

absl::Status SimDevice::Launch(int stream, WorkKind kind, const Work& work,
                               std::function<absl::Status()> run) {
  INTERP_RETURN_IF_ERROR(status());
  executor_->Admit(stream);
  SimTask task{
      .kind = kind, .tag = work.tag, .errors = work.errors, .device = this, .work = std::move(run)};
  std::lock_guard<std::mutex> guard(mutex_);
  if (++num_launched_ == lose_at_) {
    task.work = [this] {
      Lose(absl::StrCat("as asked for, at kernel or copy ", lose_at_));
      return status();
    };
  }
  clock_.Launch(stream, kind, work);
  executor_->Push(stream, std::move(task));
  return absl::OkStatus();
}

absl::Status SimDevice::Push(int stream, SimTask task) {
  INTERP_RETURN_IF_ERROR(status());
  task.device = this;
  std::lock_guard<std::mutex> guard(mutex_);
  executor_->Push(stream, std::move(task));
  return absl::OkStatus();
}

std::shared_ptr<SimPoint> SimDevice::PushRecord(int stream) {
  auto point = std::make_shared<SimPoint>(executor_, clock_.RecordTime(stream));
  executor_->Push(stream, {.type = SimTask::Type::kRecord, .point = point});
  return point;
}

bool SimDevice::HostWait(SimPoint& point, SimDeadline deadline) {
  if (!point.executor().WaitFor(point, deadline)) return false;
  std::lock_guard<std::mutex> guard(mutex_);
  clock_.HostWait(point.time_ns());
  return true;
}

absl::Status SimDevice::Synchronize() {
  std::vector<std::shared_ptr<SimPoint>> ends;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    for (uint64_t left = open_streams_; left != 0; left &= left - 1) {
      ends.push_back(PushRecord(std::countr_zero(left)));
    }
  }
  for (const std::shared_ptr<SimPoint>& end : ends) HostWait(*end);
  return status();
}

int64_t SimDevice::NowNs() {
  std::lock_guard<std::mutex> guard(mutex_);
  return clock_.host_ns();
}

void SimDevice::StartTrace() {
  std::lock_guard<std::mutex> guard(mutex_);
  clock_.StartTrace();
}

std::vector<DeviceSpan> SimDevice::StopTrace() {
  Synchronize().IgnoreError();
  std::lock_guard<std::mutex> guard(mutex_);
  return clock_.StopTrace();
}

absl::StatusOr<std::shared_ptr<Device>> MakeSimDevice(const SimOptions& options) {
  INTERP_RETURN_IF_ERROR(Check(options));
  const Place place{PlaceKind::kSim, static_cast<int8_t>(options.index)};
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<SimMemory> memory,
                          SimMemory::Map(place, options.capacity_bytes));
  return std::make_shared<SimDevice>(options, std::move(memory));
}

}  // namespace interp
