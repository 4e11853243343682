// What the device behind cuda:0 asks the driver for, and what happens when that fails.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/device/device_maker.h"
#include "core/device/stream_pool.h"
#include "tests/cuda/device_test.h"

namespace interp::cuda_test {
namespace {

using testing::Floats;
using testing::IsOk;
using testing::MakeEvent;
using testing::OpenStream;
using testing::Put;
using testing::Read;
using testing::Values;

using CudaDeviceCalls = CudaDeviceTest;

TEST_F(CudaDeviceCalls, WaitsEndAtTheirDeadline) {
  Begin({.execution = SimOptions::Execution::kThreads, .max_delay_ns = 300'000'000});
  const auto stream = OpenStream(*device_);
  float* const data = Floats(*device_, 64);
  const auto event = MakeEvent(*device_);
  const auto now = [] { return std::chrono::steady_clock::now(); };
  bool ended_early = false;
  for (int i = 0; i < 20 && !ended_early; ++i) {
    Put(*stream, data, UpTo(64));
    ASSERT_THAT(stream->Record(*event), IsOk());
    const absl::StatusOr<bool> done =
        event->SynchronizeUntil(now() + std::chrono::microseconds(100));
    ASSERT_THAT(done, IsOk());
    ended_early = !*done;
  }
  EXPECT_TRUE(ended_early);
  const absl::StatusOr<bool> done = event->SynchronizeUntil(now() + std::chrono::hours(1));
  ASSERT_THAT(done, IsOk());
  EXPECT_TRUE(*done);
}

TEST_F(CudaDeviceCalls, AsksTheDriverForNothingWhenWarm) {
  const auto stream = OpenStream(*device_);
  float* const data = Floats(*device_, 1000);
  const auto step = [&] {
    const auto event = MakeEvent(*device_);
    Put(*stream, data, UpTo(1000));
    ASSERT_THAT(AddOneOn(*stream, data), IsOk());
    ASSERT_THAT(stream->Record(*event), IsOk());
    ASSERT_EQ(Read(*stream, data, 1000).back(), 1000);
  };
  step();
  step();
  machine_->ResetCalls();
  for (int i = 0; i < 10; ++i) step();
  for (const char* const call :
       {"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost", "cudaDeviceSynchronize",
        "cudaEventCreateWithFlags", "cudaEventDestroy", "cudaStreamCreateWithPriority"}) {
    EXPECT_EQ(machine_->calls(call), 0) << call;
  }
  EXPECT_EQ(machine_->pageable_copies(), 0);
}

TEST_F(CudaDeviceCalls, SaysWhyThereIsNone) {
  Begin({.devices = 2});
  const DeviceMaker* const maker = FindDeviceMaker(PlaceKind::kCuda);
  ASSERT_NE(maker, nullptr);
  const auto found = maker->describe();
  ASSERT_THAT(found, IsOk());
  EXPECT_THAT(*found, ::testing::ElementsAre(::testing::StartsWith("emulated GPU, "),
                                             ::testing::HasSubstr("compute capability 9.0")));
  device_.reset();
  machine_.reset();
  EXPECT_THAT(maker->describe().status().message(),
              ::testing::HasSubstr("no GPU can be used: CUDA driver version is insufficient"));
  EXPECT_EQ(maker->make(0).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CudaDeviceCalls, IsLostByErrorsThatItDoesNotSurvive) {
  Begin({.devices = 2});
  const auto stream = OpenStream(*device_);
  const auto event = MakeEvent(*device_);
  float* const data = Floats(*device_, 64);
  const auto other = cuda::MakeCudaDevice(1);
  ASSERT_THAT(other, IsOk());
  machine_->FailCall("cudaLaunchKernel", 1, cudaErrorIllegalAddress);
  const absl::Status failed = AddOneOn(*stream, data);
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(failed.message(), ::testing::AllOf(::testing::HasSubstr("cuda:0 is lost"),
                                                 ::testing::HasSubstr("illegal memory access")));
  EXPECT_EQ(device_->status(), failed);
  EXPECT_EQ(stream->Synchronize(), failed);
  EXPECT_EQ(event->Synchronize(), failed);
  EXPECT_EQ(device_->AllocateRaw(8).status(), failed);
  EXPECT_EQ(device_->Synchronize(), failed);
  EXPECT_THAT((*other)->Synchronize(), IsOk());
}

// What one use of a device does: streams, copies, kernels, events, a trace, parameters.
absl::Status UseDevice(Device& device, std::vector<float>& result) {
  INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> first, device.CreateStream("a", 0));
  INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> second, device.CreateStream("b", -1));
  INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceEvent> event, device.CreateEvent());
  const std::shared_ptr<StreamPool> pool = StreamPool::Create(device);
  Tensor host = testing::VectorOf<float>(std::vector<float>(64, 1));
  Tensor on_device = host;
  on_device.DropMemory();
  INTERP_RETURN_IF_ERROR(on_device.Allocate(pool->ForStream(*first)));
  float* const data = on_device.mutable_data<float>();
  INTERP_RETURN_IF_ERROR(first->CopyToDevice(data, host.raw_data(), host.buffer(), 256, {}));
  INTERP_RETURN_IF_ERROR(first->Record(*event));
  INTERP_RETURN_IF_ERROR(second->Wait(*event));
  INTERP_RETURN_IF_ERROR(
      second->EnqueueKernel({}, [&] { return AddOne(data, data, 64, cuda::HandleOf(*second)); }));
  pool->RecordUse(*on_device.buffer().get(), *second);
  Tensor back = testing::VectorOf<float>(std::vector<float>(64, 0));
  INTERP_RETURN_IF_ERROR(second->CopyToHost(back.mutable_raw_data(), back.buffer(), data, 256, {}));
  INTERP_RETURN_IF_ERROR(second->Synchronize());
  INTERP_RETURN_IF_ERROR(device.Synchronize());
  result = Values<float>(back);
  return absl::OkStatus();
}

