// cuDNN's backend API in the forms of this library: handles and descriptors that own what they
// hold, errors as statuses. A descriptor is made, given attributes, finalized, and then used by
// others; those it was given must outlive it.
#pragma once

#include <cuda_runtime.h>
#include <cudnn_graph.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/status.h"

namespace interp::cuda {

// What a call says; `what` was tried: "cannot enqueue a convolution".
absl::Status CudnnStatus(cudnnStatus_t status, absl::string_view what);

// The library's context of one stream, on the GPU that was current when it was made. Goes before
// the stream.
class CudnnHandle {
 public:
  static absl::StatusOr<std::unique_ptr<CudnnHandle>> Make(cudaStream_t stream);
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  cudnnHandle_t get() const { return handle_; }
  cudaStream_t stream() const { return stream_; }

 private:
  CudnnHandle(cudnnHandle_t handle, cudaStream_t stream, int device)
      : handle_(handle), stream_(stream), device_(device) {}

  const cudnnHandle_t handle_;
  const cudaStream_t stream_;
  const int device_;
};

class CudnnDescriptor {
 public:
  // Null: nothing can be done with it.
  CudnnDescriptor() = default;
  static absl::StatusOr<CudnnDescriptor> Make(cudnnBackendDescriptorType_t type);

  // One or several elements. The first error is kept for Finalize, which ends the setting.
  template <typename T>
  CudnnDescriptor& Set(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
                       absl::Span<const T> values) {
    if (first_ == CUDNN_STATUS_SUCCESS) {
      first_ = cudnnBackendSetAttribute(owned_.get(), attribute, type,
                                        static_cast<int64_t>(values.size()), values.data());
    }
    return *this;
  }
  template <typename T>
  CudnnDescriptor& SetOne(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
                          const T& value) {
    return Set<T>(attribute, type, absl::MakeConstSpan(&value, 1));
  }
  CudnnDescriptor& SetInts(cudnnBackendAttributeName_t attribute,
                           absl::Span<const int64_t> values) {
    return Set(attribute, CUDNN_TYPE_INT64, values);
  }
  CudnnDescriptor& SetDescriptor(cudnnBackendAttributeName_t attribute,
                                 const CudnnDescriptor& value) {
    return SetOne(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.get());
  }
  absl::Status Finalize(absl::string_view what);

  cudnnBackendDescriptor_t get() const { return owned_.get(); }

 private:
  struct Destroy {
    void operator()(cudnnBackendDescriptor_t descriptor) const {
      cudnnBackendDestroyDescriptor(descriptor);
    }
  };

  std::unique_ptr<void, Destroy> owned_;
  cudnnStatus_t first_ = CUDNN_STATUS_SUCCESS;
};

// An engine, with the settings that a heuristic advises.
struct CudnnEngine {
  CudnnDescriptor config;
  int64_t index = -1;  // the library's number of it
  std::vector<cudnnBackendNumericalNote_t> notes;
};
// Those that may run a graph of operations, the best first. Some that the library advises cannot
// run it: making a plan tells.
absl::StatusOr<std::vector<CudnnEngine>> CudnnEngines(const CudnnDescriptor& graph,
                                                      cudnnBackendHeurMode_t mode);

}  // namespace interp::cuda
