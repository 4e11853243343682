// StallWatch: tells what a run is stuck at when it makes no progress.
//
//   StallWatch watch(core->plans(), {.after = std::chrono::seconds(5)});
//   core->Run(feeds, {.observer = &watch});
//
//   no instruction has started or ended for 5.0 s: 12 of 40 done, 1 running, 27 waiting
//   running
//     op #11 matmul_v2 -> y, worker 0, for 5.0 s; 27 wait for it
//   waiting
//     op #12 relu -> z: for op #11 matmul_v2 (raw y)
//     ...
//
// Instructions of a block that an op runs have "block 2, " in front, and are listed while that op
// runs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "interpreter/plan/plan.h"
#include "interpreter/run/observer.h"

namespace interp {

struct StallWatchOptions {
  // How long nothing must have happened. Longer than the slowest instruction takes.
  std::chrono::nanoseconds after = std::chrono::seconds(10);
  // Most lines for each kind of instruction in a report.
  int max_lines = 10;
  // Gets each report, on the watch's own thread, while the run goes on. Null: standard error.
  std::function<void(const std::string& report)> report = nullptr;
};

// One report per stall: the next one needs progress in between. Between runs nothing is reported.
//
// Thread-safety: an observer of one run at a time. Cost per instruction: two clock readings and a
// few stores; one thread, which sleeps.
class StallWatch final : public RunObserver {
 public:
  // Borrows the plans of all blocks.
  explicit StallWatch(absl::Span<const Plan> plans, const StallWatchOptions& options = {});
  ~StallWatch() override;

  void OnRunStart(int64_t now_ns) override;
  void OnRunEnd(int64_t now_ns) override;
  void OnStart(int32_t instruction, int worker, int64_t now_ns) override;
  void OnInstruction(int32_t instruction, int worker, int64_t start_ns, int64_t end_ns) override;
  void OnWaitStart(int32_t instruction, int32_t event, int worker, int64_t now_ns) override;
  void OnWaitEnd(int32_t instruction, int32_t event, int worker, int64_t start_ns,
                 int64_t end_ns) override;

 private:
  enum class State : int8_t { kNotStarted, kWaitsForDevice, kRunning, kDone };
  // Written by the thread that runs the instruction; the watch reads at any time and may see a mix
  // of two moments, which a stalled run does not have.
  struct Progress {
    std::atomic<State> state{State::kNotStarted};
    std::atomic<int32_t> worker{0};
    std::atomic<int32_t> event{-1};
    std::atomic<int64_t> since_ns{0};
  };

  void Note(int32_t instruction, State state, int worker, int32_t event, int64_t now_ns);
  void Watch();
  std::string Report(int64_t now_ns) const;
  std::string ReportRunning(int64_t now_ns) const;
  std::string ReportDeviceWaits(int64_t now_ns) const;
  std::string ReportWaiting() const;
  std::string ReportReady() const;
  Progress& ProgressOf(const InstrRef& ref) const;
  State StateOf(const InstrRef& ref) const;
  int CountFollowers(const InstrRef& ref) const;
  std::vector<const Plan*> ActivePlans() const;
  std::vector<std::vector<const Edge*>> UnmetEdges(const Plan& plan) const;

  const absl::Span<const Plan> plans_;
  const StallWatchOptions options_;
  const int32_t count_;                   // of instructions of all blocks
  std::unique_ptr<Progress[]> progress_;  // by number in the program; of the latest activation
  Progress last_wait_;                    // of the run itself, before it returns
  std::atomic<int64_t> last_ns_{0};       // of progress
  std::atomic<bool> running_{false};
  std::mutex mutex_;  // guards stop_
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace interp
