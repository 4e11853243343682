#include "core/device/cuda/cuda_stream.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/device/cuda/cuda_device.h"
#include "core/device/cuda/cuda_error.h"
#include "core/device/cuda/current_device.h"
#include "core/device/cuda/host_writes.h"

namespace interp::cuda {
namespace {

// Calls `copy` for pieces of `bytes` bytes that staging buffers hold.
absl::Status ForEachPiece(size_t bytes,
                          absl::FunctionRef<absl::Status(size_t offset, size_t size)> copy) {
  for (size_t offset = 0; offset < bytes; offset += StagingBuffers::kMaxBytes) {
    INTERP_RETURN_IF_ERROR(copy(offset, std::min(bytes - offset, StagingBuffers::kMaxBytes)));
  }
  return absl::OkStatus();
}

// Work that a thread enqueues on a stream within other work of it, such as the copy that a kernel
// of memcpy_h2d is: the trace has the inner one, whose kind and bytes are exact, and not the outer
// one. Thread-safety: lives on one thread.
class NestedWork {
 public:
  explicit NestedWork(const CudaStream& stream) : stream_(stream) { innermost_ = this; }
  ~NestedWork() { innermost_ = outer_; }
  NestedWork(const NestedWork&) = delete;
  NestedWork& operator=(const NestedWork&) = delete;

  // Whether work within this one is in the trace.
  bool traced_within() const { return traced_within_; }
  // This work is in the trace, or work within it.
  void NoteTraced() const {
    if (outer_ != nullptr && &outer_->stream_ == &stream_) outer_->traced_within_ = true;
  }

 private:
  static thread_local NestedWork* innermost_;

