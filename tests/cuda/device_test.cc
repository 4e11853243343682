// The device behind cuda:0: copies, events, pools, traces.
#include "tests/cuda/device_test.h"

#include <memory>
#include <string>
#include <vector>

#include "core/device/cuda/staging_buffers.h"
#include "core/device/device_heap.h"
#include "core/device/stream_pool.h"

namespace interp::cuda_test {
namespace {

using testing::Floats;
using testing::Get;
using testing::IsOk;
using testing::MakeEvent;
using testing::OpenStream;
using testing::Put;
using testing::Read;
using testing::Values;

TEST_F(CudaDeviceTest, CopiesPiecesOfAnySize) {
  const auto stream = OpenStream(*device_);
  constexpr size_t kPiece = cuda::StagingBuffers::kMaxBytes / sizeof(float);
  for (const size_t count : {size_t{1}, size_t{1023}, size_t{1025}, kPiece, 2 * kPiece + 7}) {
    float* const data = Floats(*device_, count);
    Put(*stream, data, UpTo(count));
    ASSERT_EQ(Read(*stream, data, count), UpTo(count));
  }
}

TEST_F(CudaDeviceTest, KeepsHostMemoryUntilACopyIsDone) {
  const auto stream = OpenStream(*device_);
  float* const data = Floats(*device_, 64);
  Put(*stream, data, UpTo(64));  // whose tensor is gone when this returns
  const Tensor back = Get(*stream, data, 64);
  const BufferRef& buffer = back.buffer();
  EXPECT_FALSE(buffer.unique());
  ASSERT_THAT(stream->Synchronize(), IsOk());
  EXPECT_TRUE(buffer.unique());
  EXPECT_EQ(Values<float>(back), UpTo(64));
}

TEST_F(CudaDeviceTest, OrdersStreamsByEvents) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Begin({.seed = seed});
    const auto first = OpenStream(*device_, "first");
    const auto second = OpenStream(*device_, "second");
    const auto event = MakeEvent(*device_);
    float* const data = Floats(*device_, 64);
    Put(*first, data, std::vector<float>(64, 1));
    ASSERT_THAT(AddOneOn(*first, data), IsOk());
    ASSERT_THAT(first->Record(*event), IsOk());
    ASSERT_THAT(second->Wait(*event), IsOk());
    ASSERT_THAT(AddOneOn(*second, data), IsOk());
    ASSERT_EQ(Read(*second, data, 64), std::vector<float>(64, 3)) << "seed " << seed;
    ASSERT_THAT(machine_->TakeFindings(), ::testing::IsEmpty());
  }
}

TEST_F(CudaDeviceTest, CopiesToADeviceWhatAnotherIsStillToWrite) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Begin({.devices = 2, .seed = seed});
    if (IsSkipped()) return;
    const auto other = cuda::MakeCudaDevice(1);
    ASSERT_THAT(other, IsOk());
    const auto from = OpenStream(*device_);
    const auto to = OpenStream(**other);
    const auto copied = MakeEvent(*device_);
    float* const data = Floats(*device_, 64);
    Put(*from, data, UpTo(64));
    ASSERT_THAT(AddOneOn(*from, data), IsOk());
    const Tensor between = Get(*from, data, 64);
    ASSERT_THAT(from->Record(*copied), IsOk());
    ASSERT_THAT(to->Wait(*copied), IsOk());
    float* const there = Floats(**other, 64);
    ASSERT_THAT(to->CopyToDevice(there, between.raw_data(), between.buffer(), 256, {}), IsOk());
    ASSERT_EQ(Read(*to, there, 64).back(), 65) << "seed " << seed;
  }
}

TEST_F(CudaDeviceTest, EventsThatWereNotRecordedHoldUpNobody) {
  const auto stream = OpenStream(*device_);
  {
    const auto used = MakeEvent(*device_);  // its handle is used again
    ASSERT_THAT(stream->Record(*used), IsOk());
  }
  const auto event = MakeEvent(*device_);
  EXPECT_TRUE(event->Passed());
  EXPECT_THAT(event->Synchronize(), IsOk());
  EXPECT_THAT(stream->Wait(*event), IsOk());
}

