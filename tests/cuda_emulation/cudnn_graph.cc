// cuDNN's backend API on the machine that lives.
#include <algorithm>
#include <mutex>
#include <set>

#include "tests/cuda_emulation/cudnn_graph_types.h"

// NOLINTNEXTLINE(readability-identifier-naming): a name of cuDNN.
struct cudnnContext {
  int device;
  cudaStream_t stream;
};

namespace interp::cuda_emulation {
namespace {

std::mutex cudnn_mutex;  // guards the handles
std::set<cudnnHandle_t>& CudnnHandles() {
  static auto& handles = *new std::set<cudnnHandle_t>();
  return handles;
}

cudnnStatus_t ToCudnn(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return CUDNN_STATUS_SUCCESS;
    case cudaErrorMemoryAllocation:
      return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidResourceHandle:
      return CUDNN_STATUS_BAD_PARAM;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInitializationError:
      return CUDNN_STATUS_NOT_INITIALIZED;
    default:
      return CUDNN_STATUS_EXECUTION_FAILED;
  }
}

size_t CudnnElementBytes(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_NUMERICAL_NOTE:
      return 4;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      break;
  }
  return 8;
}

// What must be set before a descriptor is finalized.
std::vector<cudnnBackendAttributeName_t> RequiredOf(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES,
              CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT};
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return {CUDNN_ATTR_CONVOLUTION_COMP_TYPE,      CUDNN_ATTR_CONVOLUTION_CONV_MODE,
              CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,   CUDNN_ATTR_CONVOLUTION_DILATIONS,
              CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
              CUDNN_ATTR_CONVOLUTION_POST_PADDINGS};
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_OPS};
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_MODE};
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG};
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
              CUDNN_ATTR_VARIANT_PACK_WORKSPACE};
    default:
      return {};
  }
}

bool IsPart(cudnnBackendAttributeName_t name) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH:
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
    case CUDNN_ATTR_ENGINECFG_ENGINE:
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY:
    case CUDNN_ATTR_OPERATIONGRAPH_OPS:
      return true;
    default:
      return false;
  }
}

bool IsFactor(cudnnBackendAttributeName_t name) {
  return name == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA ||
         name == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA ||
         name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA ||
         name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA ||
         name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA ||
         name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA;
}

bool IsOperation(cudnnBackendDescriptorType_t type) {
  return type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

EmulatedConv ConvOfGraph(const EmulatedDescriptor& graph) {
  EmulatedConv conv;
  ReadConv(*graph.Part(CUDNN_ATTR_OPERATIONGRAPH_OPS), conv);
  return conv;
}
EmulatedConv ConvOfConfig(const EmulatedDescriptor& config) {
  return ConvOfGraph(*config.Part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
}

bool PartsAreFinal(const EmulatedDescriptor& descriptor) {
  for (const auto& [name, attribute] : descriptor.attributes) {
    if (attribute.type != CUDNN_TYPE_BACKEND_DESCRIPTOR) continue;
    for (const auto* part : descriptor.Values<const EmulatedDescriptor*>(name)) {
      if (!part->finalized) return false;
    }
  }
  return true;
}

cudnnStatus_t CheckFinal(const EmulatedDescriptor& descriptor) {
  if (descriptor.finalized) return CUDNN_STATUS_BAD_PARAM;
  for (const auto name : RequiredOf(descriptor.type)) {
    if (!descriptor.attributes.contains(name)) return CUDNN_STATUS_BAD_PARAM;
  }
  if (!PartsAreFinal(descriptor)) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  if (IsOperation(descriptor.type)) {
    EmulatedConv conv;
    return ReadConv(descriptor, conv);
  }
  if (descriptor.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const auto& config = *descriptor.Part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (!FactsOf(config.engine, ConvOfConfig(config)).supports) return CUDNN_STATUS_NOT_SUPPORTED;
  }
  return CUDNN_STATUS_SUCCESS;
}

// Gives as many values as there is room for; without room it counts them.
template <typename T>
cudnnStatus_t Give(const std::vector<T>& values, int64_t requested, int64_t* count,
                   void* elements) {
  const auto size = static_cast<int64_t>(values.size());
  *count = requested == 0 ? size : std::min(requested, size);
  if (requested > 0) std::copy_n(values.begin(), *count, static_cast<T*>(elements));
  return CUDNN_STATUS_SUCCESS;
}

// Fills in the configurations that the caller has made.
cudnnStatus_t GiveEngines(const EmulatedDescriptor& heuristic, int64_t requested, int64_t* count,
                          void* elements) {
  const auto mode = heuristic.Values<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE)[0];
  const int first = mode == CUDNN_HEUR_MODE_FALLBACK ? kFirstFallbackEngine : 0;
  const int64_t engines = (first == 0 ? kFirstFallbackEngine : kEngines) - first;
  *count = requested == 0 ? engines : std::min(requested, engines);
  for (int64_t i = 0; i < std::min(requested, engines); ++i) {
    auto* const config = static_cast<EmulatedDescriptor* const*>(elements)[i];
    config->engine = first + static_cast<int>(i);
    config->finalized = true;
    config->attributes[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] =
        heuristic.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GiveAttribute(const EmulatedDescriptor& from, cudnnBackendAttributeName_t name,
                            int64_t requested, int64_t* count, void* elements) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return GiveEngines(from, requested, count, elements);
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      auto* const engine = *static_cast<EmulatedDescriptor* const*>(elements);
      engine->engine = from.engine;
      engine->finalized = true;
      engine->attributes = from.attributes;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return Give<int64_t>({from.engine}, requested, count, elements);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return Give(FactsOf(from.engine, ConvOfConfig(from)).notes, requested, count, elements);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
      const auto& config = *from.Part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      return Give<int64_t>({FactsOf(config.engine, ConvOfConfig(config)).workspace_bytes},
                           requested, count, elements);
    }
    default:
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
}

// A handle serves the device that was current when it was made.
bool ServesCudnn(cudnnHandle_t handle) {
  std::lock_guard<std::mutex> guard(cudnn_mutex);
  return CudnnHandles().contains(handle) && handle->device == LibraryDevice();
}

cudnnStatus_t Execute(cudnnHandle_t handle, const EmulatedDescriptor& plan,
                      const EmulatedDescriptor& pack) {
  if (!plan.finalized || !pack.finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  const auto& config = *plan.Part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const EmulatedConv conv = ConvOfConfig(config);
  const auto uids = pack.Values<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.Values<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (uids.size() != pointers.size()) return CUDNN_STATUS_BAD_PARAM;
  std::map<int64_t, void*> memory;
  for (size_t i = 0; i < uids.size(); ++i) memory[uids[i]] = pointers[i];
  for (const ConvTensor* tensor : {&conv.image, &conv.filter, &conv.result}) {
    const auto found = memory.find(tensor->uid);
    if (found == memory.end()) return CUDNN_STATUS_BAD_PARAM;
    if (reinterpret_cast<uintptr_t>(found->second) % tensor->alignment != 0) {
      return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
    }
  }
  const auto workspace = pack.Values<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  return ToCudnn(
      EnqueueLibraryWork(ConvWork(conv, config.engine, memory, workspace[0]), handle->stream));
}

}  // namespace

AttributeFacts FactsOf(cudnnBackendAttributeName_t name) {
  constexpr int64_t kAny = 1024;
  if (IsPart(name)) return {CUDNN_TYPE_BACKEND_DESCRIPTOR};
  if (IsFactor(name)) return {CUDNN_TYPE_FLOAT};
  switch (name) {
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
    case CUDNN_ATTR_CONVOLUTION_COMP_TYPE:
      return {CUDNN_TYPE_DATA_TYPE};
    case CUDNN_ATTR_CONVOLUTION_CONV_MODE:
      return {CUDNN_TYPE_CONVOLUTION_MODE};
    case CUDNN_ATTR_ENGINEHEUR_MODE:
      return {CUDNN_TYPE_HEUR_MODE};
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return {CUDNN_TYPE_NUMERICAL_NOTE};
    case CUDNN_ATTR_OPERATIONGRAPH_HANDLE:
    case CUDNN_ATTR_EXECUTION_PLAN_HANDLE:
      return {CUDNN_TYPE_HANDLE};
    case CUDNN_ATTR_VARIANT_PACK_WORKSPACE:
      return {CUDNN_TYPE_VOID_PTR};
    case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS:
      return {CUDNN_TYPE_VOID_PTR, kAny};
    case CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS:
    case CUDNN_ATTR_TENSOR_UNIQUE_ID:
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return {CUDNN_TYPE_INT64};
    default:
      return {CUDNN_TYPE_INT64, kAny};
  }
}

}  // namespace interp::cuda_emulation

