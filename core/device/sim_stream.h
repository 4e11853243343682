// The device, streams and events of the simulated accelerator; see sim_device.h for what it is.
//
// A SimDevice is memory, a clock and an executor. Enqueuing takes the device's lock, in which the
// clock advances and the executor gets the task, so that both see one order of work.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/device/host_kernels.h"
#include "core/device/sim_clock.h"
#include "core/device/sim_device.h"
#include "core/device/sim_executor.h"
#include "core/device/sim_memory.h"

namespace interp {

class SimDevice final : public Device {
 public:
  SimDevice(const SimOptions& options, std::unique_ptr<SimMemory> memory);
  ~SimDevice() override;

  Place place() const override { return place_; }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(const std::string& name,
                                                       int priority) override;
  absl::StatusOr<std::unique_ptr<Stream>> CreateUntimedStream(const std::string& name) override;
  absl::StatusOr<std::unique_ptr<DeviceEvent>> CreateEvent() override;
  absl::StatusOr<void*> AllocateRaw(size_t bytes) override;
  void FreeRaw(void* address, size_t bytes) override { memory_->Free(address, bytes); }
  size_t capacity_bytes() const override { return memory_->capacity_bytes(); }
  absl::Status Synchronize() override;
  int64_t NowNs() override;
  void StartTrace() override;
  std::vector<DeviceSpan> StopTrace() override;

 private:
  friend class SimStream;
  friend class SimEvent;

  absl::StatusOr<std::unique_ptr<Stream>> OpenStream(const std::string& name, int priority,
                                                     bool timed);
  void CloseStream(int stream);
  // Enqueues a kernel or a copy, or what loses the device in its place.
  absl::Status Launch(int stream, WorkKind kind, const Work& work,
                      std::function<absl::Status()> run);
  // What a stream enqueues without cost.
  absl::Status Push(int stream, SimTask task);
  // Enqueues a record. REQUIRES: mutex_ is held.
  std::shared_ptr<SimPoint> PushRecord(int stream);
  // Blocks this thread, and moves the host's clock; false when the deadline came first.
  bool HostWait(SimPoint& point, SimDeadline deadline = SimDeadline::max());

  const Place place_;
  const int64_t lose_at_;
  const std::unique_ptr<SimMemory> memory_;
  const std::shared_ptr<SimExecutor> executor_;
  std::mutex mutex_;  // guards what follows, and the order of work
  SimClock clock_;
  int64_t num_launched_ = 0;
  uint64_t open_streams_ = 0;  // bits
  uint64_t used_indices_ = 0;  // bits; also of streams that are closing
};

class SimEvent final : public DeviceEvent {
 public:
  explicit SimEvent(SimDevice& device) : device_(device) {}

  Place place() const override { return device_.place(); }
  absl::StatusOr<bool> SynchronizeUntil(std::chrono::steady_clock::time_point deadline) override;
  bool Passed() override;
  void Set(std::shared_ptr<SimPoint> point);
  // The latest record; null when there is none.
  std::shared_ptr<SimPoint> latest() const;

 private:
  SimDevice& device_;
  mutable std::mutex mutex_;  // guards latest_
  std::shared_ptr<SimPoint> latest_;
};

class SimStream final : public Stream, public HostKernelLauncher {
 public:
  SimStream(SimDevice& device, std::string name, int index)
      : device_(device), name_(std::move(name)), index_(index) {}
  ~SimStream() override { device_.CloseStream(index_); }

  const std::string& name() const override { return name_; }
  int index() const override { return index_; }
  Place place() const override { return device_.place(); }

  absl::Status CopyToDevice(void* device, const void* host, BufferRef host_buffer, size_t bytes,
                            const Work& work) override;
  absl::Status CopyToHost(void* host, BufferRef host_buffer, const void* device, size_t bytes,
                          const Work& work) override;
  absl::Status CopyOnDevice(void* to, const void* from, size_t bytes, const Work& work) override;
  absl::Status CopyFromPeer(void* to, const void* from, Place peer, size_t bytes,
                            const Work& work) override;
  absl::Status Fill(void* device, uint8_t value, size_t bytes) override;
  HostKernelLauncher* host_kernels() override { return this; }
  absl::Status LaunchHostKernel(KernelFn kernel, const BoundArgs& args, const void* attrs,
                                const KernelContext::Services& services, const Work& work) override;
  absl::StatusOr<std::unique_ptr<DeviceEvent>> CreateEvent() override {
    return device_.CreateEvent();
  }
  absl::Status Synchronize() override;

 private:
  absl::Status RecordOwn(DeviceEvent& event) override;
  absl::Status WaitOwn(const DeviceEvent& event) override;
  // Where the bytes of device memory lie.
  absl::StatusOr<char*> Bytes(const void* device, size_t bytes) const;
  absl::Status Copy(WorkKind kind, void* to, const void* from, BufferRef host_buffer, size_t bytes,
                    const Work& work);

  SimDevice& device_;
  const std::string name_;
  const int index_;
};

}  // namespace interp
