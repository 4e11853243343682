#include <array>
#include <chrono>
#include <deque>
#include <random>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/base/check.h"
#include "core/base/wait_until.h"
#include "core/device/sim_executor.h"

namespace interp {
namespace {

constexpr size_t kMaxQueued = 4096;  // tasks of all lanes; beyond, whoever launches runs some first

// Everything random is drawn from the seed when asked for, so that one enqueuing thread sees the
// same interleaving in every run.
class InterleavedExecutor final : public SimExecutor {
 public:
  explicit InterleavedExecutor(const SimOptions& options)
      : random_(options.seed), eager_(DrawEager()), redraw_period_(DrawRedrawPeriod()) {}

  void Open(int lane, int priority) override {
    std::lock_guard<std::mutex> guard(mutex_);
    lanes_[lane].priority = priority;
    Redraw(lanes_[lane]);
  }

  void Close(int lane) override {
    std::lock_guard<std::mutex> guard(mutex_);
    INTERP_CHECK(lanes_[lane].tasks.empty());
    lanes_[lane] = Lane();
  }

  void Admit(int /*lane*/) override {
    while (WantsToRun() && Step() == Outcome::kRan) {
    }
  }

  void Push(int lane, SimTask task) override {
    std::lock_guard<std::mutex> guard(mutex_);
    lanes_[lane].tasks.push_back(std::move(task));
    ++num_queued_;
  }

  bool WaitFor(SimPoint& point, SimDeadline deadline) override {
    while (!point.done()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::vector<const SimExecutor*> visited;
      if (Advance(visited)) continue;
      // Another thread is running a task, or a device with threads of its own is.
      std::unique_lock<std::mutex> lock(mutex_);
      if (running_) {
        WaitUntil(idle_, lock, deadline, [this] { return !running_; });
      } else {
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
    return true;
  }

 private:
  enum class Outcome : int8_t { kRan, kBusy, kBlocked };

  struct Lane {
    std::deque<SimTask> tasks;
    // Lowest first, compared in this order.
    uint64_t draw = 0;
    int priority = 0;
    uint64_t second_draw = 0;
  };

  void Redraw(Lane& lane) {
    lane.draw = random_() % 4;  // ties, which the streams' priorities break, are to be common
    lane.second_draw = random_();
  }

  // How many of 8 launches run a task at once. None is the best choice for most bugs: all work is
  // there to be chosen from.
  uint64_t DrawEager() {
    constexpr uint64_t kChoices[] = {0, 0, 1, 4};
    return kChoices[random_() % 4];
  }

  // One step in so many changes the priority of the lane that made it.
  uint64_t DrawRedrawPeriod() {
    constexpr uint64_t kChoices[] = {2, 8, 32, 128};
    return kChoices[random_() % 4];
  }

  bool WantsToRun() {
    std::lock_guard<std::mutex> guard(mutex_);
    return num_queued_ >= kMaxQueued || random_() % 8 < eager_;
  }

  // Runs one task that may run, if there is one and no other thread is at it.
  Outcome Step() {
    SimTask task;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      if (running_) return Outcome::kBusy;
      Lane* lane = Choose();
      if (lane == nullptr) return Outcome::kBlocked;
      task = std::move(lane->tasks.front());
      lane->tasks.pop_front();
      --num_queued_;
      if (random_() % redraw_period_ == 0) Redraw(*lane);
      running_ = true;
    }
    task.Run();
    task = SimTask{};  // what it held goes before later tasks run
    {
      std::lock_guard<std::mutex> guard(mutex_);
      running_ = false;
    }
    idle_.notify_all();
    return Outcome::kRan;
  }

  Lane* Choose() {
    Lane* best = nullptr;
    for (Lane& lane : lanes_) {
      if (lane.tasks.empty() || !MayRun(lane.tasks.front())) continue;
      if (best == nullptr || std::tie(lane.draw, lane.priority, lane.second_draw) <
                                 std::tie(best->draw, best->priority, best->second_draw)) {
        best = &lane;
      }
    }
    return best;
  }

  static bool MayRun(const SimTask& task) {
    return task.type != SimTask::Type::kWait || task.point->done();
  }

  // Runs one task here or, when all lanes wait for other devices, on one of those.
  bool Advance(std::vector<const SimExecutor*>& visited) {
    visited.push_back(this);
    const Outcome outcome = Step();
    if (outcome != Outcome::kBlocked) return outcome == Outcome::kRan;
    for (const std::shared_ptr<SimPoint>& point : AwaitedElsewhere()) {
      auto* other = dynamic_cast<InterleavedExecutor*>(&point->executor());
      if (other == nullptr || absl::c_linear_search(visited, other)) continue;
      if (other->Advance(visited)) return true;
    }
    return false;
  }

  std::vector<std::shared_ptr<SimPoint>> AwaitedElsewhere() {
    std::lock_guard<std::mutex> guard(mutex_);
    std::vector<std::shared_ptr<SimPoint>> points;
    for (const Lane& lane : lanes_) {
      if (!lane.tasks.empty() && lane.tasks.front().type == SimTask::Type::kWait) {
        points.push_back(lane.tasks.front().point);
      }
    }
    return points;
  }

  std::mutex mutex_;  // guards all members
  std::condition_variable idle_;
  std::mt19937_64 random_;
  const uint64_t eager_;
  const uint64_t redraw_period_;
  std::array<Lane, kMaxStreams> lanes_;
  size_t num_queued_ = 0;
  bool running_ = false;  // some thread is in a task
};

}  // namespace

std::shared_ptr<SimExecutor> MakeInterleavedExecutor(const SimOptions& options) {
  return std::make_shared<InterleavedExecutor>(options);
}

}  // namespace interp
