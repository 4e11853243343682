// The calls of cuda_runtime.h and cuda.h, on the machine that lives. Long because there is one for
// each.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <string_view>

#include "tests/cuda_emulation/machine.h"

namespace interp::cuda_emulation {
namespace {

constexpr int kVersion = 13000;  // of driver and runtime: 13.0
// What the emulated GPUs say they are.
constexpr int kMajor = 9;
constexpr int kMinor = 0;
constexpr int kMultiprocessors = 4;

// What CUDA keeps for each thread of the host.
struct HostThread {
  uint64_t machine = 0;  // whose device is current
  int device = 0;
  cudaError_t last_error = cudaSuccess;
};

HostThread& ThisThread(const MachineState& machine) {
  thread_local HostThread host_thread;
  if (host_thread.machine != machine.serial()) host_thread = {.machine = machine.serial()};
  return host_thread;
}

// Whether the call needs a device that works.
enum class Needs : int8_t { kDevice, kNothing };

// Does `act(machine, current device)` for the call `name`, unless there is a reason not to.
template <typename Act>
cudaError_t Call(const char* name, Needs needs, Act act) {
  MachineState* const machine = LivingMachine();
  if (machine == nullptr) return cudaErrorInsufficientDriver;
  HostThread& host_thread = ThisThread(*machine);
  const bool on_device = needs == Needs::kDevice;
  if (on_device && host_thread.device >= machine->num_devices()) return cudaErrorNoDevice;
  cudaError_t error = on_device ? machine->MakeContext(host_thread.device) : cudaSuccess;
  if (error == cudaSuccess) error = machine->Enter(name, on_device ? host_thread.device : -1);
  if (error == cudaSuccess) error = act(*machine, host_thread.device);
  if (error != cudaSuccess) host_thread.last_error = error;
  return error;
}

template <typename Act>
cudaError_t Call(const char* name, Act act) {
  return Call(name, Needs::kDevice, act);
}

bool Valid(const MachineState& machine, int device) {
  return device >= 0 && device < machine.num_devices();
}

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrorTexts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

ErrorText TextOf(cudaError_t error) {
  for (const ErrorText& text : kErrorTexts) {
    if (text.error == error) return text;
  }
  return {error, "unrecognized error code", "unrecognized error code"};
}

}  // namespace

int CurrentDevice(const MachineState& machine) { return ThisThread(machine).device; }

cudaError_t LaunchGrid(const GridLaunch& launch, cudaStream_t stream) {
  return Call("cudaLaunchKernel", [&](MachineState& machine, int current) {
    return machine.Launch(launch, stream, current);
  });
}

}  // namespace interp::cuda_emulation

