// What copies between GPUs ask the driver for, and what happens when that fails.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/device/stream_pool.h"
#include "tests/cuda/device_test.h"

namespace interp::cuda_test {
namespace {

using testing::Floats;
using testing::IsOk;
using testing::OpenStream;

class CudaPeerCalls : public CudaDeviceTest {
 protected:
  void BeginTwo() {
    other_.reset();
    Begin({.devices = 2});
    auto other = cuda::MakeCudaDevice(1);
    ASSERT_THAT(other, IsOk());
    other_ = *std::move(other);
  }
  void TearDown() override {
    other_.reset();
    CudaDeviceTest::TearDown();
  }

  // The second GPU copies memory of the first one's pool, which is then handed on and overwritten.
  absl::Status Use(std::vector<float>& result) {
    INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> from, device_->CreateStream("a", 0));
    INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> to, other_->CreateStream("b", 0));
    const std::shared_ptr<StreamPool> pool = StreamPool::Create(*device_);
    const std::shared_ptr<StreamPool> there = StreamPool::Create(*other_);
    const Tensor host = testing::VectorOf<float>(UpTo(64));
    Tensor x = host;
    x.DropMemory();
    Tensor y = x;
    INTERP_RETURN_IF_ERROR(x.Allocate(pool->ForStream(*from)));
    INTERP_RETURN_IF_ERROR(y.Allocate(there->ForStream(*to)));
    INTERP_RETURN_IF_ERROR(
        from->CopyToDevice(x.mutable_raw_data(), host.raw_data(), host.buffer(), 256, {}));
    INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceEvent> written, from->CreateEvent());
    INTERP_RETURN_IF_ERROR(from->Record(*written));
    INTERP_RETURN_IF_ERROR(to->Wait(*written));
    INTERP_RETURN_IF_ERROR(
        to->CopyFromPeer(y.mutable_raw_data(), x.raw_data(), device_->place(), 256, {}));
    pool->RecordUse(*x.buffer().get(), *to);
    x.DropMemory();
    INTERP_RETURN_IF_ERROR(x.Allocate(pool->ForStream(*from)));
    INTERP_RETURN_IF_ERROR(from->Fill(x.mutable_raw_data(), 0, 256));
    Tensor back = testing::VectorOf<float>(std::vector<float>(64, 0));
    INTERP_RETURN_IF_ERROR(
        to->CopyToHost(back.mutable_raw_data(), back.buffer(), y.raw_data(), 256, {}));
    INTERP_RETURN_IF_ERROR(to->Synchronize());
    INTERP_RETURN_IF_ERROR(from->Synchronize());
    result = testing::Values<float>(back);
    return absl::OkStatus();
  }

  std::shared_ptr<Device> other_;
};

TEST_F(CudaPeerCalls, AskForAccessOnce) {
  BeginTwo();
  std::vector<float> result;
  machine_->ResetCalls();
  for (int i = 0; i < 3; ++i) ASSERT_THAT(Use(result), IsOk());
  EXPECT_EQ(result, UpTo(64));
  EXPECT_EQ(machine_->calls("cudaDeviceEnablePeerAccess"), 1);
  EXPECT_EQ(machine_->calls("cudaMemcpyPeerAsync"), 3);
  EXPECT_EQ(machine_->pageable_copies(), 0);
}

// Without access the driver finds a way. Order is kept whatever fails: a use is right or an error.
TEST_F(CudaPeerCalls, ThatFailAreErrorsOrTakeAnotherWay) {
  BeginTwo();
  std::vector<float> result;
  machine_->ResetCalls();
  ASSERT_THAT(Use(result), IsOk());
  const std::map<std::string, int64_t> calls = machine_->calls();
  for (const cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorLaunchFailure}) {
    for (const auto& [call, times] : calls) {
      for (int nth = 1; nth <= times; ++nth) {
        SCOPED_TRACE(absl::StrCat(call, " ", nth));
        BeginTwo();
        machine_->FailCall(call, nth, error);
        result.clear();
        const absl::Status status = Use(result);
        EXPECT_TRUE(!status.ok() || result == UpTo(64));
        const bool access =
            call == "cudaDeviceCanAccessPeer" || call == "cudaDeviceEnablePeerAccess";
        EXPECT_TRUE(!access || error != cudaErrorMemoryAllocation || status.ok()) << status;
        if (call == "cudaMemcpyPeerAsync") {
          EXPECT_THAT(status.message(), ::testing::HasSubstr("cannot copy from another GPU"));
        }
        EXPECT_THAT(machine_->TakeFindings(), ::testing::IsEmpty());
        if (error != cudaErrorMemoryAllocation) continue;
        EXPECT_THAT(Use(result), IsOk());
        EXPECT_EQ(result, UpTo(64));
      }
    }
  }
}

TEST_F(CudaPeerCalls, AreNotForGraphs) {
  BeginTwo();
  const auto to = OpenStream(*other_);
  float* const from = Floats(*device_, 64);
  float* const there = Floats(*other_, 64);
  ASSERT_THAT(to->BeginCapture(), IsOk());
  EXPECT_THAT(to->CopyFromPeer(there, from, device_->place(), 256, {}).message(),
              ::testing::HasSubstr("a copy of memory of another GPU cannot be captured"));
  EXPECT_THAT(to->EndCapture(), IsOk());
}

}  // namespace
}  // namespace interp::cuda_test
