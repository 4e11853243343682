// What the handles and descriptors of the emulated cuDNN hold, and convolutions as they tell them.
#pragma once

#include <cudnn_graph.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/cuda_emulation/library_work.h"

namespace interp::cuda_emulation {

struct CudnnAttribute {
  cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
  int64_t count = 0;
  std::string bytes;
};

struct EmulatedDescriptor {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, CudnnAttribute> attributes = {};
  int engine = -1;  // of engines and their configurations, which a heuristic has filled in

  // Empty where it was not set.
  template <typename T>
  std::vector<T> Values(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<T> values(static_cast<size_t>(found->second.count));
    std::memcpy(values.data(), found->second.bytes.data(), found->second.bytes.size());
    return values;
  }
  // The first descriptor of an attribute, or null.
  const EmulatedDescriptor* Part(cudnnBackendAttributeName_t name) const {
    const auto parts = Values<const EmulatedDescriptor*>(name);
    return parts.empty() ? nullptr : parts[0];
  }
};

// A tensor of a convolution, its dims filled up with ones to three spatial ones.
struct ConvTensor {
  std::array<int64_t, 5> dims = {};
  int64_t uid = 0;
  int64_t alignment = 0;
  int64_t size = 0;
};

// A convolution of `image` with `filter`, of which one tensor is computed from the others.
struct EmulatedConv {
  cudnnBackendDescriptorType_t direction = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
  cudaDataType_t type = CUDA_R_32F;
  ConvTensor image, filter, result;
  std::array<int64_t, 3> strides = {1, 1, 1};
  std::array<int64_t, 3> dilations = {1, 1, 1};
  std::array<int64_t, 3> pads = {0, 0, 0};
  bool even = true;  // both ends are padded alike

  int64_t groups() const { return image.dims[1] / filter.dims[1]; }
};

// What the operation says; CUDNN_STATUS_SUCCESS when its parts fit each other.
cudnnStatus_t ReadConv(const EmulatedDescriptor& operation, EmulatedConv& conv);

// What our calls set or ask of an attribute: its type, and at most so many elements.
struct AttributeFacts {
  cudnnBackendAttributeType_t type;
  int64_t most = 1;
};
AttributeFacts FactsOf(cudnnBackendAttributeName_t name);

// What an engine does with a convolution.
struct EngineFacts {
  std::vector<cudnnBackendNumericalNote_t> notes;
  bool supports = true;
  int64_t workspace_bytes = 0;
};
inline constexpr int kFirstFallbackEngine = 7;
inline constexpr int kEngines = 8;
EngineFacts FactsOf(int engine, const EmulatedConv& conv);

// What runs later, on these tensors; the result's memory is written.
LibraryWork ConvWork(const EmulatedConv& conv, int engine, const std::map<int64_t, void*>& memory,
                     void* workspace);

}  // namespace interp::cuda_emulation