using interp::cuda_emulation::Call;
using interp::cuda_emulation::LivingMachine;
using interp::cuda_emulation::MachineState;
using interp::cuda_emulation::Needs;
using interp::cuda_emulation::ThisThread;
using interp::cuda_emulation::Valid;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return Call("cudaGetDeviceCount", Needs::kNothing, [&](MachineState& machine, int) {
    *count = machine.num_devices();
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return Call("cudaSetDevice", Needs::kNothing, [&](MachineState& machine, int) {
    if (!Valid(machine, device)) return cudaErrorInvalidDevice;
    const cudaError_t error = machine.MakeContext(device);
    if (error == cudaSuccess) ThisThread(machine).device = device;
    return error;
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  MachineState* const machine = LivingMachine();
  if (machine == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Valid(*machine, device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = machine->HasContext(device) ? 1 : 0;
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned /*version*/, unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* result) {
  return Call("cudaGetDriverEntryPointByVersion", Needs::kNothing, [&](MachineState&, int) {
    const bool found = std::string_view(symbol) == "cuDevicePrimaryCtxGetState";
    *function = found ? reinterpret_cast<void*>(&cuDevicePrimaryCtxGetState) : nullptr;
    *result = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return Call("cudaGetDevice", Needs::kNothing, [&](MachineState&, int current) {
    *device = current;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return Call("cudaGetDeviceProperties", Needs::kNothing, [&](MachineState& machine, int) {
    if (!Valid(machine, device)) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "emulated GPU");
    size_t free_bytes = 0;
    machine.MemoryInfo(device, &free_bytes, &properties->totalGlobalMem);
    properties->sharedMemPerBlock = interp::cuda_emulation::kMaxSharedBytes;
    properties->warpSize = warpSize;
    properties->maxThreadsPerBlock = interp::cuda_emulation::kMaxBlockThreads;
    properties->major = interp::cuda_emulation::kMajor;
    properties->minor = interp::cuda_emulation::kMinor;
    properties->multiProcessorCount = interp::cuda_emulation::kMultiprocessors;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return Call("cudaDeviceGetAttribute", Needs::kNothing, [&](MachineState& machine, int) {
    if (!Valid(machine, device)) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrMaxThreadsPerBlock:
        *value = interp::cuda_emulation::kMaxBlockThreads;
        return cudaSuccess;
      case cudaDevAttrMultiProcessorCount:
        *value = interp::cuda_emulation::kMultiprocessors;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMajor:
        *value = interp::cuda_emulation::kMajor;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMinor:
        *value = interp::cuda_emulation::kMinor;
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return Call("cudaDeviceGetStreamPriorityRange", [&](MachineState&, int) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return Call("cudaDeviceCanAccessPeer", Needs::kNothing, [&](MachineState& machine, int) {
    if (!Valid(machine, device) || !Valid(machine, peer)) return cudaErrorInvalidDevice;
    *can = device != peer ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned /*flags*/) {
  return Call("cudaDeviceEnablePeerAccess", [&](MachineState& machine, int current) {
    return machine.EnablePeer(current, peer);
  });
}

cudaError_t cudaDeviceSynchronize() {
  return Call("cudaDeviceSynchronize", [](MachineState& machine, int current) {
    return machine.SynchronizeDevice(current);
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = LivingMachine() == nullptr ? 0 : interp::cuda_emulation::kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = interp::cuda_emulation::kVersion;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return Call("cudaMemGetInfo", [&](MachineState& machine, int current) {
    return machine.MemoryInfo(current, free, total);
  });
}

cudaError_t cudaPeekAtLastError() {
  MachineState* const machine = LivingMachine();
  if (machine == nullptr) return cudaErrorInsufficientDriver;
  return ThisThread(*machine).last_error;
}

cudaError_t cudaGetLastError() {
  MachineState* const machine = LivingMachine();
  if (machine == nullptr) return cudaErrorInsufficientDriver;
  return std::exchange(ThisThread(*machine).last_error, cudaSuccess);
}

const char* cudaGetErrorName(cudaError_t error) {
  return interp::cuda_emulation::TextOf(error).name;
}
const char* cudaGetErrorString(cudaError_t error) {
  return interp::cuda_emulation::TextOf(error).text;
}

cudaError_t cudaMalloc(void** address, size_t bytes) {
  return Call("cudaMalloc", [&](MachineState& machine, int current) {
    return machine.Allocate(current, address, bytes);
  });
}

cudaError_t cudaFree(void* address) {
  return Call("cudaFree", [&](MachineState& machine, int) { return machine.Free(address); });
}

cudaError_t cudaMallocAsync(void** address, size_t bytes, cudaStream_t stream) {
  return Call("cudaMallocAsync", [&](MachineState& machine, int current) {
    return machine.AllocateAsync(address, bytes, stream, current);
  });
}

cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  return Call("cudaFreeAsync", [&](MachineState& machine, int current) {
    return machine.FreeAsync(address, stream, current);
  });
}

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned /*flags*/) {
  return Call("cudaHostAlloc",
              [&](MachineState& machine, int) { return machine.AllocateHost(address, bytes); });
}

cudaError_t cudaFreeHost(void* address) {
  return Call("cudaFreeHost",
              [&](MachineState& machine, int) { return machine.FreeHost(address); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return Call("cudaPointerGetAttributes", Needs::kNothing, [&](MachineState& machine, int current) {
    void* const at = const_cast<void*>(address);
    int device = current;
    if (machine.MemoryOf(address, &device) != nullptr) {
      *attributes = {cudaMemoryTypeDevice, device, at, nullptr};
    } else if (machine.Pinned(address)) {
      *attributes = {cudaMemoryTypeHost, current, at, at};
    } else {
      *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, at};
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return Call("cudaMemcpy", [&](MachineState& machine, int current) {
    const cudaError_t error = machine.Copy(to, from, bytes, kind, nullptr, current);
    return error != cudaSuccess ? error : machine.Synchronize(nullptr, current);
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return Call("cudaMemcpyAsync", [&](MachineState& machine, int current) {
    return machine.Copy(to, from, bytes, kind, stream, current);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  return Call("cudaMemcpyPeerAsync", [&](MachineState& machine, int current) {
    if (!Valid(machine, to_device) || !Valid(machine, from_device)) return cudaErrorInvalidDevice;
    return machine.Copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream, current);
  });
}

cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t stream) {
  return Call("cudaMemsetAsync", [&](MachineState& machine, int current) {
    return machine.Set(address, value, bytes, stream, current);
  });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned /*flags*/, int priority) {
  return Call("cudaStreamCreateWithPriority", [&](MachineState& machine, int current) {
    return machine.CreateStream(current, stream, priority);
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return Call("cudaStreamDestroy",
              [&](MachineState& machine, int) { return machine.DestroyStream(stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return Call("cudaStreamSynchronize", [&](MachineState& machine, int current) {
    return machine.Synchronize(stream, current);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return Call("cudaStreamQuery", [&](MachineState& machine, int current) {
    return machine.QueryStream(stream, current);
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return Call("cudaStreamWaitEvent", [&](MachineState& machine, int current) {
    return machine.Wait(stream, event, current);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return Call("cudaLaunchHostFunc", [&](MachineState& machine, int current) {
    return machine.LaunchHost(stream, function, data, current);
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return Call("cudaEventCreateWithFlags", [&](MachineState& machine, int current) {
    return machine.CreateEvent(current, event, (flags & cudaEventDisableTiming) == 0);
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return Call("cudaEventDestroy",
              [&](MachineState& machine, int) { return machine.DestroyEvent(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Call("cudaEventRecord", [&](MachineState& machine, int current) {
    return machine.Record(event, stream, current);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return Call("cudaEventQuery",
              [&](MachineState& machine, int) { return machine.QueryEvent(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return Call("cudaEventSynchronize",
              [&](MachineState& machine, int) { return machine.SynchronizeEvent(event); });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return Call("cudaEventElapsedTime",
              [&](MachineState& machine, int) { return machine.ElapsedMs(ms, start, end); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  return Call("cudaStreamBeginCapture", [&](MachineState& machine, int current) {
    return machine.BeginCapture(stream, current);
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  const cudaError_t error = Call("cudaStreamEndCapture", [&](MachineState& machine, int current) {
    return machine.EndCapture(stream, current, graph);
  });
  // It ends the capture whatever it returns.
  if (error != cudaSuccess && LivingMachine() != nullptr) {
    LivingMachine()->AbandonCapture(stream);
  }
  return error;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* runnable, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  return Call("cudaGraphInstantiate", [&](MachineState& machine, int) {
    return machine.InstantiateGraph(graph, runnable);
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return Call("cudaGraphDestroy",
              [&](MachineState& machine, int) { return machine.DestroyGraph(graph); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t runnable, cudaStream_t stream) {
  return Call("cudaGraphLaunch", [&](MachineState& machine, int current) {
    return machine.LaunchGraph(runnable, stream, current);
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t runnable) {
  return Call("cudaGraphExecDestroy",
              [&](MachineState& machine, int) { return machine.DestroyGraphExec(runnable); });
}
}
