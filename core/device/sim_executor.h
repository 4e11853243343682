// SimExecutor: runs the work of a simulated device's streams, in one of two ways.
//
// A lane is a stream's queue. Each task starts after the one before it in its lane is done and gone
// with all it held. What a wait waits for was enqueued before the wait, so the oldest task of all
// devices can always run, and nothing ever waits for work that is not enqueued yet.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "core/device/sim_device.h"

namespace interp {

class SimExecutor;
using SimDeadline = std::chrono::steady_clock::time_point;  // max(): none

// One record of an event. What was done before Finish is seen after done() or WaitFor.
class SimPoint {
 public:
  SimPoint(std::shared_ptr<SimExecutor> executor, int64_t time_ns)
      : executor_(std::move(executor)), time_ns_(time_ns) {}

  // Whose lane the record is in.
  SimExecutor& executor() const { return *executor_; }
  int64_t time_ns() const { return time_ns_; }  // simulated
  bool done() const { return done_.load(std::memory_order_acquire); }
  void Finish();
  // Blocks until it is done or the deadline has come; whether it is done. REQUIRES: another thread
  // runs the lane.
  bool Block(SimDeadline deadline);

 private:
  const std::shared_ptr<SimExecutor> executor_;
  const int64_t time_ns_;
  std::mutex mutex_;
  std::condition_variable finished_;
  std::atomic<bool> done_{false};  // written under mutex_
};

struct SimTask {
  enum class Type : int8_t { kWork, kRecord, kWait };

  // Does the task, but for the wait of kWait. Work whose error sink has an error already is
  // skipped, and so is that of a lost device, which reports the loss.
  void Run();

  Type type = Type::kWork;
  WorkKind kind = WorkKind::kKernel;
  int32_t tag = -1;
  WorkErrors* errors = nullptr;
  const Device* device = nullptr;  // of kWork; null: none that can be lost
  std::function<absl::Status()> work = nullptr;
  std::shared_ptr<SimPoint> point = nullptr;
};

// Thread-safety: all methods from any thread.
class SimExecutor {
 public:
  virtual ~SimExecutor() = default;

  // `lane` is below kMaxStreams and closed; of tasks that may run, that of the lane with the lowest
  // `priority` is preferred where the executor chooses at all.
  virtual void Open(int lane, int priority) = 0;
  // REQUIRES: nothing is left in the lane.
  virtual void Close(int lane) = 0;
  // Called before a kernel or a copy is pushed; may block or run tasks on this thread.
  virtual void Admit(int lane) = 0;
  // Neither blocks nor runs anything.
  virtual void Push(int lane, SimTask task) = 0;
  // Blocks, or runs tasks on this thread, until the point is done or the deadline has come; whether
  // it is done. A task that runs on this thread is not cut short.
  virtual bool WaitFor(SimPoint& point, SimDeadline deadline = SimDeadline::max()) = 0;
};

// A thread per lane, with a random pause before each kernel and copy.
std::shared_ptr<SimExecutor> MakeThreadExecutor(const SimOptions& options);
// No thread: whoever waits runs tasks, in an order drawn from the seed.
std::shared_ptr<SimExecutor> MakeInterleavedExecutor(const SimOptions& options);

}  // namespace interp
