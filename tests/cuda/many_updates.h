// Steps of many parameters of different sizes, some empty, for tests of optimizers.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "kernels/cuda/optimizer.h"
#include "tests/cuda/kernel_test.h"

namespace interp::cuda_test {

// Steps of Adam on the null stream. The same values in every object.
class ManyUpdates {
 public:
  explicit ManyUpdates(uint32_t count) : rate_(std::vector<float>{0.1f}) {
    for (uint32_t i = 0; i < count; ++i) {
      const int64_t size = i * 37 % 1500;
      cuda::UpdateTask task;
      task.size = size;
      task.param = InPlace(size, i);
      task.grad = {Array(size, 100 + i)};
      task.states[0] = InPlace(size, 200 + i);
      task.states[1] = InPlace(size, 300 + i);
      task.beta_pows[0] = InPlace(1, 400 + i);
      task.beta_pows[1] = InPlace(1, 500 + i);
      task.rate = {rate_.data()};
      tasks_.push_back(task);
    }
  }

  absl::Status Run(const std::vector<cuda::UpdateTask>& tasks) const {
    const cuda::UpdateNumbers numbers = {
        .beta1 = {.value = 0.9f}, .beta2 = {.value = 0.99f}, .epsilon = {.value = 1e-3f}};
    return cuda::UpdateParameters(cuda::UpdateRule::kAdam, numbers, tasks, nullptr);
  }

  const std::vector<cuda::UpdateTask>& tasks() const { return tasks_; }
  // All that tasks read and write but the rate.
  const std::vector<std::unique_ptr<DeviceArray<float>>>& arrays() const { return arrays_; }

 private:
  // Positive values.
  float* Array(int64_t size, uint32_t seed) {
    std::vector<float> values = SomeValues<float>(static_cast<size_t>(size), seed);
    for (float& value : values) value = std::abs(value) * 0.4f;
    arrays_.push_back(std::make_unique<DeviceArray<float>>(values));
    return arrays_.back()->data();
  }
  cuda::FloatsUpdate InPlace(int64_t size, uint32_t seed) {
    float* const data = Array(size, seed);
    return {.in = data, .out = data};
  }

  const DeviceArray<float> rate_;
  std::vector<std::unique_ptr<DeviceArray<float>>> arrays_;
  std::vector<cuda::UpdateTask> tasks_;
};

}  // namespace interp::cuda_test
