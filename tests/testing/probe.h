// Probe: what the kernels of ProbeOps() report to, and what tests tell them to do.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "core/status.h"

namespace interp::testing {

// One for the process; switched on while an object of this class lives.
// Thread-safety: kernels call OnKernel from any thread; the rest belongs to the test, between runs.
class Probe {
 public:
  Probe();
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Called by each kernel of an op with that `tag` attribute. Costs one load while there is no
  // Probe.
  static absl::Status OnKernel(int32_t tag) {
    Probe* probe = active_.load(std::memory_order_acquire);
    return probe == nullptr ? absl::OkStatus() : probe->Handle(tag);
  }

  // Called by each `infer`; counted.
  static void OnInfer() {
    if (Probe* probe = active_.load(std::memory_order_acquire)) ++probe->infers_;
  }

  // Kernels with this tag fail.
  void FailAt(int32_t tag) { fail_at_ = tag; }
  void FailNowhere() { fail_at_ = std::nullopt; }
  // Runs in each kernel, before it computes.
  void SetHook(std::function<void(int32_t tag)> hook) { hook_ = std::move(hook); }

  // Tags in the order their kernels started.
  std::vector<int32_t> TakeTrace();
  // How often shapes were inferred since the last call.
  int64_t TakeInfers() { return infers_.exchange(0); }

 private:
  absl::Status Handle(int32_t tag);

  static std::atomic<Probe*> active_;
  std::optional<int32_t> fail_at_;
  std::function<void(int32_t)> hook_;
  std::atomic<int64_t> infers_{0};
  std::mutex mutex_;  // guards trace_
  std::vector<int32_t> trace_;
};

}  // namespace interp::testing
