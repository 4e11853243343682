#include <array>
#include <chrono>
#include <deque>
#include <random>
#include <thread>
#include <utility>

#include "core/device/sim_executor.h"

namespace interp {
namespace {

// Kernels and copies a stream holds before whoever launches the next waits, as on real devices.
constexpr size_t kMaxQueuedTasks = 1024;

// One stream's queue and thread.
class Lane {
 public:
  Lane(const SimOptions& options, int index)
      : options_(options),
        random_(options.seed * kMaxStreams + static_cast<uint64_t>(index)),
        thread_([this] { Work(); }) {}

  ~Lane() {
    {
      std::lock_guard<std::mutex> guard(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void AwaitRoom() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.size() < kMaxQueuedTasks; });
  }

  void Push(SimTask task) {
    {
      std::lock_guard<std::mutex> guard(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_all();
  }

 private:
  void Work() {
    while (true) {
      SimTask task;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
        if (tasks_.size() + 1 == kMaxQueuedTasks) changed_.notify_all();
      }
      if (task.type == SimTask::Type::kWait) task.point->executor().WaitFor(*task.point);
      if (task.type == SimTask::Type::kWork) Pause(task.kind);
      task.Run();
    }
  }

  void Pause(WorkKind kind) {
    if (kind == WorkKind::kFill) return;
    const bool kernel = kind == WorkKind::kKernel;
    const int64_t longest = kernel ? options_.max_kernel_delay_ns : options_.max_copy_delay_ns;
    if (longest <= 0) return;
    const uint64_t pause = random_() % (static_cast<uint64_t>(longest) + 1);
    std::this_thread::sleep_for(std::chrono::nanoseconds(pause));
  }

  const SimOptions& options_;
  std::mt19937_64 random_;  // the thread's
  std::mutex mutex_;        // guards what follows
  std::condition_variable changed_;
  std::deque<SimTask> tasks_;
  bool closing_ = false;
  std::thread thread_;
};

class ThreadExecutor final : public SimExecutor {
 public:
  explicit ThreadExecutor(const SimOptions& options) : options_(options) {}

  void Open(int lane, int /*priority*/) override {
    lanes_[lane] = std::make_unique<Lane>(options_, lane);
  }
  void Close(int lane) override { lanes_[lane] = nullptr; }
  void Admit(int lane) override { lanes_[lane]->AwaitRoom(); }
  void Push(int lane, SimTask task) override { lanes_[lane]->Push(std::move(task)); }
  bool WaitFor(SimPoint& point, SimDeadline deadline) override { return point.Block(deadline); }

 private:
  const SimOptions options_;
  std::array<std::unique_ptr<Lane>, kMaxStreams> lanes_;  // each the business of its stream alone
};

}  // namespace

std::shared_ptr<SimExecutor> MakeThreadExecutor(const SimOptions& options) {
  return std::make_shared<ThreadExecutor>(options);
}

}  // namespace interp
