// The work of MachineState: copies, kernels, streams and events.
#include <bit>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "tests/cuda_emulation/machine.h"

namespace interp::cuda_emulation {
namespace {

// How long a query waits: a GPU works on while it is asked again and again.
SimDeadline SoonEnough() {
  return std::chrono::steady_clock::now() + std::chrono::microseconds(20);
}

// What a launch may ask for, by the limits of all GPUs that interp knows.
bool Fits(const GridLaunch& launch) {
  const dim3 grid = launch.grid;
  const dim3 block = launch.block;
  constexpr unsigned kMostBlocks = 65535;  // in y and z
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > kMostBlocks ||
      grid.z > kMostBlocks) {
    return false;
  }
  if (block.x == 0 || block.y == 0 || block.z == 0 || block.z > 64) return false;
  return size_t{block.x} * block.y * block.z <= kMaxBlockThreads &&
         launch.shared_bytes <= kMaxSharedBytes;
}

}  // namespace

cudaError_t MachineState::Find(cudaStream_t stream, int current, Target& target) {
  target = {.device = devices_[current].get(), .number = current};
  if (stream != nullptr) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (!streams_.contains(stream)) return cudaErrorInvalidResourceHandle;
    target = {
        .device = devices_[stream->device].get(), .number = stream->device, .lane = stream->lane};
  }
  return target.device->lost;
}

void MachineState::Push(const Target& target, WorkKind kind, size_t bytes,
                        std::function<cudaError_t()> work) {
  EmulatedDevice* const device = target.device;
  // What follows a failure on a lost device is dropped.
  auto run = [device, work = std::move(work)] {
    if (device->lost != cudaSuccess) return absl::OkStatus();
    if (const cudaError_t error = work(); error != cudaSuccess) device->lost = error;
    return absl::OkStatus();
  };
  device->executor->Admit(target.lane);
  SimTask task{.kind = kind, .work = std::move(run)};
  std::lock_guard<std::mutex> guard(mutex_);
  if (kind != WorkKind::kFill) {
    device->clock.Launch(target.lane, kind, {.bytes = static_cast<int64_t>(bytes)});
  }
  device->executor->Push(target.lane, std::move(task));
}

std::shared_ptr<SimPoint> MachineState::PushRecord(const Target& target) {
  std::lock_guard<std::mutex> guard(mutex_);
  auto point = std::make_shared<SimPoint>(target.device->executor,
                                          target.device->clock.RecordTime(target.lane));
  target.device->executor->Push(target.lane, {.type = SimTask::Type::kRecord, .point = point});
  return point;
}

cudaError_t MachineState::HostWait(SimPoint& point, EmulatedDevice& device) {
  point.executor().WaitFor(point);
  std::lock_guard<std::mutex> guard(mutex_);
  device.clock.HostWait(point.time_ns());
  return device.lost;
}

char* MachineState::HostBytes(const void* address, size_t bytes) {
  DeviceMemory* const memory = MemoryOf(address);
  if (memory == nullptr) return const_cast<char*>(static_cast<const char*>(address));
  return memory->Holds(address, bytes) ? memory->Bytes(address, bytes) : nullptr;
}

cudaError_t MachineState::RunCopy(void* to, const void* from, size_t bytes) {
  std::lock_guard<std::mutex> guard(memory_mutex_);
  char* const to_bytes = HostBytes(to, bytes);
  const char* const from_bytes = HostBytes(from, bytes);
  if (to_bytes == nullptr || from_bytes == nullptr) return cudaErrorIllegalAddress;
  std::memmove(to_bytes, from_bytes, bytes);
  DeviceMemory* const target = MemoryOf(to);
  DeviceMemory* const source = MemoryOf(from);
  const auto at = reinterpret_cast<uintptr_t>(to);
  if (target == nullptr) return cudaSuccess;
  if (source == nullptr) {
    target->shadow().SetState(at, bytes, Shadow::State::kInitialised);
  } else {
    target->shadow().CopyState(at, source->shadow(), reinterpret_cast<uintptr_t>(from), bytes);
  }
  return cudaSuccess;
}

