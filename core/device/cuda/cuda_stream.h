// The device, streams and events of a GPU; see cuda_device.h.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/device/cuda/capture_gate.h"
#include "core/device/cuda/cuda_trace.h"
#include "core/device/cuda/event_pool.h"
#include "core/device/cuda/host_copies.h"
#include "core/device/cuda/staging_buffers.h"
#include "core/device/device.h"

namespace interp::cuda {

class CudaStream;

class CudaDevice final : public Device {
 public:
  // Made by MakeCudaDevice, once for each GPU.
  CudaDevice(int index, size_t capacity_bytes);
  ~CudaDevice() override;

  Place place() const override { return {PlaceKind::kCuda, static_cast<int8_t>(index_)}; }
  int index() const { return index_; }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(const std::string& name,
                                                       int priority) override;
  absl::StatusOr<std::unique_ptr<DeviceEvent>> CreateEvent() override;
  absl::StatusOr<void*> AllocateRaw(size_t bytes) override;
  void FreeRaw(void* address, size_t bytes) override;
  // That of cudaMalloc. cuBLASLt refuses a workspace that is aligned to less.
  size_t alignment() const override { return 256; }
  size_t capacity_bytes() const override { return capacity_bytes_; }
  absl::Status Synchronize() override;
  int64_t NowNs() override;
  void StartTrace() override;
  std::vector<DeviceSpan> StopTrace() override;

 private:
  friend class CudaStream;
  friend class CudaEvent;

  // `status`, or the loss of the device where that is why. The device is the current one.
  absl::Status Noted(absl::Status status);
  // Does `call` with the device as the current one.
  absl::Status With(absl::FunctionRef<absl::Status()> call);
  // An event that stands for the work of all streams; they are taken under the lock.
  absl::Status RecordAll(std::vector<cudaEvent_t>& ends);
  // Lets copies from the GPU `peer` to this one go without the host, where the machine allows it;
  // else the driver takes them over the host. Asked once, whatever comes of it. The device is the
  // current one.
  void OpenPeer(int peer);
  void Close(const CudaStream& stream);

  const int index_;
  const std::chrono::steady_clock::time_point start_;
  const size_t capacity_bytes_;
  EventPool events_;
  StagingBuffers staging_;
  CudaTrace trace_;
  CaptureGate gate_;                  // before mutex_
  std::mutex mutex_;                  // guards what follows
  std::vector<CudaStream*> streams_;  // by index; null where none is
  std::set<int> peers_;               // that OpenPeer has seen
};

class CudaEvent final : public DeviceEvent {
 public:
  CudaEvent(CudaDevice& device, cudaEvent_t event) : device_(device), event_(event) {}
  ~CudaEvent() override { device_.events_.Give(event_); }

  Place place() const override { return device_.place(); }
  absl::StatusOr<bool> SynchronizeUntil(std::chrono::steady_clock::time_point deadline) override;
  bool Passed() override;

  cudaEvent_t handle() const { return event_; }
  // In this life, with work before it that may not be done.
  bool recorded() const { return recorded_.load(std::memory_order_acquire); }
  void NoteRecord(bool recorded) { recorded_.store(recorded, std::memory_order_release); }

 private:
  CudaDevice& device_;
  const cudaEvent_t event_;
  std::atomic<bool> recorded_{false};
};

class CudaStream final : public Stream {
 public:
  CudaStream(CudaDevice& device, std::string name, int index, cudaStream_t handle)
      : device_(device),
        name_(std::move(name)),
        index_(index),
        handle_(handle),
        host_copies_(device.staging_) {}
  ~CudaStream() override;

  const std::string& name() const override { return name_; }
  int index() const override { return index_; }
  Place place() const override { return device_.place(); }
  cudaStream_t handle() const { return handle_; }

  // Those of cuda_device.h.
  absl::Status UploadNow(void* device, const void* host, size_t bytes);
  bool captures() const { return captures_; }

  absl::Status CopyToDevice(void* device, const void* host, BufferRef host_buffer, size_t bytes,
                            const Work& work) override;
  absl::Status CopyToHost(void* host, BufferRef host_buffer, const void* device, size_t bytes,
                          const Work& work) override;
  absl::Status CopyOnDevice(void* to, const void* from, size_t bytes, const Work& work) override;
  absl::Status CopyFromPeer(void* to, const void* from, Place peer, size_t bytes,
                            const Work& work) override;
  absl::Status Fill(void* device, uint8_t value, size_t bytes) override;
  absl::Status EnqueueKernel(const Work& work, absl::FunctionRef<absl::Status()> enqueue) override;
  absl::StatusOr<std::unique_ptr<DeviceEvent>> CreateEvent() override {
    return device_.CreateEvent();
  }
  absl::Status BeginCapture() override;
  absl::StatusOr<std::unique_ptr<WorkGraph>> EndCapture() override;
  absl::Status Synchronize() override;

 private:
  friend class CudaDevice;
  friend class CudaGraph;

  absl::Status RecordOwn(DeviceEvent& event) override;
  absl::Status WaitOwn(const DeviceEvent& event) override;
  absl::Status Enqueue(WorkKind kind, const Work& work, absl::FunctionRef<absl::Status()> enqueue);
  // An error while the stream is captured, for what no graph may hold.
  absl::Status NotCaptured(absl::string_view what) const;
  absl::Status Upload(void* device, const void* host, const BufferRef& buffer, size_t bytes);
  absl::Status UploadPiece(char* device, const char* host, const BufferRef& buffer, size_t bytes);
  absl::Status DownloadPiece(char* host, const BufferRef& buffer, const char* device, size_t bytes);

  CudaDevice& device_;
  const std::string name_;
  const int index_;
  const cudaStream_t handle_;
  std::atomic<bool> captures_{false};
  HostCopies host_copies_;
};

class CudaGraph final : public WorkGraph {
 public:
  CudaGraph(CudaStream& stream, cudaGraphExec_t graph) : stream_(stream), graph_(graph) {}
  ~CudaGraph() override;

  absl::Status Enqueue(const Work& work) override;

 private:
  CudaStream& stream_;
  const cudaGraphExec_t graph_;
};

}  // namespace interp::cuda
