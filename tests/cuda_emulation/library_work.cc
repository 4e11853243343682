#include "tests/cuda_emulation/library_work.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/cuda_emulation/machine.h"

namespace interp::cuda_emulation {

cudaError_t MachineState::RunLibraryWork(const LibraryWork& library, const StreamWork& work) {
  std::lock_guard<std::mutex> guard(memory_mutex_);
  library_calls_[work.stamp.value()] = library.name;
  std::vector<char*> bytes;
  for (const LibraryWork::Range& range : library.ranges) {
    bytes.push_back(nullptr);
    if (range.bytes == 0) continue;
    DeviceMemory* const memory = MemoryOf(range.address);
    if (memory == nullptr) {
      findings_.push_back({.type = Finding::Type::kOutOfBounds,
                           .text = absl::StrCat(NameOf(work.stamp), " touches ", range.bytes,
                                                " bytes that are no memory of a device")});
      return cudaErrorIllegalAddress;
    }
    bytes.back() = HostBytes(range.address, range.bytes, work);
    if (bytes.back() == nullptr) return cudaErrorIllegalAddress;
    Touch(memory, range.address, range.bytes, range.write, work);
    const auto at = reinterpret_cast<uintptr_t>(range.address);
    const size_t written = memory->shadow().WrittenBytes(at, range.bytes);
    if (kShadow && !range.write && written < range.bytes) {
      findings_.push_back(
          {.type = Finding::Type::kUninitialised,
           .text = absl::StrCat(NameOf(work.stamp), " reads ", memory->Describe(at + written),
                                ", which nobody wrote")});
    }
  }
  library.run(bytes);
  for (const LibraryWork::Range& range : library.ranges) {
    if (!range.write || range.bytes == 0) continue;
    MemoryOf(range.address)
        ->shadow()
        .SetState(reinterpret_cast<uintptr_t>(range.address), range.bytes,
                  Shadow::State::kInitialised);
  }
  return cudaSuccess;
}

cudaError_t MachineState::LaunchLibraryWork(LibraryWork library, cudaStream_t stream, int current) {
  Target target;
  if (const cudaError_t error = FindCurrent(stream, current, target); error != cudaSuccess)
    return error;
  Push(target, WorkKind::kKernel, /*bytes=*/0,
       [this, library = std::move(library)](const StreamWork& work) {
         return RunLibraryWork(library, work);
       });
  return cudaSuccess;
}

cudaError_t MachineState::LaunchHeldLibraryWork(
    LibraryWork library, cudaStream_t stream, int current,
    const std::function<void(const std::shared_ptr<SimPoint>&)>& give) {
  Target target;
  if (const cudaError_t error = FindUncaptured(stream, current, target); error != cudaSuccess) {
    return error;
  }
  std::shared_ptr<SimPoint> point;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    point = std::make_shared<SimPoint>(target.device->executor,
                                       target.device->clock.RecordTime(target.lane));
  }
  give(point);
  Push(target, WorkKind::kKernel, /*bytes=*/0,
       [this, library = std::move(library)](const StreamWork& work) {
         return RunLibraryWork(library, work);
       });
  std::lock_guard<std::mutex> guard(mutex_);
  target.device->executor->Push(target.lane, {.type = SimTask::Type::kWait, .point = point});
  return cudaSuccess;
}

cudaError_t EnterLibrary(const std::string& name) {
  MachineState* const machine = LivingMachine();
  if (machine == nullptr) return cudaErrorInsufficientDriver;
  const int device = CurrentDevice(*machine);
  if (device >= machine->num_devices()) return cudaErrorNoDevice;
  return machine->Enter(name, device);
}

void MachineState::CheckEnd(const std::string& call, int device, cudaStream_t stream) {
  const int current = CurrentDevice(*this);
  std::string text;
  if (device != current) {
    text = absl::StrCat(call, ": the handle is of device ", device, ", and device ", current,
                        " is the current one");
  }
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (stream != nullptr && !streams_.contains(stream)) {
      text = absl::StrCat(call, ": the stream of the handle is gone");
    }
  }
  if (text.empty()) return;
  std::lock_guard<std::mutex> guard(memory_mutex_);
  findings_.push_back({.type = Finding::Type::kHandle, .text = std::move(text)});
}

void LeaveLibrary(const std::string& call, int device, cudaStream_t stream) {
  if (MachineState* const machine = LivingMachine(); machine != nullptr) {
    machine->CheckEnd(call, device, stream);
  }
}

int LibraryDevice() { return CurrentDevice(*LivingMachine()); }

cudaError_t EnqueueLibraryWork(LibraryWork work, cudaStream_t stream) {
  MachineState* const machine = LivingMachine();
  return machine->LaunchLibraryWork(std::move(work), stream, CurrentDevice(*machine));
}

cudaError_t EnqueueHeldLibraryWork(
    LibraryWork work, cudaStream_t stream,
    const std::function<void(const std::shared_ptr<SimPoint>&)>& give) {
  MachineState* const machine = LivingMachine();
  return machine->LaunchHeldLibraryWork(std::move(work), stream, CurrentDevice(*machine), give);
}

}  // namespace interp::cuda_emulation
