// What the two ways to train on two devices have in common; see two_devices.cc.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "core/device/device.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp::examples {

inline constexpr int kLayers = 6;
inline constexpr int64_t kWidth = 192;
inline constexpr int64_t kBatch = 2048;  // of all devices together
inline constexpr int kSteps = 6;
inline constexpr double kLearningRate = 0.05;

inline void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "error: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Must(absl::StatusOr<T> value) {
  Require(value.status());
  return *std::move(value);
}

// sim:0, sim:1 ...
std::vector<std::shared_ptr<Device>> MakeDevices(int count);
// The first weights of a layer, and the samples.
Tensor WeightsOf(int layer);
Tensor Samples();

struct Outcome {
  double time_us = 0;                               // simulated, of all steps
  double compute_us = 0;                            // of them, the busiest device computes
  double copying_us = 0;                            // and copies
  std::vector<std::vector<DeviceSpan>> spans = {};  // by device
  std::vector<float> first_weights = {};            // afterwards
};

// What devices do between two moments. Nothing is under way at the first.
class Watch {
 public:
  explicit Watch(const std::vector<std::shared_ptr<Device>>& devices);
  Outcome Finish();

 private:
  const std::vector<std::shared_ptr<Device>>& devices_;
  int64_t start_ns_ = 0;
};

// The steps by a program with a plan, after one that is not timed.
Outcome TrainByPlan(int num_devices);

}  // namespace interp::examples
