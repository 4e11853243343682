// DeviceArray: values in the memory of the current GPU, for tests.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace interp::cuda_test {

// Uses the null stream, and waits. `offset` elements lie before the values: views that are aligned
// as badly as their type allows.
template <typename T>
class DeviceArray {
 public:
  // Not written.
  explicit DeviceArray(size_t size, size_t offset = 0) : size_(size), offset_(offset) {
    EXPECT_EQ(cudaMalloc(&data_, (size + offset) * sizeof(T)), cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values, size_t offset = 0)
      : DeviceArray(values.size(), offset) {
    EXPECT_EQ(cudaMemcpy(data(), values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_ + offset_; }

  // After all work of the device.
  std::vector<T> Read() const {
    std::vector<T> values(size_);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), data(), size_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  T* data_ = nullptr;
  const size_t size_;
  const size_t offset_;
};

}  // namespace interp::cuda_test
