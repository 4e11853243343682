// What the emulated NCCL and cuDNN refuse, as the libraries do.
#include <cudnn_graph.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/cuda/device_array.h"
#include "tests/cuda/emulated/start_machine.h"

namespace interp::cuda_test::library_refusals_test {
namespace {

constexpr size_t kCount = 8;

// A communicator of one rank.
ncclComm_t JoinAlone() {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, /*size=*/1, id, /*rank=*/0, &config), ncclInProgress);
  return comm;
}

// What becomes of a call that goes on by itself.
ncclResult_t EndOf(ncclComm_t comm, ncclResult_t result) {
  while (result == ncclInProgress) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
    result = asked == ncclSuccess ? state : asked;
  }
  return result;
}

TEST(NcclRefusals, OfMemoryThatOverlapsOtherwiseThanInPlace) {
  const auto machine = StartMachine();
  const DeviceArray<float> data(std::vector<float>(2 * kCount, 3.0F));
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), cudaSuccess);
  ncclComm_t comm = JoinAlone();
  ASSERT_EQ(EndOf(comm, ncclInProgress), ncclSuccess);
  const auto add_up = [&](float* in, float* out) {
    return EndOf(comm, ncclAllReduce(in, out, kCount, ncclFloat32, ncclSum, comm, stream));
  };
  float* const at = data.data();
  EXPECT_EQ(add_up(at, at + 1), ncclInvalidArgument);
  EXPECT_EQ(add_up(at + kCount - 1, at), ncclInvalidArgument);
  EXPECT_EQ(add_up(at, at), ncclSuccess);
  EXPECT_EQ(add_up(at, at + kCount), ncclSuccess) << "neighbours";
  const auto gather = [&](float* in, float* out) {
    return EndOf(comm, ncclAllGather(in, out, kCount, ncclFloat32, comm, stream));
  };
  EXPECT_EQ(gather(at, at), ncclSuccess) << "the place of this rank";
  EXPECT_EQ(gather(at + 1, at), ncclInvalidArgument);
  const auto scatter = [&](float* in, float* out) {
    return EndOf(comm, ncclReduceScatter(in, out, kCount, ncclFloat32, ncclSum, comm, stream));
  };
  EXPECT_EQ(scatter(at, at), ncclSuccess);
  EXPECT_EQ(scatter(at, at + 1), ncclInvalidArgument);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclSend(at, kCount, ncclFloat32, 0, comm, stream), ncclSuccess);
  EXPECT_EQ(ncclRecv(at + 1, kCount, ncclFloat32, 0, comm, stream), ncclSuccess);
  EXPECT_EQ(EndOf(comm, ncclGroupEnd()), ncclInvalidArgument);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_THAT(machine->TakeFindings(), ::testing::IsEmpty());
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// A descriptor of cuDNN, gone at the end.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    EXPECT_EQ(cudnnBackendCreateDescriptor(type, &handle_), CUDNN_STATUS_SUCCESS);
  }
  ~Descriptor() { cudnnBackendDestroyDescriptor(handle_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  template <typename T>
  cudnnStatus_t Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                    const std::vector<T>& values) {
    return cudnnBackendSetAttribute(handle_, name, type, std::ssize(values), values.data());
  }
  cudnnStatus_t SetNumbers(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    return Set(name, CUDNN_TYPE_INT64, values);
  }
  cudnnStatus_t Finalize() { return cudnnBackendFinalize(handle_); }
  cudnnBackendDescriptor_t handle() const { return handle_; }

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

// All of a tensor but its alignment.
void DescribeTensor(Descriptor& tensor) {
  EXPECT_EQ(tensor.Set<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
                                        {CUDNN_DATA_FLOAT}),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(tensor.SetNumbers(CUDNN_ATTR_TENSOR_DIMENSIONS, {1, 2, 3, 4}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(tensor.SetNumbers(CUDNN_ATTR_TENSOR_STRIDES, {24, 12, 4, 1}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(tensor.SetNumbers(CUDNN_ATTR_TENSOR_UNIQUE_ID, {7}), CUDNN_STATUS_SUCCESS);
}

TEST(CudnnRefusals, OfAttributesOfAnotherTypeOrNumber) {
  const auto machine = StartMachine();
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_EQ(tensor.Set<int32_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_DATA_TYPE, {1, 2, 3, 4}),
            CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  EXPECT_EQ(tensor.SetNumbers(CUDNN_ATTR_TENSOR_DATA_TYPE, {CUDNN_DATA_FLOAT}),
            CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  EXPECT_EQ(tensor.SetNumbers(CUDNN_ATTR_TENSOR_UNIQUE_ID, {7, 8}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(tensor.SetNumbers(CUDNN_ATTR_TENSOR_UNIQUE_ID, {}), CUDNN_STATUS_BAD_PARAM);
  Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  EXPECT_EQ(operation.Set<double>(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_INT64,
                                  {1.0}),
            CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
}

TEST(CudnnRefusals, OfWhatIsNotCompleteOrChangesLater) {
  const auto machine = StartMachine();
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  DescribeTensor(tensor);
  EXPECT_EQ(tensor.Finalize(), CUDNN_STATUS_BAD_PARAM) << "it has no alignment";
  ASSERT_EQ(tensor.SetNumbers(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {16}), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(tensor.Finalize(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(tensor.SetNumbers(CUDNN_ATTR_TENSOR_UNIQUE_ID, {8}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(tensor.Finalize(), CUDNN_STATUS_BAD_PARAM);
}

TEST(CudnnRefusals, OfPartsThatAreNotFinal) {
  const auto machine = StartMachine();
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  const Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  ASSERT_EQ(graph.Set<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, {handle}),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(graph.Set<cudnnBackendDescriptor_t>(
                CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, {operation.handle()}),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(graph.Finalize(), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  int64_t count = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(graph.handle(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                     CUDNN_TYPE_INT64, 1, &count, &count),
            CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  EXPECT_EQ(cudnnDestroy(handle), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnDestroy(handle), CUDNN_STATUS_BAD_PARAM);
}

TEST(CudnnRefusals, OfAHandleOfAnotherGpu) {
  auto machine = Machine::Start({.devices = 2});
  ASSERT_THAT(machine, testing::IsOk());
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudnnSetStream(handle, nullptr), CUDNN_STATUS_BAD_PARAM);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudnnSetStream(handle, nullptr), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnDestroy(handle), CUDNN_STATUS_SUCCESS);
}

}  // namespace
}  // namespace interp::cuda_test::library_refusals_test
