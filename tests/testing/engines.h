// Engines in tests: making them, and holding operations back.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/engine/engine.h"
#include "tests/testing/matchers.h"

namespace interp::testing {

inline std::unique_ptr<engine::Engine> MakeEngine(const engine::EngineOptions& options) {
  absl::StatusOr<std::unique_ptr<engine::Engine>> made = engine::Engine::Create(options);
  EXPECT_THAT(made, IsOk());
  return made.ok() ? *std::move(made) : nullptr;
}

// For INSTANTIATE_TEST_SUITE_P.
inline std::string NameOfPolicy(const ::testing::TestParamInfo<engine::PolicyKind>& info) {
  return info.param == engine::PolicyKind::kPerDevice ? "PerDevice"
                                                      : std::string(engine::Name(info.param));
}

// Holds whoever wants to pass until it is opened.
class Gate {
 public:
  ~Gate() { Open(); }
  void Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    arrived_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Until somebody is held.
  void AwaitArrival() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return arrived_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool arrived_ = false;
  bool open_ = false;
};

}  // namespace interp::testing
