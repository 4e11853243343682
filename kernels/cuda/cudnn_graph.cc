#include "kernels/cuda/cudnn_graph.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "core/device/cuda/cuda_error.h"
#include "core/device/cuda/current_device.h"

namespace interp::cuda {
namespace {

constexpr int64_t kMostEngines = 64;

template <typename T>
absl::Status Get(const CudnnDescriptor& descriptor, cudnnBackendAttributeName_t attribute,
                 cudnnBackendAttributeType_t type, absl::Span<T> values, int64_t& count) {
  return CudnnStatus(
      cudnnBackendGetAttribute(descriptor.get(), attribute, type,
                               static_cast<int64_t>(values.size()), &count, values.data()),
      "cannot read what cuDNN says of an engine");
}

absl::Status Describe(CudnnEngine& engine) {
  INTERP_ASSIGN_OR_RETURN(const CudnnDescriptor own,
                          CudnnDescriptor::Make(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  int64_t count = 0;
  cudnnBackendDescriptor_t descriptor = own.get();
  INTERP_RETURN_IF_ERROR(Get(engine.config, CUDNN_ATTR_ENGINECFG_ENGINE,
                             CUDNN_TYPE_BACKEND_DESCRIPTOR, absl::MakeSpan(&descriptor, 1), count));
  INTERP_RETURN_IF_ERROR(Get(own, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64,
                             absl::MakeSpan(&engine.index, 1), count));
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes = {};
  INTERP_RETURN_IF_ERROR(Get(own, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                             absl::MakeSpan(notes), count));
  const auto num_notes = std::min(notes.size(), static_cast<size_t>(count));
  engine.notes.assign(notes.begin(), notes.begin() + num_notes);
  return absl::OkStatus();
}

}  // namespace

absl::Status CudnnStatus(cudnnStatus_t status, absl::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrCat(what, ": cuDNN says ", cudnnGetErrorString(status));
  constexpr int kCategory = 1000;
  if (status / kCategory == CUDNN_STATUS_NOT_SUPPORTED / kCategory) {
    return absl::UnimplementedError(text);
  }
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return absl::ResourceExhaustedError(text);
  }
  return absl::InternalError(text);
}

absl::StatusOr<std::unique_ptr<CudnnHandle>> CudnnHandle::Make(cudaStream_t stream) {
  int device = 0;
  INTERP_RETURN_IF_ERROR(ToStatus(cudaGetDevice(&device), "cannot start cuDNN"));
  cudnnHandle_t handle = nullptr;
  INTERP_RETURN_IF_ERROR(CudnnStatus(cudnnCreate(&handle), "cannot start cuDNN"));
  std::unique_ptr<CudnnHandle> owned(new CudnnHandle(handle, stream, device));
  INTERP_RETURN_IF_ERROR(CudnnStatus(cudnnSetStream(handle, stream), "cannot give cuDNN a stream"));
  return owned;
}

CudnnHandle::~CudnnHandle() {
  const CurrentDevice current(device_);
  cudnnDestroy(handle_);
}

absl::StatusOr<CudnnDescriptor> CudnnDescriptor::Make(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  INTERP_RETURN_IF_ERROR(CudnnStatus(cudnnBackendCreateDescriptor(type, &descriptor),
                                     "cannot make a descriptor of cuDNN"));
  CudnnDescriptor made;
  made.owned_.reset(descriptor);
  return made;
}

absl::Status CudnnDescriptor::Finalize(absl::string_view what) {
  if (first_ == CUDNN_STATUS_SUCCESS) first_ = cudnnBackendFinalize(owned_.get());
  return CudnnStatus(first_, what);
}

absl::StatusOr<std::vector<CudnnEngine>> CudnnEngines(const CudnnDescriptor& graph,
                                                      cudnnBackendHeurMode_t mode) {
  INTERP_ASSIGN_OR_RETURN(CudnnDescriptor heuristic,
                          CudnnDescriptor::Make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
  INTERP_RETURN_IF_ERROR(heuristic.SetDescriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
                             .SetOne(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode)
                             .Finalize("cannot ask cuDNN for engines"));
  int64_t count = 0;
  INTERP_RETURN_IF_ERROR(
      CudnnStatus(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                           /*requested=*/0, &count, nullptr),
                  "cannot count cuDNN's engines"));
  std::vector<CudnnEngine> engines(static_cast<size_t>(std::min(count, kMostEngines)));
  std::vector<cudnnBackendDescriptor_t> configs;
  for (CudnnEngine& engine : engines) {
    INTERP_ASSIGN_OR_RETURN(engine.config,
                            CudnnDescriptor::Make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    configs.push_back(engine.config.get());
  }
  if (engines.empty()) return engines;
  INTERP_RETURN_IF_ERROR(Get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                             CUDNN_TYPE_BACKEND_DESCRIPTOR, absl::MakeSpan(configs), count));
  // The count is that of all that there are.
  engines.resize(std::min(engines.size(), static_cast<size_t>(count)));
  for (CudnnEngine& engine : engines) INTERP_RETURN_IF_ERROR(Describe(engine));
  return engines;
}

}  // namespace interp::cuda
