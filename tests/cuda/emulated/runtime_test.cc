// The emulated calls of the CUDA runtime: what orders streams, what is counted, what fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/cuda/device_array.h"
#include "tests/cuda/row_kernels.h"
#include "tests/cuda_emulation/emulation.h"

namespace interp::cuda_test {
namespace {

using cuda_emulation::Machine;
using cuda_emulation::Options;

constexpr int kCount = 64;

std::unique_ptr<Machine> Start(const Options& options = {}) {
  auto machine = Machine::Start(options);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

cudaStream_t NewStream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), cudaSuccess);
  return stream;
}

struct Crossing {
  float result = 0;
  std::vector<cuda_emulation::Finding> findings;
};

// What a stream reads that another one filled with 1, plus 1, with or without a wait.
Crossing ReadAcrossStreams(const Options& options, bool wait) {
  const std::unique_ptr<Machine> machine = Start(options);
  const DeviceArray<float> first(std::vector<float>(kCount, 0.0f));
  const DeviceArray<float> second(std::vector<float>(kCount, 0.0f));
  cudaStream_t writer = NewStream();
  cudaStream_t reader = NewStream();
  cudaEvent_t written = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&written, cudaEventDisableTiming), cudaSuccess);
  EXPECT_TRUE(Fill(first.data(), 1.0f, kCount, writer).ok());
  EXPECT_EQ(cudaEventRecord(written, writer), cudaSuccess);
  if (wait) {
    EXPECT_EQ(cudaStreamWaitEvent(reader, written, 0), cudaSuccess);
  }
  EXPECT_TRUE(AddOne(first.data(), second.data(), kCount, reader).ok());
  EXPECT_EQ(cudaStreamSynchronize(reader), cudaSuccess);
  Crossing crossing{.result = second.Read()[0], .findings = machine->TakeFindings()};
  EXPECT_EQ(cudaEventDestroy(written), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(writer), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(reader), cudaSuccess);
  return crossing;
}

TEST(CudaRuntime, OrdersStreamsByEventsAlone) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Crossing crossing = ReadAcrossStreams({.seed = seed}, /*wait=*/true);
    ASSERT_EQ(crossing.result, 2.0f) << "seed " << seed;
    ASSERT_THAT(crossing.findings, ::testing::IsEmpty());
    if (ReadAcrossStreams({.seed = seed}, /*wait=*/false).result != 2.0f) ++wrong;
  }
  EXPECT_GT(wrong, 0) << "a dropped wait changes no result";
}

TEST(CudaRuntime, FindsADroppedWaitInEveryOrder) {
  if (!cuda_emulation::kShadow) GTEST_SKIP() << "kernels are not instrumented in this build";
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Crossing crossing = ReadAcrossStreams({.seed = seed}, /*wait=*/false);
    ASSERT_EQ(crossing.findings.size(), 1u) << "seed " << seed;
    ASSERT_EQ(crossing.findings[0].type, cuda_emulation::Finding::Type::kUnordered);
    ASSERT_THAT(crossing.findings[0].text, ::testing::HasSubstr(" with no event between"));
  }
}

TEST(CudaRuntime, FindsCopiesAndFreesThatNothingOrders) {
  const std::unique_ptr<Machine> machine = Start();
  cudaStream_t first = NewStream();
  cudaStream_t second = NewStream();
  constexpr size_t kBytes = kCount * sizeof(float);
  const DeviceArray<float> from(std::vector<float>(kCount, 1.0f));
  float* to = nullptr;
  ASSERT_EQ(cudaMallocAsync(&to, kBytes, first), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(to, from.data(), kBytes, cudaMemcpyDeviceToDevice, first), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(first), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(to, 0, kBytes, second), cudaSuccess);  // the host has waited
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(machine->TakeFindings(), ::testing::IsEmpty());
  ASSERT_EQ(cudaMemsetAsync(to, 0, kBytes, second), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(to, first), cudaSuccess);
  cudaDeviceSynchronize();
  EXPECT_THAT(machine->TakeFindings(), ::testing::Not(::testing::IsEmpty()));
}

TEST(CudaRuntime, OrdersStreamsThatAreThreads) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Options options{
        .seed = seed, .execution = SimOptions::Execution::kThreads, .max_delay_ns = 100'000};
    ASSERT_EQ(ReadAcrossStreams(options, /*wait=*/true).result, 2.0f) << "seed " << seed;
  }
}

TEST(CudaRuntime, AnswersLikeAComputerWithoutADriverWhileNoMachineLives) {
  int count = 7;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(count, 0);
  const std::unique_ptr<Machine> machine = Start({.devices = 0});
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  float* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 4), cudaErrorNoDevice);
}

