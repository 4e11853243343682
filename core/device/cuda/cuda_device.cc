#include "core/device/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>

#include "core/base/check.h"
#include "core/device/cuda/cuda_error.h"
#include "core/device/cuda/cuda_stream.h"
#include "core/device/cuda/current_device.h"
#include "core/device/device_maker.h"

namespace interp::cuda {
namespace {

// The oldest GPUs that kernels/cuda/CMakeLists.txt builds for.
constexpr int kOldestMajor = 8;

absl::StatusOr<int> CountDevices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess || error == cudaErrorNoDevice) {
    cudaGetLastError();
    return count;
  }
  return absl::FailedPreconditionError(
      std::string(ToStatus(error, "no GPU can be used").message()));
}

absl::StatusOr<cudaDeviceProp> PropertiesOf(int index) {
  cudaDeviceProp properties;
  INTERP_RETURN_IF_ERROR(
      ToStatus(cudaGetDeviceProperties(&properties, index), "cannot ask what a GPU is"));
  return properties;
}

absl::StatusOr<std::vector<std::string>> DescribeDevices() {
  INTERP_ASSIGN_OR_RETURN(const int count, CountDevices());
  std::vector<std::string> lines;
  for (int index = 0; index < count; ++index) {
    INTERP_ASSIGN_OR_RETURN(const cudaDeviceProp properties, PropertiesOf(index));
    char gib[32];
    std::snprintf(gib, sizeof(gib), "%.1f GiB",
                  static_cast<double>(properties.totalGlobalMem) / (size_t{1} << 30));
    lines.push_back(absl::StrCat(properties.name, ", ", gib, ", compute capability ",
                                 properties.major, ".", properties.minor,
                                 properties.major < kOldestMajor ? ", too old" : ""));
  }
  return lines;
}

const bool kRegistered = [] {
  RegisterDeviceMaker(PlaceKind::kCuda, {.describe = DescribeDevices, .make = MakeCudaDevice});
  return true;
}();

// Events and pinned memory are given back while their GPU is the current one: a thread that has
// used none would make a context on GPU 0.
void Delete(CudaDevice* device) {
  std::optional<CurrentDevice> current;
  if (HasContext(device->index())) current.emplace(device->index());
  delete device;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Device>> MakeCudaDevice(int index) {
  static std::mutex mutex;
  static std::array<std::weak_ptr<Device>, kMaxDevices> devices;
  INTERP_ASSIGN_OR_RETURN(const int count, CountDevices());
  if (index < 0 || index >= std::min(count, kMaxDevices)) {
    return NotFound("there is no cuda:", index, ": the driver has ", count, " GPU",
                    count == 1 ? "" : "s");
  }
  INTERP_ASSIGN_OR_RETURN(const cudaDeviceProp properties, PropertiesOf(index));
  if (properties.major < kOldestMajor) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cuda:", index, " is a ", properties.name, " of compute capability ", properties.major, ".",
        properties.minor, ", and kernels are built for ", kOldestMajor, ".0 and later"));
  }
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Device> device = devices[index].lock();
  if (device == nullptr || !device->status().ok()) {
    device = {new CudaDevice(index, properties.totalGlobalMem), Delete};
    devices[index] = device;
  }
  return device;
}

CudaDevice::CudaDevice(int index, size_t capacity_bytes)
    : index_(index),
      start_(std::chrono::steady_clock::now()),
      capacity_bytes_(capacity_bytes),
      events_(cudaEventDisableTiming),
      staging_(events_) {}

CudaDevice::~CudaDevice() {
  INTERP_CHECK(
      std::all_of(streams_.begin(), streams_.end(), [](CudaStream* s) { return s == nullptr; }));
}

absl::Status CudaDevice::Noted(absl::Status status) {
  if (status.ok()) return status;
  const cudaError_t state = cudaStreamQuery(nullptr);
  ToStatus(state, "").IgnoreError();  // forgotten, that there is work, too
  if (state == cudaSuccess || state == cudaErrorNotReady) return status;
  if (!LosesDevice(state)) return status;
  Lose(status.message());
  return this->status();
}

absl::Status CudaDevice::With(absl::FunctionRef<absl::Status()> call) {
  INTERP_RETURN_IF_ERROR(status());
  const CurrentDevice current(index_);
  if (current.error() != cudaSuccess) {
    return Noted(ToStatus(current.error(), "cannot make a GPU the current one"));
  }
  return Noted(call());
}