  const CudaStream& stream_;
  NestedWork* const outer_ = innermost_;
  bool traced_within_ = false;
};

thread_local NestedWork* NestedWork::innermost_ = nullptr;

}  // namespace

cudaStream_t HandleOf(const Stream& stream) {
  return static_cast<const CudaStream&>(stream).handle();
}

absl::Status UploadNow(Stream& stream, void* device, const void* host, size_t bytes) {
  return static_cast<CudaStream&>(stream).UploadNow(device, host, bytes);
}

bool IsCaptured(const Stream& stream) { return static_cast<const CudaStream&>(stream).captures(); }

absl::StatusOr<bool> CudaEvent::SynchronizeUntil(std::chrono::steady_clock::time_point deadline) {
  using std::chrono::steady_clock;
  bool done = true;
  const absl::Status status = device_.With([&]() -> absl::Status {
    if (!recorded()) return absl::OkStatus();
    if (deadline == steady_clock::time_point::max()) {
      return ToStatus(cudaEventSynchronize(event_), "cannot wait for an event");
    }
    // CUDA has no wait with a deadline.
    std::chrono::microseconds pause(10);
    for (;;) {
      const cudaError_t error = QueryEvent(event_);
      if (error != cudaErrorNotReady) return ToStatus(error, "cannot wait for an event");
      const steady_clock::time_point now = steady_clock::now();
      done = now < deadline;
      if (!done) return absl::OkStatus();
      std::this_thread::sleep_for(std::min<steady_clock::duration>(pause, deadline - now));
      pause = std::min(pause * 2, std::chrono::microseconds(500));
    }
  });
  INTERP_RETURN_IF_ERROR(status);
  return done;
}

bool CudaEvent::Passed() {
  if (!recorded()) return true;
  const CurrentDevice current(device_.index());
  return QueryEvent(event_) == cudaSuccess;
}

CudaStream::~CudaStream() {
  const CurrentDevice current(device_.index());
  ToStatus(cudaStreamSynchronize(handle_), "cannot wait for a stream").IgnoreError();
  device_.Close(*this);
  ToStatus(cudaStreamDestroy(handle_), "cannot destroy a stream").IgnoreError();
}

absl::Status CudaStream::Enqueue(WorkKind kind, const Work& work,
                                 absl::FunctionRef<absl::Status()> enqueue) {
  return device_.With([&] {
    const cudaEvent_t start = captures_ ? nullptr : device_.trace_.Begin(handle_).value_or(nullptr);
    const NestedWork nested(*this);
    const absl::Status status = enqueue();
    if (start == nullptr) return status;
    if (nested.traced_within()) {
      device_.trace_.Drop(start);
    } else {
      device_.trace_.End(start, handle_,
                         {.stream = index_, .tag = work.tag, .kind = kind, .bytes = work.bytes});
    }
    nested.NoteTraced();
    return status;
  });
}

absl::Status CudaStream::NotCaptured(absl::string_view what) const {
  if (!captures_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(what, " cannot be captured in a graph"));
}

absl::Status CudaStream::CopyToDevice(void* device, const void* host, BufferRef host_buffer,
                                      size_t bytes, const Work& work) {
  INTERP_RETURN_IF_ERROR(NotCaptured("a copy of host memory"));
  Work copy = work;
  copy.bytes = static_cast<int64_t>(bytes);
  return Enqueue(WorkKind::kHostToDevice, copy,
                 [&] { return Upload(device, host, host_buffer, bytes); });
}

absl::Status CudaStream::UploadNow(void* device, const void* host, size_t bytes) {
  INTERP_RETURN_IF_ERROR(NotCaptured("a copy of host memory"));
  return Upload(device, host, /*buffer=*/{}, bytes);
}

absl::Status CudaStream::Upload(void* device, const void* host, const BufferRef& buffer,
                                size_t bytes) {
  return ForEachPiece(bytes, [&](size_t offset, size_t size) {
    return UploadPiece(static_cast<char*>(device) + offset, static_cast<const char*>(host) + offset,
                       buffer, size);
  });
}

absl::Status CudaStream::UploadPiece(char* device, const char* host, const BufferRef& buffer,
                                     size_t bytes) {
  INTERP_ASSIGN_OR_RETURN(const StagingBuffer staging, device_.staging_.Take(bytes, handle_));
  absl::Status enqueued;
  if (buffer && HostWrites::All().Pending(buffer.get())) {
    enqueued = host_copies_.Enqueue(
        {.to = staging.data, .from = host, .bytes = bytes, .buffer = buffer}, handle_);
  } else {
    std::memcpy(staging.data, host, bytes);
  }
  if (enqueued.ok()) {
    enqueued =
        ToStatus(cudaMemcpyAsync(device, staging.data, bytes, cudaMemcpyHostToDevice, handle_),
                 "cannot copy to the device");
  }
  // Whatever was enqueued may still use the buffer.
  enqueued.Update(device_.staging_.GiveAfter(staging, handle_));
  return enqueued;
}

absl::Status CudaStream::CopyToHost(void* host, BufferRef host_buffer, const void* device,
                                    size_t bytes, const Work& work) {
  INTERP_RETURN_IF_ERROR(NotCaptured("a copy to host memory"));
  Work copy = work;
  copy.bytes = static_cast<int64_t>(bytes);
  return Enqueue(WorkKind::kDeviceToHost, copy, [&] {
    return ForEachPiece(bytes, [&](size_t offset, size_t size) {
      return DownloadPiece(static_cast<char*>(host) + offset, host_buffer,
                           static_cast<const char*>(device) + offset, size);
    });
  });
}

absl::Status CudaStream::DownloadPiece(char* host, const BufferRef& buffer, const char* device,
                                       size_t bytes) {
  INTERP_ASSIGN_OR_RETURN(const StagingBuffer staging, device_.staging_.Take(bytes, handle_));
  absl::Status enqueued =
      ToStatus(cudaMemcpyAsync(staging.data, device, bytes, cudaMemcpyDeviceToHost, handle_),
               "cannot copy to the host");
  if (!enqueued.ok()) {
    device_.staging_.Give(staging);
    return enqueued;
  }
  return host_copies_.Enqueue(
      {.to = host, .from = staging.data, .bytes = bytes, .buffer = buffer, .staging = staging},
      handle_);
}

absl::Status CudaStream::CopyOnDevice(void* to, const void* from, size_t bytes, const Work& work) {
  if (bytes == 0) return device_.status();
  Work copy = work;
  copy.bytes = static_cast<int64_t>(bytes);
  return Enqueue(WorkKind::kDeviceToDevice, copy, [&] {
    return ToStatus(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, handle_),
                    "cannot copy on the device");
  });
}

absl::Status CudaStream::CopyFromPeer(void* to, const void* from, Place peer, size_t bytes,
                                      const Work& work) {
  INTERP_RETURN_IF_ERROR(NotCaptured("a copy of memory of another GPU"));
  if (bytes == 0) return device_.status();
  Work copy = work;
  copy.bytes = static_cast<int64_t>(bytes);
  return Enqueue(WorkKind::kPeerToPeer, copy, [&] {
    device_.OpenPeer(peer.index);
    return ToStatus(cudaMemcpyPeerAsync(to, device_.index(), from, peer.index, bytes, handle_),
                    "cannot copy from another GPU");
  });
}

