#include "tests/cuda_emulation/machine.h"

#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/status/status.h"

namespace interp::cuda_emulation {
namespace {

std::atomic<MachineState*> living_machine = nullptr;

thread_local bool in_host_function = false;

// Whether the device is of no more use after the error.
bool LosesDevice(cudaError_t error) {
  return error == cudaErrorIllegalAddress || error == cudaErrorMisalignedAddress ||
         error == cudaErrorLaunchFailure;
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
  if (options.devices < 0 || options.devices > kMaxDevices) {
    return InvalidArgument("an emulated machine cannot have ", options.devices,
                           " GPUs, expected 0 to ", kMaxDevices);
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

void MachineState::CallHost(cudaHostFn_t function, void* data) {
  const bool outer = std::exchange(in_host_function, true);
  function(data);
  in_host_function = outer;
}

cudaError_t MachineState::Enter(const std::string& name, int device) {
  if (in_host_function) {
    std::lock_guard<std::mutex> guard(memory_mutex_);
    findings_.push_back({.type = Finding::Type::kHostFunction,
                         .text = name + " is called by a function of cudaLaunchHostFunc"});
    return cudaErrorNotPermitted;
  }
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

cudaError_t MachineState::MakeContext(int device) {
  if (devices_[device]->has_context.exchange(true)) return cudaSuccess;
  const cudaError_t error = Enter("cuDevicePrimaryCtxRetain", /*device=*/-1);
  if (error != cudaSuccess) devices_[device]->has_context = false;
  return error;
}

cudaError_t MachineState::Allocate(int device, void** address, size_t bytes) {
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  std::lock_guard<std::mutex> guard(memory_mutex_);
  *address = devices_[device]->memory->Allocate(bytes);
  return *address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t MachineState::AllocateAsync(void** address, size_t bytes, cudaStream_t stream,
                                        int current) {
  Target target;
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  return Allocate(target.number, address, bytes);
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
  Push(target, WorkKind::kFill, /*bytes=*/0, [this, memory, address](const StreamWork& work) {
    std::lock_guard<std::mutex> guard(memory_mutex_);
    Touch(memory, address, memory->SizeOf(address), /*write=*/true, work);
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

}  // namespace interp::cuda_emulation
