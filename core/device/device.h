// Device: an accelerator with its own memory, whose work runs in streams beside the host.
//
// The host enqueues work and goes on. A stream runs its work one after another; streams run beside
// each other, ordered only by events. Memory of a device is touched by its streams alone: an
// address that AllocateRaw returned means nothing to the host.
//
// The model is CUDA's (streams and events of the CUDA C++ Programming Guide, section 3.2.8), so
// that whatever a plan does for one device it does for all.
//
// Long because it is all that a kind of device has to bring.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/buffer.h"
#include "core/device/work.h"
#include "core/place.h"
#include "core/status.h"

namespace interp {

class HostKernelLauncher;

// Whether they are two devices of one kind, which copy from each other (Stream::CopyFromPeer).
inline bool ArePeers(Place a, Place b) { return a.kind == b.kind && a != b && !a.on_host(); }

enum class WorkKind : int8_t {
  kKernel,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,  // within one device
  kPeerToPeer,      // from another device
  kFill
};
absl::string_view Name(WorkKind kind);

// A point in a stream's work. May be recorded any number of times: waits see the latest record that
// was enqueued before them, and end at once when there is none.
// Thread-safety: as its device's.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Of the device that made it.
  virtual Place place() const = 0;
  // Blocks the calling thread until the work before the record is done. Errors: the device is lost,
  // and that work over.
  absl::Status Synchronize() {
    return SynchronizeUntil(std::chrono::steady_clock::time_point::max()).status();
  }
  // The same until `deadline` at the latest; false when that came first.
  virtual absl::StatusOr<bool> SynchronizeUntil(std::chrono::steady_clock::time_point deadline) = 0;
  // Whether the device's clock, as the host sees it, is past the record. Work that is to come after
  // it has to wait for it nevertheless; this only tells whether it would lose time.
  virtual bool Passed() = 0;
};

// Work of a stream that was captured once and is enqueued as a whole, any number of times (CUDA C++
// Programming Guide, section "CUDA Graphs"): the same kernels on the same addresses with the same
// arguments.
class WorkGraph {
 public:
  virtual ~WorkGraph() = default;  // waits for its work
  // On the stream that it was captured on. Errors: the device's.
  virtual absl::Status Enqueue(const Work& work) = 0;
};

// Thread-safety: all methods from any thread; the order of calls is the order of work.
// Errors: every call returns Device::status() once the device is lost. Record, Wait and Synchronize
// have no other, but for events of another device and while the stream is captured.
class Stream {
 public:
  virtual ~Stream() = default;  // waits for its work
  virtual const std::string& name() const = 0;
  // Dense and small among the live streams of one device, below kMaxStreams.
  virtual int index() const = 0;
  virtual Place place() const = 0;

  // Copies of `bytes` bytes. Host memory is kept alive by the buffer until the copy is done.
  // Errors: Internal when the range leaves the device's memory.
  virtual absl::Status CopyToDevice(void* device, const void* host, BufferRef host_buffer,
                                    size_t bytes, const Work& work) = 0;
  virtual absl::Status CopyToHost(void* host, BufferRef host_buffer, const void* device,
                                  size_t bytes, const Work& work) = 0;
  // REQUIRES: the ranges do not overlap. Simulated devices refuse it, others may give anything.
  virtual absl::Status CopyOnDevice(void* to, const void* from, size_t bytes, const Work& work) = 0;
  // From memory of `peer`, another device of this kind that lives until the copy is done: the host
  // takes no part. The stream must be behind the work that wrote the memory. StreamPool::RecordUse
  // of a pool of `peer` is to be called after this: it tells that device of the copy.
  virtual absl::Status CopyFromPeer(void* to, const void* from, Place peer, size_t bytes,
                                    const Work& work) = 0;
  // Sets every byte; free of cost in a device's model of time (what poisons freed memory).
  virtual absl::Status Fill(void* device, uint8_t value, size_t bytes) = 0;
  // Calls `enqueue`, which enqueues a kernel on this stream by the device's own calls: with the
  // device as the thread's current one, and in its trace. Its error; the device's when it is lost.
  virtual absl::Status EnqueueKernel(const Work& work, absl::FunctionRef<absl::Status()> enqueue) {
    static_cast<void>(work);
    return enqueue();
  }
  // What runs kernels of the host on this device; null where only kernels of its own run.
  virtual HostKernelLauncher* host_kernels() { return nullptr; }

