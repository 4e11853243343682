#include "tests/cuda_emulation/machine.h"

#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include "absl/status/status.h"

namespace interp::cuda_emulation {
namespace {

std::atomic<MachineState*> living_machine = nullptr;

// Whether the device is of no more use after the error.
bool LosesDevice(cudaError_t error) {
  return error == cudaErrorIllegalAddress || error == cudaErrorMisalignedAddress ||
         error == cudaErrorLaunchFailure;
}

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

std::atomic<uint64_t> MachineState::last_serial_ = 0;

MachineState* LivingMachine() { return living_machine.load(std::memory_order_acquire); }

int64_t Machine::calls(const std::string& name) const {
  const std::map<std::string, int64_t> all = calls();
  const auto it = all.find(name);
  return it == all.end() ? 0 : it->second;
}

absl::StatusOr<std::unique_ptr<Machine>> Machine::Start(const Options& options) {
  if (LivingMachine() != nullptr) {
    return absl::FailedPreconditionError("an emulated machine is there already");
  }
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<MachineState> machine, MachineState::Create(options));
  living_machine.store(machine.get(), std::memory_order_release);
  return machine;
}

MachineState::EmulatedDevice::EmulatedDevice(const SimOptions& options,
                                             std::unique_ptr<DeviceMemory> memory)
    : memory(std::move(memory)),
      executor(options.execution == SimOptions::Execution::kThreads
                   ? MakeThreadExecutor(options)
                   : MakeInterleavedExecutor(options)),
      clock(options) {
  executor->Open(/*lane=*/0, /*priority=*/0);
  clock.OpenStream(/*stream=*/0, /*timed=*/true);
  lanes = 1;
}

absl::StatusOr<std::unique_ptr<MachineState>> MachineState::Create(const Options& options) {
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<GridRunner> runner, GridRunner::Create(options.seed));
  auto machine = std::unique_ptr<MachineState>(new MachineState(std::move(runner)));
  for (int i = 0; i < options.devices; ++i) {
    SimOptions device;
    device.index = i;
    device.seed = options.seed + static_cast<uint64_t>(i);
    device.execution = options.execution;
    device.max_kernel_delay_ns = device.max_copy_delay_ns = options.max_delay_ns;
    INTERP_ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemory> memory,
                            DeviceMemory::Map(i, options.capacity_bytes));
    machine->devices_.push_back(std::make_unique<EmulatedDevice>(device, std::move(memory)));
  }
  return machine;
}

MachineState::~MachineState() {
  while (!streams_.empty()) DestroyStream(*streams_.begin());
  for (int i = 0; i < num_devices(); ++i) {
    SynchronizeDevice(i);
    devices_[i]->executor->Close(/*lane=*/0);
  }
  for (const auto& [address, bytes] : pinned_) std::free(reinterpret_cast<void*>(address));
  for (cudaEvent_t event : events_) delete event;
  MachineState* self = this;
  living_machine.compare_exchange_strong(self, nullptr);
}

void MachineState::FailCall(const std::string& name, int nth, cudaError_t error) {
  std::lock_guard<std::mutex> guard(calls_mutex_);
  faults_[name] = {nth, error};
}

std::map<std::string, int64_t> MachineState::calls() const {
  std::lock_guard<std::mutex> guard(calls_mutex_);
  return calls_;
}

void MachineState::ResetCalls() {
  std::lock_guard<std::mutex> guard(calls_mutex_);
  calls_.clear();
  pageable_copies_ = 0;
}

std::vector<Finding> MachineState::TakeFindings() {
  std::lock_guard<std::mutex> guard(memory_mutex_);
  return std::exchange(findings_, {});
}

cudaError_t MachineState::Enter(const std::string& name, int device) {
  std::lock_guard<std::mutex> guard(calls_mutex_);
  ++calls_[name];
  if (device >= 0 && devices_[device]->lost != cudaSuccess) return devices_[device]->lost;
  const auto it = faults_.find(name);
  if (it == faults_.end() || --it->second.first > 0) return cudaSuccess;
  const cudaError_t error = it->second.second;
  faults_.erase(it);
  if (device >= 0 && LosesDevice(error)) devices_[device]->lost = error;
  return error;
}

cudaError_t MachineState::Allocate(int device, void** address, size_t bytes) {
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  std::lock_guard<std::mutex> guard(memory_mutex_);
  *address = devices_[device]->memory->Allocate(bytes);
  return *address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

DeviceMemory* MachineState::MemoryOf(const void* address, int* device) {
  for (int i = 0; i < num_devices(); ++i) {
    if (!devices_[i]->memory->Contains(address)) continue;
    if (device != nullptr) *device = i;
    return devices_[i]->memory.get();
  }
  return nullptr;
}

cudaError_t MachineState::Free(void* address) {
  if (address == nullptr) return cudaSuccess;
  int device = 0;
  DeviceMemory* const memory = MemoryOf(address, &device);
  if (memory == nullptr) return cudaErrorInvalidValue;
  const cudaError_t error = SynchronizeDevice(device);
  if (error != cudaSuccess) return error;
  std::lock_guard<std::mutex> guard(memory_mutex_);
  return memory->Free(address) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t MachineState::FreeAsync(void* address, cudaStream_t stream, int current) {
  Target target;
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  DeviceMemory* const memory = MemoryOf(address);
  if (memory == nullptr) return cudaErrorInvalidValue;
  Push(target, WorkKind::kFill, 0, [this, memory, address] {
    std::lock_guard<std::mutex> guard(memory_mutex_);
    return memory->Free(address) ? cudaSuccess : cudaErrorIllegalAddress;
  });
  return cudaSuccess;
}

cudaError_t MachineState::AllocateHost(void** address, size_t bytes) {
  *address = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (*address == nullptr) return cudaErrorMemoryAllocation;
  std::lock_guard<std::mutex> guard(memory_mutex_);
  pinned_[reinterpret_cast<uintptr_t>(*address)] = bytes;
  return cudaSuccess;
}

cudaError_t MachineState::FreeHost(void* address) {
  if (address == nullptr) return cudaSuccess;
  {
    std::lock_guard<std::mutex> guard(memory_mutex_);
    if (pinned_.erase(reinterpret_cast<uintptr_t>(address)) == 0) return cudaErrorInvalidValue;
  }
  std::free(address);
  return cudaSuccess;
}

bool MachineState::Pinned(const void* address) const {
  std::lock_guard<std::mutex> guard(memory_mutex_);
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto next = pinned_.upper_bound(at);
  return next != pinned_.begin() && at - std::prev(next)->first < std::prev(next)->second;
}

cudaError_t MachineState::MemoryInfo(int device, size_t* free_bytes, size_t* total_bytes) {
  std::lock_guard<std::mutex> guard(memory_mutex_);
  *free_bytes = devices_[device]->memory->free_bytes();
  *total_bytes = devices_[device]->memory->capacity_bytes();
  return cudaSuccess;
}

cudaError_t MachineState::EnablePeer(int device, int peer) {
  if (peer < 0 || peer >= num_devices() || peer == device) return cudaErrorInvalidDevice;
  std::lock_guard<std::mutex> guard(memory_mutex_);
  const bool added = devices_[device]->peers.insert(peer).second;
  return added ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
}

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
