// The work of MachineState: copies, kernels, streams and events.
#include <bit>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/cuda_emulation/machine.h"
#include "tests/cuda_emulation/source_line.h"

namespace interp::cuda_emulation {
namespace {

// How long a query waits: a GPU works on while it is asked again and again.
SimDeadline SoonEnough() { return std::chrono::steady_clock::now() + std::chrono::milliseconds(5); }

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

cudaError_t MachineState::FindCurrent(cudaStream_t stream, int current, Target& target) {
  const cudaError_t error = Find(stream, current, target);
  return error == cudaSuccess && target.number != current ? cudaErrorInvalidResourceHandle : error;
}

void MachineState::Push(const Target& target, WorkKind kind, size_t bytes, StreamRun run) {
  EmulatedDevice* const device = target.device;
  device->executor->Admit(target.lane);
  std::lock_guard<std::mutex> guard(mutex_);
  if (const auto capture = captures_.find(target.queue()); capture != captures_.end()) {
    capture->second->work.push_back({kind, bytes, std::move(run)});
    return;
  }
  // What follows a failure on a lost device is dropped.
  auto unless_lost = [device, run = std::move(run), work = order_.Enqueue(target.queue())] {
    if (device->lost != cudaSuccess) return absl::OkStatus();
    if (const cudaError_t error = run(work); error != cudaSuccess) device->lost = error;
    return absl::OkStatus();
  };
  if (kind != WorkKind::kFill) {
    device->clock.Launch(target.lane, kind, {.bytes = static_cast<int64_t>(bytes)});
  }
  device->executor->Push(target.lane, {.kind = kind, .work = std::move(unless_lost)});
}

StreamRecord MachineState::PushRecord(const Target& target) {
  std::lock_guard<std::mutex> guard(mutex_);
  return PushRecordLocked(target);
}

StreamRecord MachineState::PushRecordLocked(const Target& target) {
  auto point = std::make_shared<SimPoint>(target.device->executor,
                                          target.device->clock.RecordTime(target.lane));
  target.device->executor->Push(target.lane, {.type = SimTask::Type::kRecord, .point = point});
  return {.point = std::move(point), .moment = order_.Now(target.queue())};
}

cudaError_t MachineState::HostWait(const StreamRecord& record, EmulatedDevice& device) {
  record.point->executor().WaitFor(*record.point);
  std::lock_guard<std::mutex> guard(mutex_);
  device.clock.HostWait(record.point->time_ns());
  order_.HostWait(*record.moment);
  return device.lost;
}

cudaError_t MachineState::Query(const StreamRecord& record) {
  if (!record.point->executor().WaitFor(*record.point, SoonEnough())) return cudaErrorNotReady;
  std::lock_guard<std::mutex> guard(mutex_);
  order_.HostWait(*record.moment);
  return cudaSuccess;
}

void MachineState::Touch(DeviceMemory* memory, const void* address, size_t bytes, bool write,
                         const StreamWork& work) {
  if (memory == nullptr) return;
  const Conflict conflict =
      memory->shadow().TouchByWork(reinterpret_cast<uintptr_t>(address), bytes, write, work);
  if (conflict.type == Conflict::Type::kNone) return;
  findings_.push_back(
      {.type = Finding::Type::kUnordered,
       .text = absl::StrCat(NameOf(work.stamp), write ? " writes " : " reads ",
                            memory->Describe(conflict.address), ", which ", NameOf(conflict.work),
                            conflict.with_write ? " writes" : " reads", " with no event between")});
}

std::string MachineState::NameOf(WorkStamp work) const {
  std::string what = "a copy, fill or free";
  if (const auto kernel = kernels_.find(work.value()); kernel != kernels_.end()) {
    what = "kernel " + FunctionName(kernel->second);
  } else if (const auto call = library_calls_.find(work.value()); call != library_calls_.end()) {
    what = call->second;
  }
  return absl::StrCat(what, " of stream ", work.queue() % kMaxStreams, " of device ",
                      work.queue() / kMaxStreams);
}

char* MachineState::HostBytes(const void* address, size_t bytes, const StreamWork& work) {
  DeviceMemory* const memory = MemoryOf(address);
  if (memory == nullptr) return const_cast<char*>(static_cast<const char*>(address));
  if (memory->Holds(address, bytes)) return memory->Bytes(address, bytes);
  findings_.push_back({.type = Finding::Type::kOutOfBounds,
                       .text = absl::StrCat(NameOf(work.stamp), " touches ", bytes, " bytes from ",
                                            memory->Describe(reinterpret_cast<uintptr_t>(address)),
                                            " on, out of bounds")});
  return nullptr;
}

cudaError_t MachineState::RunCopy(void* to, const void* from, size_t bytes,
                                  const StreamWork& work) {
  std::lock_guard<std::mutex> guard(memory_mutex_);
  char* const to_bytes = HostBytes(to, bytes, work);
  const char* const from_bytes = HostBytes(from, bytes, work);
  if (to_bytes == nullptr || from_bytes == nullptr) return cudaErrorIllegalAddress;
  std::memmove(to_bytes, from_bytes, bytes);
  DeviceMemory* const target = MemoryOf(to);
  DeviceMemory* const source = MemoryOf(from);
  Touch(target, to, bytes, /*write=*/true, work);
  Touch(source, from, bytes, /*write=*/false, work);
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
  const auto direction = [to_device, from_device] {
    if (to_device == from_device) return WorkKind::kDeviceToDevice;
    return to_device ? WorkKind::kHostToDevice : WorkKind::kDeviceToHost;
  }();
  const bool pageable_to = !to_device && !Pinned(to);
  const bool pageable_from = !from_device && !Pinned(from);
  if (direction != WorkKind::kDeviceToDevice) {
    if (const cudaError_t error = FindUncaptured(stream, current, target); error != cudaSuccess) {
      return error;
    }
  }
  if (pageable_to || pageable_from) ++pageable_copies_;
  if (pageable_from) {
    // The source may change as soon as the call returns, and the copy happens later.
    auto staged = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
    Push(target, direction, bytes, [this, to, staged](const StreamWork& work) {
      return RunCopy(to, staged->data(), staged->size(), work);
    });
    return cudaSuccess;
  }
  Push(target, direction, bytes,
       [this, to, from, bytes](const StreamWork& work) { return RunCopy(to, from, bytes, work); });
  return pageable_to ? Synchronize(stream, current) : cudaSuccess;
}

cudaError_t MachineState::Set(void* address, int value, size_t bytes, cudaStream_t stream,
                              int current) {
  Target target;
  if (const cudaError_t error = FindCurrent(stream, current, target); error != cudaSuccess)
    return error;
  if (bytes == 0) return cudaSuccess;
  DeviceMemory* const memory = MemoryOf(address);
  if (memory == nullptr) return cudaErrorInvalidValue;
  auto run = [this, memory, address, value, bytes](const StreamWork& work) {
    std::lock_guard<std::mutex> guard(memory_mutex_);
    char* const at = HostBytes(address, bytes, work);
    if (at == nullptr) return cudaErrorIllegalAddress;
    Touch(memory, address, bytes, /*write=*/true, work);
    std::memset(at, value, bytes);
    memory->shadow().SetState(reinterpret_cast<uintptr_t>(address), bytes,
                              Shadow::State::kInitialised);
    return cudaSuccess;
  };
  Push(target, WorkKind::kDeviceToDevice, bytes, std::move(run));
  return cudaSuccess;
}

cudaError_t MachineState::RunGrid(const GridLaunch& launch, EmulatedDevice& device,
                                  const StreamWork& work) {
  std::lock_guard<std::mutex> guard(memory_mutex_);
  kernels_[work.stamp.value()] = launch.kernel;
  GridMemory memory{.devices = {device.memory.get()},
                    .pinned = &pinned_,
                    .work = work,
                    .name_of_work = [this](WorkStamp stamp) { return NameOf(stamp); }};
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
  if (const cudaError_t error = FindCurrent(stream, current, target); error != cudaSuccess)
    return error;
  if (!Fits(launch)) return cudaErrorInvalidConfiguration;
  Push(target, WorkKind::kKernel, /*bytes=*/0,
       [this, launch, device = target.device](const StreamWork& work) {
         return RunGrid(launch, *device, work);
       });
  return cudaSuccess;
}

cudaError_t MachineState::LaunchHost(cudaStream_t stream, cudaHostFn_t function, void* data,
                                     int current) {
  Target target;
  if (const cudaError_t error = FindUncaptured(stream, current, target); error != cudaSuccess)
    return error;
  Push(target, WorkKind::kFill, /*bytes=*/0, [function, data](const StreamWork&) {
    CallHost(function, data);
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
  const cudaError_t error = HostWait(PushRecord(target), *target.device);
  std::lock_guard<std::mutex> guard(mutex_);
  target.device->executor->Close(target.lane);
  target.device->lanes &= ~(uint64_t{1} << target.lane);
  streams_.erase(stream);
  delete stream;
  return error;
}

cudaError_t MachineState::Synchronize(cudaStream_t stream, int current) {
  Target target;
  if (const cudaError_t error = FindUncaptured(stream, current, target); error != cudaSuccess)
    return error;
  return HostWait(PushRecord(target), *target.device);
}

cudaError_t MachineState::SynchronizeDevice(int device) {
  EmulatedDevice* const owner = devices_[device].get();
  std::vector<StreamRecord> ends;
  {
    // Other threads may end streams meanwhile.
    std::lock_guard<std::mutex> guard(mutex_);
    for (uint64_t lanes = owner->lanes; lanes != 0; lanes &= lanes - 1) {
      ends.push_back(
          PushRecordLocked({.device = owner, .number = device, .lane = std::countr_zero(lanes)}));
    }
  }
  for (const StreamRecord& end : ends) HostWait(end, *owner);
  return owner->lost;
}

cudaError_t MachineState::QueryStream(cudaStream_t stream, int current) {
  Target target;
  if (const cudaError_t error = FindUncaptured(stream, current, target); error != cudaSuccess)
    return error;
  return Query(PushRecord(target));
}

cudaError_t MachineState::CreateEvent(int device, cudaEvent_t* event, bool timed) {
  std::lock_guard<std::mutex> guard(mutex_);
  *event = new CUevent_st{.device = device, .timed = timed, .record = {}};
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
  if (const cudaError_t error = FindUncaptured(stream, current, target); error != cudaSuccess)
    return error;
  StreamRecord record = PushRecord(target);
  std::lock_guard<std::mutex> guard(mutex_);
  if (!events_.contains(event) || event->device != target.number) {
    return cudaErrorInvalidResourceHandle;
  }
  event->record = std::move(record);
  return cudaSuccess;
}

cudaError_t MachineState::Wait(cudaStream_t stream, cudaEvent_t event, int current) {
  Target target;
  if (const cudaError_t error = FindUncaptured(stream, current, target); error != cudaSuccess)
    return error;
  std::lock_guard<std::mutex> guard(mutex_);
  if (!events_.contains(event)) return cudaErrorInvalidResourceHandle;
  const auto& [point, moment] = event->record;
  if (point == nullptr) return cudaSuccess;
  order_.Wait(target.queue(), *moment);
  target.device->clock.Wait(target.lane, point->time_ns());
  if (point->done()) return cudaSuccess;
  target.device->executor->Push(target.lane, {.type = SimTask::Type::kWait, .point = point});
  return cudaSuccess;
}

cudaError_t MachineState::QueryEvent(cudaEvent_t event) {
  StreamRecord record;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (!events_.contains(event)) return cudaErrorInvalidResourceHandle;
    record = event->record;
  }
  return record.point == nullptr ? cudaSuccess : Query(record);
}

cudaError_t MachineState::SynchronizeEvent(cudaEvent_t event) {
  StreamRecord record;
  int device = 0;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (!events_.contains(event)) return cudaErrorInvalidResourceHandle;
    record = event->record;
    device = event->device;
  }
  return record.point == nullptr ? cudaSuccess : HostWait(record, *devices_[device]);
}

cudaError_t MachineState::ElapsedMs(float* ms, cudaEvent_t start, cudaEvent_t end) {
  std::lock_guard<std::mutex> guard(mutex_);
  for (cudaEvent_t event : {start, end}) {
    if (!events_.contains(event) || !event->timed || event->record.point == nullptr) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!event->record.point->done()) return cudaErrorNotReady;
  }
  if (start->device != end->device) return cudaErrorInvalidResourceHandle;
  *ms = static_cast<float>(end->record.point->time_ns() - start->record.point->time_ns()) * 1e-6f;
  return cudaSuccess;
}

}  // namespace interp::cuda_emulation