void CudaDevice::OpenPeer(int peer) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!peers_.insert(peer).second) return;
  int can = 0;
  const cudaError_t asked = cudaDeviceCanAccessPeer(&can, index_, peer);
  ToStatus(asked, "cannot ask for access to another GPU").IgnoreError();
  if (asked != cudaSuccess || can == 0) return;
  ToStatus(cudaDeviceEnablePeerAccess(peer, /*flags=*/0), "cannot have access to another GPU")
      .IgnoreError();
}

absl::StatusOr<std::unique_ptr<Stream>> CudaDevice::CreateStream(const std::string& name,
                                                                 int priority) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto place = std::find(streams_.begin(), streams_.end(), nullptr);
  const auto index = static_cast<int>(place - streams_.begin());
  if (index == kMaxStreams) {
    return ResourceExhausted("cannot create stream '", name, "': ", Name(this->place()), " has ",
                             kMaxStreams, " streams, its most");
  }
  cudaStream_t handle = nullptr;
  INTERP_RETURN_IF_ERROR(With([&] {
    int least = 0;
    int greatest = 0;
    INTERP_RETURN_IF_ERROR(ToStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                                    "cannot ask for priorities of streams"));
    return ToStatus(cudaStreamCreateWithPriority(&handle, cudaStreamNonBlocking,
                                                 std::clamp(priority, greatest, least)),
                    absl::StrCat("cannot create stream '", name, "'"));
  }));
  auto stream = std::make_unique<CudaStream>(*this, name, index, handle);
  if (place == streams_.end()) {
    streams_.push_back(stream.get());
  } else {
    *place = stream.get();
  }
  return stream;
}

void CudaDevice::Close(const CudaStream& stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  streams_[stream.index()] = nullptr;
}

absl::StatusOr<std::unique_ptr<DeviceEvent>> CudaDevice::CreateEvent() {
  cudaEvent_t event = nullptr;
  INTERP_RETURN_IF_ERROR(With([&]() -> absl::Status {
    INTERP_ASSIGN_OR_RETURN(event, events_.Take());
    return absl::OkStatus();
  }));
  return std::make_unique<CudaEvent>(*this, event);
}

absl::StatusOr<void*> CudaDevice::AllocateRaw(size_t bytes) {
  void* address = nullptr;
  INTERP_RETURN_IF_ERROR(With([&] {
    return ToStatus(cudaMalloc(&address, bytes),
                    absl::StrCat("cannot allocate ", bytes, " bytes on ", Name(place())));
  }));
  return address;
}

void CudaDevice::FreeRaw(void* address, size_t /*bytes*/) {
  const CurrentDevice current(index_);
  ToStatus(cudaFree(address), "cannot free memory").IgnoreError();
}

absl::Status CudaDevice::RecordAll(std::vector<cudaEvent_t>& ends) {
  const auto pass = gate_.Pass();
  std::lock_guard<std::mutex> lock(mutex_);
  for (const CudaStream* const stream : streams_) {
    if (stream == nullptr) continue;
    INTERP_RETURN_IF_ERROR(stream->NotCaptured("waiting for the device"));
    INTERP_ASSIGN_OR_RETURN(const cudaEvent_t end, events_.Take());
    ends.push_back(end);
    INTERP_RETURN_IF_ERROR(
        ToStatus(cudaEventRecord(end, stream->handle()), "cannot record an event"));
  }
  return absl::OkStatus();
}

absl::Status CudaDevice::Synchronize() {
  return With([&] {
    std::vector<cudaEvent_t> ends;
    absl::Status done = RecordAll(ends);
    for (const cudaEvent_t end : ends) {
      if (done.ok()) done = ToStatus(cudaEventSynchronize(end), "cannot wait for a stream");
      events_.Give(end);
    }
    return done;
  });
}

int64_t CudaDevice::NowNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count();
}

void CudaDevice::StartTrace() {
  With([&] { return trace_.Start(nullptr); }).IgnoreError();
}

std::vector<DeviceSpan> CudaDevice::StopTrace() {
  Synchronize().IgnoreError();
  const CurrentDevice current(index_);
  return trace_.Stop();
}

}  // namespace interp::cuda
