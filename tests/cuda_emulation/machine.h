// MachineState: what the runtime calls work on; see emulation.h.
// Long because all calls of the runtime work on one state.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/device/sim_clock.h"
#include "core/device/sim_executor.h"
#include "tests/cuda_emulation/device_memory.h"
#include "tests/cuda_emulation/emulation.h"
#include "tests/cuda_emulation/grid.h"
#include "tests/cuda_emulation/library_work.h"
#include "tests/cuda_emulation/stream_order.h"

namespace interp::cuda_emulation {

// A record in a stream, and what comes before it. Null pointers: none.
struct StreamRecord {
  std::shared_ptr<SimPoint> point;
  std::shared_ptr<const Moment> moment;
};

// What a stream does when the turn of a call comes.
using StreamRun = std::function<cudaError_t(const StreamWork&)>;

// Work that a captured stream did not get.
struct CapturedWork {
  WorkKind kind;
  size_t bytes;
  StreamRun run;
};

}  // namespace interp::cuda_emulation

// Names of CUDA. NOLINTBEGIN(readability-identifier-naming)
struct CUstream_st {
  int device;
  int lane;
};
struct CUevent_st {
  int device;
  bool timed;
  interp::cuda_emulation::StreamRecord record;  // the latest
};
struct CUgraph_st {
  int device;
  std::vector<interp::cuda_emulation::CapturedWork> work = {};
  bool valid = true;  // nothing was asked for meanwhile that a graph cannot hold
};
struct CUgraphExec_st {
  CUgraph_st graph;
};
// NOLINTEND(readability-identifier-naming)

namespace interp::cuda_emulation {

// Thread-safety: all methods from any thread. Methods that give cudaError_t are what the calls of
// that name do; they find valid handles or say cudaErrorInvalidResourceHandle.
class MachineState final : public Machine {
 public:
  static absl::StatusOr<std::unique_ptr<MachineState>> Create(const Options& options);
  ~MachineState() override;

  void FailCall(const std::string& name, int nth, cudaError_t error) override;
  std::map<std::string, int64_t> calls() const override;
  void ResetCalls() override;
  int64_t pageable_copies() const override { return pageable_copies_; }
  std::vector<Finding> TakeFindings() override;

  // Counts a call that is about to act on `device`. An error that was asked for, or that of a lost
  // device, unless the call does without a device (-1).
  cudaError_t Enter(const std::string& name, int device);

  // What a stream does for cudaLaunchHostFunc. The function may make no call of CUDA.
  static void CallHost(cudaHostFn_t function, void* data);

  // Makes the primary context of the device, which counts as cuDevicePrimaryCtxRetain, unless it is
  // there.
  cudaError_t MakeContext(int device);
  bool HasContext(int device) const { return devices_[device]->has_context; }

  int num_devices() const { return static_cast<int>(devices_.size()); }
  uint64_t serial() const { return serial_; }

  cudaError_t Allocate(int device, void** address, size_t bytes);
  // At once; only what is freed in the order of a stream waits for its turn.
  cudaError_t AllocateAsync(void** address, size_t bytes, cudaStream_t stream, int current);
  // Whichever device it is of. Null: of none.
  DeviceMemory* MemoryOf(const void* address, int* device = nullptr);
  cudaError_t Free(void* address);
  cudaError_t FreeAsync(void* address, cudaStream_t stream, int current);
  cudaError_t AllocateHost(void** address, size_t bytes);
  cudaError_t FreeHost(void* address);
  bool Pinned(const void* address) const;
  cudaError_t MemoryInfo(int device, size_t* free_bytes, size_t* total_bytes);
  cudaError_t EnablePeer(int device, int peer);

  cudaError_t Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                   cudaStream_t stream, int current);
  cudaError_t Set(void* address, int value, size_t bytes, cudaStream_t stream, int current);
  cudaError_t Launch(const GridLaunch& launch, cudaStream_t stream, int current);
  cudaError_t LaunchHost(cudaStream_t stream, cudaHostFn_t function, void* data, int current);
  cudaError_t LaunchLibraryWork(LibraryWork library, cudaStream_t stream, int current);
  // What EnqueueHeldLibraryWork does.
  cudaError_t LaunchHeldLibraryWork(
      LibraryWork library, cudaStream_t stream, int current,
      const std::function<void(const std::shared_ptr<SimPoint>&)>& give);
  // What LeaveLibrary does.
  void CheckEnd(const std::string& call, int device, cudaStream_t stream);

  cudaError_t CreateStream(int device, cudaStream_t* stream, int priority);
  cudaError_t DestroyStream(cudaStream_t stream);
  cudaError_t Synchronize(cudaStream_t stream, int current);
  cudaError_t SynchronizeDevice(int device);
  cudaError_t QueryStream(cudaStream_t stream, int current);
  cudaError_t CreateEvent(int device, cudaEvent_t* event, bool timed);
  cudaError_t DestroyEvent(cudaEvent_t event);
  cudaError_t Record(cudaEvent_t event, cudaStream_t stream, int current);
  cudaError_t Wait(cudaStream_t stream, cudaEvent_t event, int current);
  cudaError_t QueryEvent(cudaEvent_t event);
  cudaError_t SynchronizeEvent(cudaEvent_t event);
  cudaError_t ElapsedMs(float* ms, cudaEvent_t start, cudaEvent_t end);