TEST(CudaRuntime, HasOneMachineAtATime) {
  EXPECT_EQ(Machine::Start({.devices = kMaxDevices + 1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::unique_ptr<Machine> machine = Start();
  EXPECT_EQ(Machine::Start({}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(CudaRuntime, FailsTheCallThatIsAskedFor) {
  const std::unique_ptr<Machine> machine = Start();
  machine->FailCall("cudaMalloc", 2, cudaErrorMemoryAllocation);
  float* first = nullptr;
  float* second = nullptr;
  EXPECT_EQ(cudaMalloc(&first, 4), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&second, 4), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&second, 4), cudaSuccess);
  machine->FailCall("cudaLaunchKernel", 1, cudaErrorLaunchFailure);
  EXPECT_EQ(Fill(first, 1.0f, 1, nullptr).message(),
            "cannot launch a kernel: unspecified launch failure (cudaErrorLaunchFailure)");
}

TEST(CudaRuntime, LosesADeviceByAFailedKernelAndNoOther) {
  const std::unique_ptr<Machine> machine = Start({.devices = 2});
  machine->FailCall("cudaLaunchKernel", 1, cudaErrorLaunchFailure);
  float* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 4), cudaSuccess);
  EXPECT_FALSE(Fill(data, 1.0f, 1, nullptr).ok());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaMalloc(&data, 4), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  const DeviceArray<float> other(1);
  EXPECT_TRUE(Fill(other.data(), 3.0f, 1, nullptr).ok());
  EXPECT_EQ(other.Read()[0], 3.0f);
}

TEST(CudaRuntime, FailsOnStreamsOfALostDeviceWhicheverIsCurrent) {
  const std::unique_ptr<Machine> machine = Start({.devices = 2});
  cudaStream_t stream = NewStream();
  float* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 4), cudaSuccess);
  machine->FailCall("cudaLaunchKernel", 1, cudaErrorLaunchFailure);
  EXPECT_FALSE(Fill(data, 1.0f, 1, stream).ok());
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(data, 0, 4, stream), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST(CudaRuntimeDeathTest, KeepsTheHostOutOfTheMemoryOfADevice) {
  const std::unique_ptr<Machine> machine = Start();
  const DeviceArray<float> data(std::vector<float>(1, 1.0f));
  EXPECT_DEATH(*data.data() = 2.0f, "");
}

TEST(CudaRuntime, CountsCallsAndCopiesThatAreNotPinned) {
  const std::unique_ptr<Machine> machine = Start();
  const DeviceArray<float> data(kCount);
  float* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, kCount * sizeof(float), cudaHostAllocDefault), cudaSuccess);
  for (int i = 0; i < kCount; ++i) pinned[i] = static_cast<float>(i);
  machine->ResetCalls();
  cudaStream_t stream = NewStream();
  constexpr size_t kBytes = kCount * sizeof(float);
  ASSERT_EQ(cudaMemcpyAsync(data.data(), pinned, kBytes, cudaMemcpyHostToDevice, stream),
            cudaSuccess);
  EXPECT_EQ(machine->pageable_copies(), 0);
  std::vector<float> values(kCount);
  ASSERT_EQ(cudaMemcpyAsync(values.data(), data.data(), kBytes, cudaMemcpyDeviceToHost, stream),
            cudaSuccess);
  EXPECT_EQ(machine->pageable_copies(), 1);
  EXPECT_EQ(values.back(), kCount - 1.0f);
  EXPECT_EQ(machine->calls("cudaMemcpyAsync"), 2);
  EXPECT_EQ(machine->calls("cudaMalloc"), 0);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST(CudaRuntime, FreesInTheOrderOfTheStream) {
  const std::unique_ptr<Machine> machine = Start();
  cudaStream_t stream = NewStream();
  const DeviceArray<float> kept(kCount);
  float* data = nullptr;
  ASSERT_EQ(cudaMallocAsync(&data, kCount * sizeof(float), stream), cudaSuccess);
  ASSERT_TRUE(Fill(data, 1.0f, kCount, stream).ok());
  ASSERT_TRUE(AddOne(data, kept.data(), kCount, stream).ok());
  ASSERT_EQ(cudaFreeAsync(data, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(kept.Read()[0], 2.0f);
  EXPECT_THAT(machine->TakeFindings(), ::testing::IsEmpty());
  if (!cuda_emulation::kShadow) return;
  ASSERT_TRUE(AddOne(data, kept.data(), kCount, stream).ok());
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  const std::vector<cuda_emulation::Finding> findings = machine->TakeFindings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].text, ::testing::HasSubstr("of freed memory, out of bounds"));
}