TEST_F(CudaDeviceCalls, EveryFailingCallIsAnErrorAndTheNextUseIsRight) {
  std::vector<float> result;
  machine_->ResetCalls();
  ASSERT_THAT(UseDevice(*device_, result), IsOk());
  const std::map<std::string, int64_t> calls = machine_->calls();
  // How a thing is given back has no way to fail.
  const std::vector<std::string> silent = {"cudaFree",         "cudaFreeHost",  "cudaStreamDestroy",
                                           "cudaEventDestroy", "cudaSetDevice", "cudaEventQuery"};
  int failures = 0;
  for (const auto& [call, times] : calls) {
    for (int nth = 1; nth <= times; ++nth) {
      SCOPED_TRACE(absl::StrCat(call, " ", nth));
      Begin({});  // all is made anew, as in the first use
      machine_->FailCall(call, nth, cudaErrorMemoryAllocation);
      const absl::Status status = UseDevice(*device_, result);
      if (std::find(silent.begin(), silent.end(), call) == silent.end()) {
        failures += status.ok() ? 0 : 1;
      }
      machine_->FailCall(call, 1 << 30, cudaSuccess);  // which may not have come to it
      EXPECT_THAT(UseDevice(*device_, result), IsOk());
      EXPECT_EQ(result, std::vector<float>(64, 2));
      EXPECT_THAT(machine_->TakeFindings(), ::testing::IsEmpty());
    }
  }
  EXPECT_GE(failures, 12);
}

TEST_F(CudaDeviceCalls, EveryCallThatLosesItIsAClearError) {
  std::vector<float> result;
  machine_->ResetCalls();
  ASSERT_THAT(UseDevice(*device_, result), IsOk());
  for (const auto& [call, times] : machine_->calls()) {
    for (int nth = 1; nth <= times; ++nth) {
      SCOPED_TRACE(absl::StrCat(call, " ", nth));
      Begin({.devices = 2});
      machine_->FailCall(call, nth, cudaErrorLaunchFailure);
      const absl::Status status = UseDevice(*device_, result);
      if (!status.ok()) {
        EXPECT_THAT(status.message(), ::testing::HasSubstr("launch failure"));
      }
      const auto other = cuda::MakeCudaDevice(1);
      ASSERT_THAT(other, IsOk());
      EXPECT_THAT(UseDevice(**other, result), IsOk());
      EXPECT_EQ(result, std::vector<float>(64, 2));
      device_.reset();
    }
  }
}

TEST_F(CudaDeviceCalls, GraphsRepeatWhatWasCaptured) {
  const auto stream = OpenStream(*device_);
  float* const data = Floats(*device_, 64);
  float* const copy = Floats(*device_, 64);
  Put(*stream, data, std::vector<float>(64, 1));
  ASSERT_THAT(stream->BeginCapture(), IsOk());
  ASSERT_THAT(AddOneOn(*stream, data), IsOk());
  ASSERT_THAT(AddOneOn(*stream, data), IsOk());
  ASSERT_THAT(stream->CopyOnDevice(copy, data, 64 * sizeof(float), {}), IsOk());
  absl::StatusOr<std::unique_ptr<WorkGraph>> graph = stream->EndCapture();
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(Read(*stream, data, 64), std::vector<float>(64, 1));  // nothing has run yet
  machine_->ResetCalls();
  for (int i = 0; i < 3; ++i) ASSERT_THAT((*graph)->Enqueue({}), IsOk());
  EXPECT_EQ(machine_->calls("cudaGraphLaunch"), 3);
  EXPECT_EQ(machine_->calls("cudaLaunchKernel"), 0);
  graph->reset();
  EXPECT_EQ(Read(*stream, copy, 64), std::vector<float>(64, 7));
}