  // Graphs (machine_graphs.cc). They hold kernels, calls of libraries, fills and copies between
  // memory of devices; everything else is refused while a stream is captured, host nodes and
  // events, too, which CUDA has and interp does not use.
  cudaError_t BeginCapture(cudaStream_t stream, int current);
  cudaError_t EndCapture(cudaStream_t stream, int current, cudaGraph_t* graph);
  // Forgets the capture in progress, if there is one.
  void AbandonCapture(cudaStream_t stream);
  cudaError_t InstantiateGraph(cudaGraph_t graph, cudaGraphExec_t* runnable);
  cudaError_t DestroyGraph(cudaGraph_t graph);
  cudaError_t LaunchGraph(cudaGraphExec_t runnable, cudaStream_t stream, int current);
  cudaError_t DestroyGraphExec(cudaGraphExec_t runnable);

 private:
  struct EmulatedDevice {
    EmulatedDevice(const SimOptions& options, std::unique_ptr<DeviceMemory> memory);

    const std::unique_ptr<DeviceMemory> memory;
    const std::shared_ptr<SimExecutor> executor;
    SimClock clock;
    uint64_t lanes = 0;        // bits of those in use; the null stream has lane 0
    std::set<int> peers = {};  // whose memory its kernels may use
    std::atomic<cudaError_t> lost = cudaSuccess;
    std::atomic<bool> has_context = false;
  };
  // Where work of a call goes: the stream, or the current device's null stream.
  struct Target {
    EmulatedDevice* device = nullptr;
    int number = 0;
    int lane = 0;

    uint32_t queue() const { return static_cast<uint32_t>(number * kMaxStreams + lane); }
  };

  explicit MachineState(std::unique_ptr<GridRunner> runner) : runner_(std::move(runner)) {}

  // cudaErrorInvalidResourceHandle for a handle that is none, or the error of a lost device.
  cudaError_t Find(cudaStream_t stream, int current, Target& target);
  // The same for kernels and fills. Of a device that is not current CUDA refuses launches; here it
  // is a rule for fills, too, as who enqueues either has to make the device current.
  cudaError_t FindCurrent(cudaStream_t stream, int current, Target& target);
  // The same for calls that no graph holds: an error, which spoils the capture, while the stream is
  // captured.
  cudaError_t FindUncaptured(cudaStream_t stream, int current, Target& target);
  StreamRecord PushRecord(const Target& target);
  StreamRecord PushRecordLocked(const Target& target);  // REQUIRES: mutex_ is held.
  void Push(const Target& target, WorkKind kind, size_t bytes, StreamRun run);
  // Blocks until the record is done.
  cudaError_t HostWait(const StreamRecord& record, EmulatedDevice& device);
  // Whether it is done, after a moment for the device to get on.
  cudaError_t Query(const StreamRecord& record);
  cudaError_t RunCopy(void* to, const void* from, size_t bytes, const StreamWork& work);
  cudaError_t RunGrid(const GridLaunch& launch, EmulatedDevice& device, const StreamWork& work);
  cudaError_t RunLibraryWork(const LibraryWork& library, const StreamWork& work);
  // Notes that work which is no kernel touches memory of a device. REQUIRES: memory_mutex_ is held.
  void Touch(DeviceMemory* memory, const void* address, size_t bytes, bool write,
             const StreamWork& work);
  std::string NameOf(WorkStamp work) const;
  // Where the host finds `bytes` bytes at an address of either side, which `work` touches; null,
  // and a finding, where they are not of one allocation. REQUIRES: memory_mutex_ is held.
  char* HostBytes(const void* address, size_t bytes, const StreamWork& work);

  static std::atomic<uint64_t> last_serial_;
  const uint64_t serial_ = ++last_serial_;
  std::vector<std::unique_ptr<EmulatedDevice>> devices_;
  std::atomic<int64_t> pageable_copies_ = 0;

  mutable std::mutex calls_mutex_;  // guards the next two
  std::map<std::string, int64_t> calls_;
  std::map<std::string, std::pair<int, cudaError_t>> faults_;  // name -> calls left, error

  // Guards memory, shadows and the runner: held by what runs on a device.
  mutable std::mutex memory_mutex_;
  std::unique_ptr<GridRunner> runner_;
  std::map<uintptr_t, size_t> pinned_;
  std::vector<Finding> findings_;
  // What ran, by the value of its stamp: kernels and calls of libraries.
  std::map<uint32_t, const void*> kernels_;
  std::map<uint32_t, std::string> library_calls_;

  // Guards clocks, lanes and handles, and the order of work.
  std::mutex mutex_;
  StreamOrder order_;
  std::set<cudaStream_t> streams_;
  std::set<cudaEvent_t> events_;
  std::map<uint32_t, std::unique_ptr<CUgraph_st>> captures_;  // in progress, by Target::queue
  std::set<cudaGraph_t> graphs_;
  std::set<cudaGraphExec_t> runnable_graphs_;
};

// The machine that lives, or null.
MachineState* LivingMachine();
// What this thread of the host has set, 0 at first.
int CurrentDevice(const MachineState& machine);

}  // namespace interp::cuda_emulation