TEST_F(CudaDeviceTest, AsksForEventsAndLeavesNoError) {
  Begin({.execution = SimOptions::Execution::kThreads, .max_delay_ns = 30'000'000});
  const auto stream = OpenStream(*device_);
  const auto event = MakeEvent(*device_);
  float* const data = Floats(*device_, 64);
  bool waited = false;
  for (int i = 0; i < 20 && !waited; ++i) {
    Put(*stream, data, UpTo(64));
    ASSERT_THAT(stream->Record(*event), IsOk());
    waited = !event->Passed();
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  }
  const auto done = event->SynchronizeUntil(std::chrono::steady_clock::now());
  ASSERT_THAT(done, IsOk());
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_THAT(stream->Synchronize(), IsOk());
}

// Libraries refuse a workspace that is aligned to less.
TEST_F(CudaDeviceTest, PoolsGiveMemoryAlignedAsLibrariesExpect) {
  const auto stream = OpenStream(*device_);
  const std::shared_ptr<StreamPool> pool = StreamPool::Create(*device_, {});
  std::vector<BufferRef> taken;
  for (const size_t bytes : {640, 1, 100, 0, 65}) {
    absl::StatusOr<BufferRef> buffer = pool->ForStream(*stream).Allocate(bytes);
    ASSERT_THAT(buffer, IsOk());
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*buffer)->data) % device_->alignment(), 0u) << bytes;
    taken.push_back(*std::move(buffer));
  }
}

TEST_F(CudaDeviceTest, LeavesTheCurrentDeviceOfTheThreadAsItWas) {
  Begin({.devices = 2});
  if (IsSkipped()) return;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const auto stream = OpenStream(*device_);
  float* const data = Floats(*device_, 64);
  Put(*stream, data, UpTo(64));
  EXPECT_EQ(Read(*stream, data, 64), UpTo(64));
  int current = -1;
  ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 1);
}

TEST_F(CudaDeviceTest, TracesKernelsAndCopiesWithTheirTags) {
  const auto stream = OpenStream(*device_);
  float* const data = Floats(*device_, 64);
  Put(*stream, data, UpTo(64), {.tag = 1});  // before the trace
  device_->StartTrace();
  Put(*stream, data, UpTo(64), {.tag = 2});
  ASSERT_THAT(
      stream->EnqueueKernel({.tag = 3, .bytes = 512},
                            [&] { return AddOne(data, data, 64, cuda::HandleOf(*stream)); }),
      IsOk());
  const Tensor back = Get(*stream, data, 64, {.tag = 4});
  const std::vector<DeviceSpan> spans = device_->StopTrace();
  ASSERT_EQ(spans.size(), 3u);
  const WorkKind kinds[] = {WorkKind::kHostToDevice, WorkKind::kKernel, WorkKind::kDeviceToHost};
  const int64_t bytes[] = {256, 512, 256};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(spans[i].tag, i + 2);
    EXPECT_EQ(spans[i].kind, kinds[i]);
    EXPECT_EQ(spans[i].bytes, bytes[i]);
    EXPECT_LE(spans[i].start_ns, spans[i].end_ns);
  }
  EXPECT_THAT(device_->StopTrace(), ::testing::IsEmpty());
}

TEST_F(CudaDeviceTest, IsTheSameForAllWhoAskWhileItLives) {
  const auto again = cuda::MakeCudaDevice(0);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->get(), device_.get());
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_THAT(cuda::MakeCudaDevice(count).status().message(),
              ::testing::HasSubstr(
                  absl::StrCat("there is no cuda:", count, ": the driver has ", count, " GPU")));
}

TEST_F(CudaDeviceTest, IsAnotherForAnotherGpu) {
  Begin({.devices = 2});
  if (IsSkipped()) return;
  const auto other = cuda::MakeCudaDevice(1);
  ASSERT_THAT(other, IsOk());
  EXPECT_NE(other->get(), device_.get());
  EXPECT_EQ((*other)->place(), (Place{PlaceKind::kCuda, 1}));
}

TEST_F(CudaDeviceTest, HoldsParameters) {
  DeviceHeap heap(device_);
  const Tensor host = testing::VectorOf<float>(UpTo(100));
  const auto uploaded = heap.Upload(host);
  ASSERT_THAT(uploaded, IsOk());
  const auto back = heap.Download(*uploaded, SystemAllocator());
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(Values<float>(*back), UpTo(100));
}

}  // namespace
}  // namespace interp::cuda_test
