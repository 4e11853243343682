// What tests of the device behind cuda:0 have in common: a fixture with a machine and its first
// GPU.
#pragma once

#include <gmock/gmock.h>
#include <gpu_machine.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/device/cuda/cuda_device.h"
#include "tests/cuda/row_kernels.h"
#include "tests/testing/devices.h"
#include "tests/testing/matchers.h"

namespace interp::cuda_test {

class CudaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override { Begin({}); }
  void TearDown() override {
    device_.reset();
    if (machine_ == nullptr) return;
    for (const Finding& finding : machine_->TakeFindings()) {
      ADD_FAILURE() << finding.text;
    }
  }

  // A machine and its first device, made anew. Skips the test where there are fewer GPUs.
  void Begin(const MachineOptions& options) {
    device_.reset();
    machine_.reset();
    auto machine = Machine::Start(options);
    if (absl::IsNotFound(machine.status())) GTEST_SKIP() << machine.status().message();
    ASSERT_THAT(machine, testing::IsOk());
    machine_ = *std::move(machine);
    auto device = cuda::MakeCudaDevice(0);
    ASSERT_THAT(device, testing::IsOk());
    device_ = *std::move(device);
  }

  // data[i] += 1 for 64 floats.
  static absl::Status AddOneOn(Stream& stream, float* data) {
    return stream.EnqueueKernel(
        {}, [&] { return AddOne(data, data, /*count=*/64, cuda::HandleOf(stream)); });
  }

  std::unique_ptr<Machine> machine_;
  std::shared_ptr<Device> device_;
};

// 1, 2, 3 ...
inline std::vector<float> UpTo(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

}  // namespace interp::cuda_test