namespace emulation = interp::cuda_emulation;

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = nullptr;
  if (const cudaError_t error = emulation::EnterLibrary("cudnnCreate"); error != cudaSuccess) {
    return emulation::ToCudnn(error);
  }
  std::lock_guard<std::mutex> guard(emulation::cudnn_mutex);
  *handle = new cudnnContext{.device = emulation::LibraryDevice(), .stream = nullptr};
  emulation::CudnnHandles().insert(*handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  std::lock_guard<std::mutex> guard(emulation::cudnn_mutex);
  if (emulation::CudnnHandles().erase(handle) == 0) return CUDNN_STATUS_BAD_PARAM;
  emulation::LeaveLibrary("cudnnDestroy", handle->device, handle->stream);
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!emulation::ServesCudnn(handle)) return CUDNN_STATUS_BAD_PARAM;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER:
      return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
    case CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED:
      return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT:
      return "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT";
    case CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH:
      return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
    case CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE:
      return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "CUDNN_UNKNOWN_STATUS";
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new emulation::EmulatedDescriptor{.type = type};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<emulation::EmulatedDescriptor*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* elements) {
  auto& to = *static_cast<emulation::EmulatedDescriptor*>(descriptor);
  if (to.finalized || count < 1 || elements == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const emulation::AttributeFacts facts = emulation::FactsOf(name);
  if (type != facts.type) return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
  if (count > facts.most) return CUDNN_STATUS_BAD_PARAM;
  const size_t bytes = static_cast<size_t>(count) * emulation::CudnnElementBytes(type);
  to.attributes[name] = {type, count, std::string(static_cast<const char*>(elements), bytes)};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested,
                                       int64_t* count, void* elements) {
  const auto& from = *static_cast<const emulation::EmulatedDescriptor*>(descriptor);
  if (!from.finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  if (type != emulation::FactsOf(name).type) return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
  return emulation::GiveAttribute(from, name, requested, count, elements);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  if (const cudaError_t error = emulation::EnterLibrary("cudnnBackendFinalize");
      error != cudaSuccess) {
    return emulation::ToCudnn(error);
  }
  auto& final = *static_cast<emulation::EmulatedDescriptor*>(descriptor);
  const cudnnStatus_t status = emulation::CheckFinal(final);
  final.finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  if (const cudaError_t error = emulation::EnterLibrary("cudnnBackendExecute");
      error != cudaSuccess) {
    return emulation::ToCudnn(error);
  }
  if (!emulation::ServesCudnn(handle)) return CUDNN_STATUS_BAD_PARAM;
  return emulation::Execute(handle, *static_cast<const emulation::EmulatedDescriptor*>(plan),
                            *static_cast<const emulation::EmulatedDescriptor*>(pack));
}
}