cudaError_t MachineState::Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                               cudaStream_t stream, int current) {
  Target target;
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  if (bytes == 0) return cudaSuccess;
  const bool to_device = MemoryOf(to) != nullptr;
  const bool from_device = MemoryOf(from) != nullptr;
  const bool says_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool says_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind != cudaMemcpyDefault && (says_to != to_device || says_from != from_device)) {
    return cudaErrorInvalidValue;
  }
  const auto work = [to_device, from_device] {
    if (to_device == from_device) return WorkKind::kDeviceToDevice;
    return to_device ? WorkKind::kHostToDevice : WorkKind::kDeviceToHost;
  }();
  const bool pageable_to = !to_device && !Pinned(to);
  const bool pageable_from = !from_device && !Pinned(from);
  if (pageable_to || pageable_from) ++pageable_copies_;
  if (pageable_from) {
    // The source may change as soon as the call returns, and the copy happens later.
    auto staged = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
    Push(target, work, bytes,
         [this, to, staged] { return RunCopy(to, staged->data(), staged->size()); });
    return cudaSuccess;
  }
  Push(target, work, bytes, [this, to, from, bytes] { return RunCopy(to, from, bytes); });
  return pageable_to ? Synchronize(stream, current) : cudaSuccess;
}

cudaError_t MachineState::Set(void* address, int value, size_t bytes, cudaStream_t stream,
                              int current) {
  Target target;
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  if (bytes == 0) return cudaSuccess;
  DeviceMemory* const memory = MemoryOf(address);
  if (memory == nullptr) return cudaErrorInvalidValue;
  Push(target, WorkKind::kDeviceToDevice, bytes, [this, memory, address, value, bytes] {
    std::lock_guard<std::mutex> guard(memory_mutex_);
    if (!memory->Holds(address, bytes)) return cudaErrorIllegalAddress;
    std::memset(memory->Bytes(address, bytes), value, bytes);
    memory->shadow().SetState(reinterpret_cast<uintptr_t>(address), bytes,
                              Shadow::State::kInitialised);
    return cudaSuccess;
  });
  return cudaSuccess;
}

cudaError_t MachineState::RunGrid(const GridLaunch& launch, EmulatedDevice& device) {
  std::lock_guard<std::mutex> guard(memory_mutex_);
  GridMemory memory{.devices = {device.memory.get()}, .pinned = &pinned_};
  for (const int peer : device.peers) memory.devices.push_back(devices_[peer]->memory.get());
  // Kernels of a device are the only code that may use its addresses.
  std::vector<std::unique_ptr<SimMemory::NativeAccess>> access;
  for (DeviceMemory* usable : memory.devices) {
    access.push_back(std::make_unique<SimMemory::NativeAccess>(usable->memory()));
  }
  return runner_->Run(launch, memory, findings_);
}

cudaError_t MachineState::Launch(const GridLaunch& launch, cudaStream_t stream, int current) {
  Target target;
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  if (!Fits(launch)) return cudaErrorInvalidConfiguration;
  Push(target, WorkKind::kKernel, /*bytes=*/0,
       [this, launch, device = target.device] { return RunGrid(launch, *device); });
  return cudaSuccess;
}

cudaError_t MachineState::LaunchHost(cudaStream_t stream, cudaHostFn_t function, void* data,
                                     int current) {
  Target target;
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  Push(target, WorkKind::kFill, /*bytes=*/0, [function, data] {
    function(data);
    return cudaSuccess;
  });
  return cudaSuccess;
}

cudaError_t MachineState::CreateStream(int device, cudaStream_t* stream, int priority) {
  std::lock_guard<std::mutex> guard(mutex_);
  EmulatedDevice& owner = *devices_[device];
  const int lane = std::countr_one(owner.lanes);
  if (lane == kMaxStreams) return cudaErrorMemoryAllocation;
  owner.executor->Open(lane, priority);
  owner.lanes |= uint64_t{1} << lane;
  owner.clock.OpenStream(lane, /*timed=*/true);
  *stream = new CUstream_st{.device = device, .lane = lane};
  streams_.insert(*stream);
  return cudaSuccess;
}

