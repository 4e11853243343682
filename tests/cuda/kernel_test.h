// What tests of GPU kernels have in common: a GPU, values, and the host's ops to compare
// with.
#pragma once

#include <gmock/gmock.h>
#include <gpu_machine.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/cuda/device_array.h"
#include "tests/testing/matchers.h"
#include "tests/testing/one_op.h"

namespace interp::cuda_test {

// Starts a machine whose seed hangs on the test's name, and finds nothing wrong at the end.
class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const ::testing::TestInfo& info = *::testing::UnitTest::GetInstance()->current_test_info();
    auto machine = Machine::Start(
        {.seed = std::hash<std::string>()(std::string(info.test_suite_name()) + info.name())});
    ASSERT_TRUE(machine.ok()) << machine.status();
    machine_ = *std::move(machine);
  }
  void TearDown() override {
    EXPECT_EQ(cudaDeviceSynchronize() != cudaSuccess, device_is_lost_);
    for (const Finding& finding : machine_->TakeFindings()) {
      ADD_FAILURE() << finding.text;
    }
  }

  Machine& machine() { return *machine_; }

  bool device_is_lost_ = false;  // what a test expects

 private:
  std::unique_ptr<Machine> machine_;
};

using Floats = ::testing::Types<float, float16, bfloat16>;

// Values from -2 to 2, in no order. Those of 16 bits are exact in float32, too.
template <typename T>
std::vector<T> SomeValues(size_t size, uint32_t seed = 1) {
  std::vector<T> values(size);
  uint32_t state = seed * 2654435761u + 1;
  for (T& value : values) {
    state = state * 1664525u + 1013904223u;
    const float unit = static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
    value = static_cast<T>(std::is_integral_v<T> ? std::floor(unit * 40 - 20) : unit * 4 - 2);
  }
  return values;
}

template <typename T>
Tensor TensorOf(const std::vector<int64_t>& dims, const std::vector<T>& values) {
  using Wide = std::conditional_t<sizeof(T) == 2, float, T>;
  return Tensor::Of<Wide>(Shape(dims), std::vector<Wide>(values.begin(), values.end()));
}

// Output `slot` of an op of the host. Its 16-bit floats are computed as float32.
template <typename T>
auto OnHost(const std::string& type, std::vector<Attr> attrs,
            const std::vector<testing::OneOp::Input>& inputs, int slot = 0) {
  using Wide = std::conditional_t<sizeof(T) == 2, float, T>;
  testing::OneOp op(type, std::move(attrs), inputs);
  EXPECT_TRUE(op.Run().ok());
  return testing::Values<Wide>(op.output(slot));
}

inline int64_t NumelOf(const std::vector<int64_t>& dims) {
  int64_t size = 1;
  for (const int64_t dim : dims) size *= dim;
  return size;
}

// `got` is what a kernel of T wrote, `want` what the host has, in its precision.
template <typename T, typename Want>
void ExpectClose(const std::vector<T>& got, const std::vector<Want>& want) {
  ASSERT_EQ(got.size(), want.size());
  const double tolerance = std::is_same_v<T, bfloat16>  ? 8e-3
                           : std::is_same_v<T, float16> ? 1e-3
                           : std::is_integral_v<T>      ? 0
                                                        : 5e-6;
  for (size_t i = 0; i < got.size(); ++i) {
    const auto wanted = static_cast<double>(want[i]);
    const auto value = static_cast<double>(got[i]);
    if (std::isnan(wanted) && std::isnan(value)) continue;
    if (wanted == value) continue;
    ASSERT_LE(std::abs(value - wanted), tolerance * (1 + std::abs(wanted))) << "element " << i;
  }
}

}  // namespace interp::cuda_test
