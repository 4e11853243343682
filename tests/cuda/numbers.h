// Host tensors of any dtype for tests of rows, and their values.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/cuda/kernel_test.h"

namespace interp::cuda_test {

// A tensor of floats or integers of any dtype with these values.
inline Tensor Numbers(DType dtype, const std::vector<int64_t>& dims,
                      const std::vector<float>& values) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = Shape(dims);
  EXPECT_TRUE(tensor.Allocate(SystemAllocator()).ok());
  const auto fill = [&](auto zero) {
    using T = decltype(zero);
    T* const to = static_cast<T*>(tensor.mutable_raw_data());
    for (size_t i = 0; i < values.size(); ++i) to[i] = static_cast<T>(values[i]);
  };
  switch (dtype) {
    case DType::kFloat16:
      fill(float16());
      break;
    case DType::kBFloat16:
      fill(bfloat16());
      break;
    case DType::kFloat64:
      fill(double());
      break;
    case DType::kInt32:
      fill(int32_t());
      break;
    case DType::kInt64:
      fill(int64_t());
      break;
    case DType::kBool:
    case DType::kUInt8:
      fill(uint8_t());
      break;
    case DType::kInt8:
      fill(int8_t());
      break;
    case DType::kInt16:
      fill(int16_t());
      break;
    default:
      fill(float());
  }
  return tensor;
}

// From -2 to 2.
inline Tensor SomeNumbers(DType dtype, const std::vector<int64_t>& dims, uint32_t seed = 1) {
  return Numbers(dtype, dims, SomeValues<float>(static_cast<size_t>(NumelOf(dims)), seed));
}

// From `least` to `least` + 2: of roots, logarithms and variances.
inline Tensor NumbersFrom(float least, DType dtype, const std::vector<int64_t>& dims,
                          uint32_t seed = 1) {
  std::vector<float> values = SomeValues<float>(static_cast<size_t>(NumelOf(dims)), seed);
  for (float& value : values) value = least + (value + 2) / 2;
  return Numbers(dtype, dims, values);
}

inline std::vector<double> AsDoubles(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.numel()));
  const auto read = [&](auto zero) {
    const auto* from = static_cast<const decltype(zero)*>(tensor.raw_data());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(from[i]);
  };
  switch (tensor.dtype) {
    case DType::kFloat16:
      read(float16());
      break;
    case DType::kBFloat16:
      read(bfloat16());
      break;
    case DType::kFloat64:
      read(double());
      break;
    case DType::kInt32:
      read(int32_t());
      break;
    case DType::kInt64:
      read(int64_t());
      break;
    case DType::kBool:
    case DType::kUInt8:
      read(uint8_t());
      break;
    case DType::kInt8:
      read(int8_t());
      break;
    case DType::kInt16:
      read(int16_t());
      break;
    default:
      read(float());
  }
  return values;
}

}  // namespace interp::cuda_test