absl::Status CudaStream::Fill(void* device, uint8_t value, size_t bytes) {
  if (bytes == 0) return device_.status();
  return device_.With([&] {
    return ToStatus(cudaMemsetAsync(device, value, bytes, handle_), "cannot fill memory");
  });
}

absl::Status CudaStream::EnqueueKernel(const Work& work,
                                       absl::FunctionRef<absl::Status()> enqueue) {
  return Enqueue(WorkKind::kKernel, work, enqueue);
}

// Relaxed: what other threads do meanwhile is theirs, and pools may grow.
absl::Status CudaStream::BeginCapture() {
  INTERP_RETURN_IF_ERROR(NotCaptured("a capture"));
  if (device_.gate_.Captures()) {
    return absl::FailedPreconditionError("a thread captures one stream of a device at a time");
  }
  device_.gate_.BeginCapture();
  const absl::Status begun = device_.With([&] {
    return ToStatus(cudaStreamBeginCapture(handle_, cudaStreamCaptureModeRelaxed),
                    "cannot capture a stream");
  });
  captures_ = begun.ok();
  if (!begun.ok()) device_.gate_.EndCapture();
  return begun;
}

absl::StatusOr<std::unique_ptr<WorkGraph>> CudaStream::EndCapture() {
  if (!captures_.exchange(false)) return absl::FailedPreconditionError("no capture to end");
  // CUDA needs no current device for it, and the stream is not to stay captured.
  cudaGraph_t graph = nullptr;
  const absl::Status ended =
      ToStatus(cudaStreamEndCapture(handle_, &graph), "cannot end a capture");
  device_.gate_.EndCapture();
  cudaGraphExec_t runnable = nullptr;
  const absl::Status made = device_.With([&] {
    if (!ended.ok()) return ended;
    return ToStatus(cudaGraphInstantiate(&runnable, graph, /*flags=*/0), "cannot make a graph");
  });
  if (graph != nullptr) {
    ToStatus(cudaGraphDestroy(graph), "cannot destroy a graph").IgnoreError();
  }
  INTERP_RETURN_IF_ERROR(made);
  return std::make_unique<CudaGraph>(*this, runnable);
}

CudaGraph::~CudaGraph() {
  const CurrentDevice current(stream_.device_.index());
  ToStatus(cudaStreamSynchronize(stream_.handle()), "cannot wait for a stream").IgnoreError();
  ToStatus(cudaGraphExecDestroy(graph_), "cannot destroy a graph").IgnoreError();
}

absl::Status CudaGraph::Enqueue(const Work& work) {
  return stream_.Enqueue(WorkKind::kKernel, work, [&] {
    return ToStatus(cudaGraphLaunch(graph_, stream_.handle()), "cannot launch a graph");
  });
}

// CUDA needs no current device to wait for a stream or an event, so one that cannot be made current
// is no reason to leave order alone.
absl::Status CudaStream::RecordOwn(DeviceEvent& event) {
  const auto pass = device_.gate_.Pass();
  INTERP_RETURN_IF_ERROR(NotCaptured("an event"));
  auto& own = static_cast<CudaEvent&>(event);
  const absl::Status recorded = device_.With(
      [&] { return ToStatus(cudaEventRecord(own.handle(), handle_), "cannot record an event"); });
  if (recorded.ok()) {
    own.NoteRecord(true);
    return recorded;
  }
  // Order is kept at all costs: what is done is behind everybody.
  const absl::Status waited = ToStatus(cudaStreamSynchronize(handle_), "cannot wait for a stream");
  own.NoteRecord(false);
  return waited.ok() ? device_.status() : device_.With([&] { return waited; });
}

absl::Status CudaStream::WaitOwn(const DeviceEvent& event) {
  INTERP_RETURN_IF_ERROR(NotCaptured("a wait for an event"));
  const auto& other = static_cast<const CudaEvent&>(event);
  const absl::Status waits = device_.With([&] {
    if (!other.recorded()) return absl::OkStatus();
    return ToStatus(cudaStreamWaitEvent(handle_, other.handle(), 0),
                    "cannot make a stream wait for an event");
  });
  if (waits.ok() || !other.recorded()) return device_.status();
  const absl::Status waited =
      ToStatus(cudaEventSynchronize(other.handle()), "cannot wait for an event");
  return waited.ok() ? device_.status() : device_.With([&] { return waited; });
}

absl::Status CudaStream::Synchronize() {
  INTERP_RETURN_IF_ERROR(NotCaptured("waiting for the stream"));
  return device_.With(
      [&] { return ToStatus(cudaStreamSynchronize(handle_), "cannot wait for a stream"); });
}

}  // namespace interp::cuda