  // From here to EndCapture, kernels, copies on the device and fills are not enqueued but become
  // the work of a graph. Everything else fails meanwhile: copies of memory of the host or of
  // another device, events, waits.
  // Unimplemented where a device has no graphs. REQUIRES: one thread enqueues until EndCapture.
  virtual absl::Status BeginCapture();
  // Ends it whatever it returns. Errors: what was captured cannot be a graph.
  virtual absl::StatusOr<std::unique_ptr<WorkGraph>> EndCapture();

  // An event of the stream's device.
  virtual absl::StatusOr<std::unique_ptr<DeviceEvent>> CreateEvent() = 0;
  // `event` stands for the work so far. InvalidArgument for an event of another device.
  absl::Status Record(DeviceEvent& event);
  // Later work of this stream starts after what `event` stands for now. The host does not wait, but
  // for an event of another kind of device, which no stream can wait for.
  absl::Status Wait(DeviceEvent& event);
  // Blocks the calling thread until all work enqueued so far is done.
  virtual absl::Status Synchronize() = 0;

 protected:
  // The event is of this kind of device.
  virtual absl::Status RecordOwn(DeviceEvent& event) = 0;
  virtual absl::Status WaitOwn(const DeviceEvent& event) = 0;
};

// An event that stands for the work of `stream` so far. Errors: its device is lost, or has no more
// events.
absl::StatusOr<std::unique_ptr<DeviceEvent>> RecordNow(Stream& stream);

inline constexpr int kMaxStreams = 64;

// What ran when, on the device's own clock (nanoseconds since StartTrace).
struct DeviceSpan {
  int32_t stream = 0;  // Stream::index
  int32_t tag = -1;
  WorkKind kind = WorkKind::kKernel;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t bytes = 0;
};

// Thread-safety: all methods from any thread. Outlives its streams, events and memory.
class Device {
 public:
  virtual ~Device() = default;
  virtual Place place() const = 0;

  // OK until the device is lost, as a real one is after an error that its driver cannot recover
  // from. From then on it is Unavailable with the cause: work in flight reports it instead of
  // running, what is enqueued returns it, waits end and return it. Memory and streams may still be
  // given back. Other devices go on.
  absl::Status status() const;

  // Of streams with work that may start, the one of lowest `priority` is preferred; a hint, which
  // orders nothing. ResourceExhausted beyond kMaxStreams.
  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream(const std::string& name,
                                                               int priority) = 0;
  // A stream that a device's model of time leaves out: its work takes no time, and waiting for its
  // events orders but does not delay. For checks that are not to change what they check.
  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateUntimedStream(const std::string& name) {
    return CreateStream(name, /*priority=*/0);
  }
  virtual absl::StatusOr<std::unique_ptr<DeviceEvent>> CreateEvent() = 0;

  // What the device's libraries expect addresses of memory to be aligned to: a power of two, at
  // least kBufferAlignment and at most 512.
  virtual size_t alignment() const { return kBufferAlignment; }
  // Memory at the source; see StreamPool for what a run uses. Addresses are aligned to alignment().
  // FreeRaw: REQUIRES that no work uses it any more.
  virtual absl::StatusOr<void*> AllocateRaw(size_t bytes) = 0;
  virtual void FreeRaw(void* address, size_t bytes) = 0;
  virtual size_t capacity_bytes() const = 0;

  // Blocks until the work of all streams is done. Errors: the device is lost.
  virtual absl::Status Synchronize() = 0;

  // The device's clock, simulated or real, as the host sees it: what the host has waited for lies
  // before it. Nanoseconds since the device was made.
  virtual int64_t NowNs() = 0;
  virtual void StartTrace() = 0;
  // The kernels and copies enqueued since StartTrace, by start. Synchronises.
  virtual std::vector<DeviceSpan> StopTrace() = 0;

  // Makes what `user` (a core) enqueues on `streams` from now on come after what others have
  // enqueued so far: users know the events of their own streams only. The host does not wait. The
  // streams, those of other devices that copy from this one among them, must live until EndUse.
  // Errors: the device is lost, or has no more events.
  absl::Status BeginUse(const void* user, absl::Span<Stream* const> streams);
  void EndUse(const void* user);

 protected:
  // The device is lost. The first cause is kept.
  void Lose(absl::string_view cause);

 private:
  std::atomic<bool> lost_{false};  // set after loss_
  mutable std::mutex mutex_;       // guards loss_
  absl::Status loss_;
  std::mutex use_mutex_;        // guards what follows
  const void* user_ = nullptr;  // the last one
  absl::flat_hash_map<const void*, std::vector<Stream*>> streams_of_users_;
};

}  // namespace interp