TEST_F(CudaDeviceCalls, GraphsHoldNoHostMemoryAndNoEvents) {
  const auto stream = OpenStream(*device_);
  const auto event = MakeEvent(*device_);
  const Tensor host = Tensor::Of<float>(Shape({64}), UpTo(64));
  float* const data = Floats(*device_, 64);
  EXPECT_THAT(stream->EndCapture().status(), ::testing::Not(IsOk()));
  ASSERT_THAT(stream->BeginCapture(), IsOk());
  for (const absl::Status& refused :
       {stream->CopyToDevice(data, host.raw_data(), host.buffer(), 256, {}), stream->Record(*event),
        stream->BeginCapture()}) {
    EXPECT_THAT(refused.ToString(), ::testing::HasSubstr("cannot be captured in a graph"));
  }
  ASSERT_THAT(AddOneOn(*stream, data), IsOk());
  ASSERT_THAT(stream->EndCapture(), IsOk());
  Put(*stream, data, UpTo(64));  // as before
  EXPECT_EQ(Read(*stream, data, 64), UpTo(64));
}

TEST_F(CudaDeviceCalls, CapturesThatFailLeaveTheStreamAsItWas) {
  for (const char* const call :
       {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate"}) {
    SCOPED_TRACE(call);
    Begin({});
    const auto stream = OpenStream(*device_);
    float* const data = Floats(*device_, 64);
    Put(*stream, data, std::vector<float>(64, 1));
    machine_->FailCall(call, 1, cudaErrorMemoryAllocation);
    absl::Status failed = stream->BeginCapture();
    if (failed.ok()) failed = stream->EndCapture().status();
    EXPECT_THAT(failed, ::testing::Not(IsOk()));
    ASSERT_THAT(AddOneOn(*stream, data), IsOk());
    EXPECT_EQ(Read(*stream, data, 64), std::vector<float>(64, 2));
  }
}

TEST_F(CudaDeviceCalls, UseOfOneGpuMakesNoContextOnAnother) {
  Begin({.devices = 2});
  const auto other = cuda::MakeCudaDevice(1);
  ASSERT_THAT(other, IsOk());
  const auto use = [&other] {
    const auto stream = OpenStream(**other);
    const auto event = MakeEvent(**other);
    float* const data = Floats(**other, 64);
    Put(*stream, data, UpTo(64));
    ASSERT_THAT(AddOneOn(*stream, data), IsOk());
    ASSERT_THAT(stream->Record(*event), IsOk());
    EXPECT_THAT(event->Synchronize(), IsOk());
    EXPECT_EQ(Read(*stream, data, 64).back(), 65);
  };
  use();
  std::thread(use).join();
  const auto stream = OpenStream(**other);
  const auto event = MakeEvent(**other);
  ASSERT_THAT(stream->Record(*event), IsOk());
  std::thread([&] { event->Passed(); }).join();
  EXPECT_EQ(machine_->calls("cuDevicePrimaryCtxRetain"), 1);
}

TEST_F(CudaDeviceCalls, AThreadThatHasUsedNoGpuMayGiveOneBack) {
  Begin({.devices = 2});
  absl::StatusOr<std::shared_ptr<Device>> other = cuda::MakeCudaDevice(1);
  ASSERT_THAT(other, IsOk());
  {
    const auto stream = OpenStream(**other);
    const auto event = MakeEvent(**other);
    Put(*stream, Floats(**other, 64), UpTo(64));
    ASSERT_THAT(stream->Record(*event), IsOk());
    EXPECT_THAT(event->Synchronize(), IsOk());
  }
  std::thread([&] { other->reset(); }).join();
  EXPECT_EQ(machine_->calls("cuDevicePrimaryCtxRetain"), 1);
}

TEST_F(CudaDeviceCalls, ErrorsOfOthersAreNotBlamedOnALaunch) {
  Begin({.devices = 2});
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  const auto other = cuda::MakeCudaDevice(1);
  ASSERT_THAT(other, IsOk());
  const auto stream = OpenStream(**other);
  float* const data = Floats(**other, 64);
  // The second call of a use is the one that makes the device before the current one again.
  machine_->FailCall("cudaSetDevice", 2, cudaErrorMemoryAllocation);
  EXPECT_THAT(stream->Fill(data, 0, 64 * sizeof(float)), IsOk());
  EXPECT_THAT(AddOneOn(*stream, data), IsOk());
  // Of the host program, on this thread.
  EXPECT_EQ(cudaSetDevice(7), cudaErrorInvalidDevice);
  EXPECT_THAT(AddOneOn(*stream, data), IsOk());
  EXPECT_EQ(Read(*stream, data, 64), std::vector<float>(64, 2));
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(CudaDeviceCalls, EventsOrderAlthoughTheDeviceCannotBeMadeTheCurrentOne) {
  for (const char* call : {"cudaSetDevice", "cudaGetDevice"}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(absl::StrCat(call, ", seed ", seed));
      Begin({.devices = 2, .seed = seed});
      ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
      const auto other = cuda::MakeCudaDevice(1);
      ASSERT_THAT(other, IsOk());
      const auto first = OpenStream(**other, "first");
      const auto second = OpenStream(**other, "second");
      const auto event = MakeEvent(**other);
      float* const data = Floats(**other, 64);
      Put(*first, data, UpTo(64));
      machine_->FailCall(call, 1, cudaErrorMemoryAllocation);
      EXPECT_THAT(first->Record(*event), IsOk());
      EXPECT_THAT(second->Wait(*event), IsOk());
      EXPECT_THAT(AddOneOn(*second, data), IsOk());
      EXPECT_THAT(second->Record(*event), IsOk());
      machine_->FailCall(call, 1, cudaErrorMemoryAllocation);
      EXPECT_THAT(first->Wait(*event), IsOk());
      EXPECT_EQ(Read(*first, data, 64)[0], 2);
      EXPECT_THAT(machine_->TakeFindings(), ::testing::IsEmpty());
    }
  }
}

TEST_F(CudaDeviceCalls, StagingBuffersAreInUseUntilTheirCopiesAreKnownToHaveEnded) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Begin({.devices = 2, .seed = seed});
    const auto stream = OpenStream(*device_);
    float* const first = Floats(*device_, 64);
    float* const second = Floats(*device_, 64);
    Put(*stream, first, UpTo(64));
    machine_->FailCall("cudaEventQuery", 1, cudaErrorMemoryAllocation);
    Put(*stream, second, std::vector<float>(64, -1));
    EXPECT_EQ(Read(*stream, first, 64), UpTo(64));
    EXPECT_EQ(Read(*stream, second, 64), std::vector<float>(64, -1));
  }
}