TEST(CudaRuntime, HandsFreedMemoryOutAgainBeforeItHasNone) {
  const std::unique_ptr<Machine> machine = Start({.capacity_bytes = size_t{1} << 20});
  constexpr size_t kBytes = 600'000;
  for (int i = 0; i < 5; ++i) {
    float* data = nullptr;
    ASSERT_EQ(cudaMalloc(&data, kBytes), cudaSuccess);
    float* more = nullptr;
    ASSERT_EQ(cudaMalloc(&more, kBytes), cudaErrorMemoryAllocation);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    EXPECT_EQ(total_bytes - free_bytes, kBytes);
    ASSERT_EQ(cudaFree(data), cudaSuccess);
    ASSERT_EQ(cudaFree(data), cudaErrorInvalidValue);
  }
}

TEST(CudaRuntime, RunsFunctionsOfTheHostInTheOrderOfTheStream) {
  const std::unique_ptr<Machine> machine = Start();
  cudaStream_t stream = NewStream();
  float* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, sizeof(float), cudaHostAllocDefault), cudaSuccess);
  *pinned = 1.0f;
  ASSERT_TRUE(AddOne(pinned, pinned, 1, stream).ok());
  ASSERT_EQ(cudaLaunchHostFunc(
                stream, [](void* data) { *static_cast<float*>(data) *= 10.0f; }, pinned),
            cudaSuccess);
  ASSERT_TRUE(AddOne(pinned, pinned, 1, stream).ok());
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(*pinned, 21.0f);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST(CudaRuntime, RefusesCallsOfFunctionsOfTheHost) {
  const std::unique_ptr<Machine> machine = Start();
  cudaStream_t stream = NewStream();
  cudaError_t error = cudaSuccess;
  ASSERT_EQ(cudaLaunchHostFunc(
                stream,
                [](void* data) {
                  int device = 0;
                  *static_cast<cudaError_t*>(data) = cudaGetDevice(&device);
                },
                &error),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(error, cudaErrorNotPermitted);
  const auto findings = machine->TakeFindings();
  ASSERT_EQ(findings.size(), 1);
  EXPECT_EQ(findings[0].type, cuda_emulation::Finding::Type::kHostFunction);
  EXPECT_EQ(findings[0].text, "cudaGetDevice is called by a function of cudaLaunchHostFunc");
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(CudaRuntime, RefusesKernelsAndFillsOnStreamsOfAnotherDevice) {
  const std::unique_ptr<Machine> machine = Start({.devices = 2});
  const DeviceArray<float> data(std::vector<float>(kCount, 5.0f));
  cudaStream_t stream = NewStream();
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_FALSE(AddOne(data.data(), data.data(), kCount, stream).ok());
  EXPECT_EQ(cudaMemsetAsync(data.data(), 0, sizeof(float), stream), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_TRUE(AddOne(data.data(), data.data(), kCount, stream).ok());
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(data.Read()[0], 6.0f);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(CudaRuntime, MeasuresSimulatedTime) {
  const std::unique_ptr<Machine> machine = Start();
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&start, cudaEventDefault), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&end, cudaEventDefault), cudaSuccess);
  const DeviceArray<float> data(kCount);
  ASSERT_EQ(cudaEventRecord(start, nullptr), cudaSuccess);
  ASSERT_TRUE(Fill(data.data(), 1.0f, kCount, nullptr).ok());
  ASSERT_EQ(cudaEventRecord(end, nullptr), cudaSuccess);
  while (cudaEventQuery(end) == cudaErrorNotReady) {
  }
  float ms = 0;
  ASSERT_EQ(cudaEventElapsedTime(&ms, start, end), cudaSuccess);
  EXPECT_GT(ms, 0);
  EXPECT_EQ(cudaEventDestroy(start), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
}

TEST(CudaRuntime, RecordsEventsOnStreamsOfTheirDeviceAlone) {
  const std::unique_ptr<Machine> machine = Start({.devices = 2});
  cudaStream_t here = NewStream();
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDefault), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, here), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t there = NewStream();
  cudaEvent_t other = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&other, cudaEventDefault), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, there), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(other, here), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamWaitEvent(there, event, 0), cudaSuccess) << "any stream may wait";
  ASSERT_EQ(cudaEventRecord(other, there), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(other), cudaSuccess);
  float ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&ms, event, other), cudaErrorInvalidResourceHandle);
  for (cudaEvent_t old : {event, other}) EXPECT_EQ(cudaEventDestroy(old), cudaSuccess);
  for (cudaStream_t old : {here, there}) EXPECT_EQ(cudaStreamDestroy(old), cudaSuccess);
}

TEST(CudaRuntime, CopiesBetweenDevices) {
  const std::unique_ptr<Machine> machine = Start({.devices = 2});
  const DeviceArray<float> here(std::vector<float>(kCount, 5.0f));
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const DeviceArray<float> there(kCount);
  ASSERT_EQ(cudaMemcpyPeerAsync(there.data(), 1, here.data(), 0, kCount * sizeof(float), nullptr),
            cudaSuccess);
  EXPECT_EQ(there.Read().back(), 5.0f);
}

}  // namespace
}  // namespace interp::cuda_test