cudaError_t MachineState::DestroyStream(cudaStream_t stream) {
  Target target;
  if (stream == nullptr || Find(stream, /*current=*/0, target) == cudaErrorInvalidResourceHandle) {
    return cudaErrorInvalidResourceHandle;
  }
  const std::shared_ptr<SimPoint> end = PushRecord(target);
  const cudaError_t error = HostWait(*end, *target.device);
  std::lock_guard<std::mutex> guard(mutex_);
  target.device->executor->Close(target.lane);
  target.device->lanes &= ~(uint64_t{1} << target.lane);
  streams_.erase(stream);
  delete stream;
  return error;
}

cudaError_t MachineState::Synchronize(cudaStream_t stream, int current) {
  Target target;
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  return HostWait(*PushRecord(target), *target.device);
}

cudaError_t MachineState::SynchronizeDevice(int device) {
  EmulatedDevice* const owner = devices_[device].get();
  std::vector<std::shared_ptr<SimPoint>> ends;
  uint64_t lanes = 0;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    lanes = owner->lanes;
  }
  for (; lanes != 0; lanes &= lanes - 1) {
    ends.push_back(
        PushRecord({.device = owner, .number = device, .lane = std::countr_zero(lanes)}));
  }
  for (const std::shared_ptr<SimPoint>& end : ends) HostWait(*end, *owner);
  return owner->lost;
}

cudaError_t MachineState::QueryStream(cudaStream_t stream, int current) {
  Target target;
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  const std::shared_ptr<SimPoint> end = PushRecord(target);
  target.device->executor->WaitFor(*end, SoonEnough());
  return end->done() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t MachineState::CreateEvent(int device, cudaEvent_t* event, bool timed) {
  std::lock_guard<std::mutex> guard(mutex_);
  *event = new CUevent_st{.device = device, .timed = timed, .point = nullptr};
  events_.insert(*event);
  return cudaSuccess;
}

cudaError_t MachineState::DestroyEvent(cudaEvent_t event) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (events_.erase(event) == 0) return cudaErrorInvalidResourceHandle;
  delete event;
  return cudaSuccess;
}

cudaError_t MachineState::Record(cudaEvent_t event, cudaStream_t stream, int current) {
  Target target;
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  std::shared_ptr<SimPoint> point = PushRecord(target);
  std::lock_guard<std::mutex> guard(mutex_);
  if (!events_.contains(event) || event->device != target.number) {
    return cudaErrorInvalidResourceHandle;
  }
  event->point = std::move(point);
  return cudaSuccess;
}

cudaError_t MachineState::Wait(cudaStream_t stream, cudaEvent_t event, int current) {
  Target target;
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  std::lock_guard<std::mutex> guard(mutex_);
  if (!events_.contains(event)) return cudaErrorInvalidResourceHandle;
  std::shared_ptr<SimPoint> point = event->point;
  if (point == nullptr) return cudaSuccess;
  target.device->clock.Wait(target.lane, point->time_ns());
  if (point->done()) return cudaSuccess;
  target.device->executor->Push(target.lane,
                                {.type = SimTask::Type::kWait, .point = std::move(point)});
  return cudaSuccess;
}

cudaError_t MachineState::QueryEvent(cudaEvent_t event) {
  std::shared_ptr<SimPoint> point;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (!events_.contains(event)) return cudaErrorInvalidResourceHandle;
    point = event->point;
  }
  if (point == nullptr || point->done()) return cudaSuccess;
  point->executor().WaitFor(*point, SoonEnough());
  return point->done() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t MachineState::SynchronizeEvent(cudaEvent_t event) {
  std::shared_ptr<SimPoint> point;
  int device = 0;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (!events_.contains(event)) return cudaErrorInvalidResourceHandle;
    point = event->point;
    device = event->device;
  }
  return point == nullptr ? cudaSuccess : HostWait(*point, *devices_[device]);
}

cudaError_t MachineState::ElapsedMs(float* ms, cudaEvent_t start, cudaEvent_t end) {
  std::lock_guard<std::mutex> guard(mutex_);
  for (cudaEvent_t event : {start, end}) {
    if (!events_.contains(event) || !event->timed || event->point == nullptr) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!event->point->done()) return cudaErrorNotReady;
  }
  *ms = static_cast<float>(end->point->time_ns() - start->point->time_ns()) * 1e-6f;
  return cudaSuccess;
}

}  // namespace interp::cuda_emulation