// Memory of the host that takes its time to go once it may.
class SlowMemory final : public Allocator {
 public:
  absl::StatusOr<BufferRef> Allocate(size_t size_bytes) override {
    memory_.resize(size_bytes);
    auto buffer = std::make_unique<Buffer>();
    buffer->data = memory_.data();
    buffer->size_bytes = size_bytes;
    buffer->owner = this;
    return BufferRef::First(buffer.release());
  }
  MemoryStats stats() const override { return {}; }
  void ResetPeak() override {}

  std::latch goes{1};
  std::latch may_go{1};
  std::atomic<bool> gone = false;

 private:
  void Free(Buffer* buffer) override {
    goes.count_down();
    may_go.wait();
    for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
    delete buffer;
    gone = true;
  }

  std::vector<char> memory_;
};

TEST_F(CudaDeviceCalls, StreamsOfALostDeviceEndAfterTheCopyThatTheDriverRuns) {
  Begin({.execution = SimOptions::Execution::kThreads});
  auto copying = OpenStream(*device_);
  const auto faulty = OpenStream(*device_);
  float* const data = Floats(*device_, 64);
  Put(*copying, data, UpTo(64));
  SlowMemory memory;
  absl::StatusOr<BufferRef> host = memory.Allocate(256);
  ASSERT_THAT(host, IsOk());
  void* const target = host->get()->data;
  // The driver has the last reference.
  std::latch may_copy{1};
  const auto wait = [](void* latch) { static_cast<std::latch*>(latch)->wait(); };
  ASSERT_EQ(cudaLaunchHostFunc(cuda::HandleOf(*copying), wait, &may_copy), cudaSuccess);
  ASSERT_THAT(copying->CopyToHost(target, *std::move(host), data, 256, {}), IsOk());
  may_copy.count_down();
  memory.goes.wait();
  machine_->FailCall("cudaLaunchKernel", 1, cudaErrorIllegalAddress);
  EXPECT_FALSE(AddOneOn(*faulty, data).ok());
  memory.may_go.count_down();
  copying.reset();
  EXPECT_TRUE(memory.gone);
}

}  // namespace
}  // namespace interp::cuda_test
