// DeviceSet: what one core holds on the devices of its plan: streams, events, pools, heaps.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/device/device.h"
#include "core/device/device_heap.h"
#include "core/device/sim_device.h"
#include "core/device/stream_pool.h"
#include "interpreter/plan/plan.h"

namespace interp {

struct DeviceSetOptions {
  size_t limit_bytes = 0;  // per device, for what runs compute; 0: what the device has
  bool graphs = false;     // work will be captured, see BeginGraph
  // Tests: see StreamPoolOptions::fail.
  std::function<bool(size_t bytes)> fail_allocation = nullptr;
};

// The devices of the plans' streams, each once: those of `given` that have the plan's places, and
// new ones where none has: simulated ones with `sim` but for the index, others by their
// DeviceMaker. Errors: NotFound where nothing makes such devices, and those of the maker.
absl::StatusOr<std::vector<std::shared_ptr<Device>>> FindDevices(
    absl::Span<const Plan> plans, const std::vector<std::shared_ptr<Device>>& given,
    const SimOptions& sim);

// Thread-safety: the accessors may be called from any thread; what they give has its own rules.
class DeviceSet {
 public:
  // Makes a stream for each of the plans' (which have the same) but the host's. `devices` are those
  // FindDevices gives.
  static absl::StatusOr<std::unique_ptr<DeviceSet>> Create(
      absl::Span<const Plan> plans, const std::vector<std::shared_ptr<Device>>& devices,
      const DeviceSetOptions& options);
  // Waits for all work.
  ~DeviceSet();

  // By index into Plan::streams; not the host's.
  Stream& stream(int32_t index) { return *streams_[index]; }
  // An event for each of the plan's.
  absl::StatusOr<std::vector<std::unique_ptr<DeviceEvent>>> MakeEvents(const Plan& plan);
  Device& device(Place place) { return *On(place).device; }
  StreamPool& pool(Place place) { return *On(place).pool; }
  // What work of the stream takes memory from: the pool, in the stream's order.
  Allocator& allocator(int32_t stream) { return *allocators_[stream]; }
  // From here to EndGraph that is memory of the stream which nothing but graphs uses: a graph knows
  // addresses of memory that is free between its runs. REQUIRES: DeviceSetOptions::graphs, and that
  // one thread enqueues.
  void BeginGraph(int32_t stream);
  void EndGraph(int32_t stream);
  // Gives that memory back. REQUIRES: there are no graphs, and nothing is in flight.
  void TrimGraphs();
  // For what outlives a run: parameters.
  DeviceHeap& heap(Place place) { return *On(place).heap; }
  // Of all work of this core.
  WorkErrors& errors() { return errors_; }

  // Waits for the work of all streams of this core. Errors: a device is lost.
  absl::Status Synchronize();
  // The same for the work of all cores on these devices.
  absl::Status SynchronizeDevices();
  // Waits for the streams whose work reads host memory, or writes what is there beyond the run:
  // then nothing reads the caller's feeds, and parameters of the host are at rest. Errors as
  // before.
  absl::Status SynchronizeHostMemory();
  // To be called before work is enqueued, which is to come after what other cores have enqueued on
  // these devices. Errors as before.
  absl::Status BeginRun();

  // Of all pools.
  MemoryStats memory() const;
  // Of each pool.
  std::vector<PoolStats> pool_stats() const;
  // Gives unused memory back, but for that of graphs.
  size_t Trim();

 private:
  struct OnDevice {
    std::shared_ptr<Device> device;
    std::shared_ptr<StreamPool> pool;
    std::unique_ptr<DeviceHeap> heap;
    std::vector<Stream*> streams = {};  // that use its memory: its own, and those of its peers
  };
  class StreamMemory;

  DeviceSet() = default;
  OnDevice& On(Place place);
  // Of an instruction that reads memory of another device.
  void NotePeers(const Plan& plan, const Instruction& instruction);
  std::vector<StreamPool*> Pools() const;

  WorkErrors errors_;
  std::vector<OnDevice> devices_;
  std::vector<std::unique_ptr<Stream>> streams_;  // null for the host's
  std::vector<Allocator*> allocators_;            // by stream; null for the host's
  std::vector<std::unique_ptr<StreamMemory>>
      stream_memory_;  // of all streams where there are graphs
  std::vector<Stream*> host_streams_;
};

}  // namespace interp
