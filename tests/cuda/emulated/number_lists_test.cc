// How numbers of the host come to a GPU, by calls of the driver.
#include "kernels/cuda/number_lists.h"

#include <numeric>
#include <vector>

#include "tests/cuda/device_test.h"

namespace interp::cuda_test {
namespace {

using testing::IsOk;

class CudaNumberLists : public CudaDeviceTest {
 protected:
  // Stores 0, 1, 2 ... as a row on `stream` does.
  static absl::Status Store(Stream& stream, int64_t count, int64_t* to) {
    std::vector<int64_t> numbers(static_cast<size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0);
    BoundArgs args;
    const KernelContext::PlaceServices place = {.stream = &stream};
    const KernelContext ctx(args, /*attrs=*/nullptr, {.place = &place});
    return stream.EnqueueKernel({}, [&] { return cuda::StoreNumbers(ctx, numbers, to); });
  }

  void ExpectCounting(Stream& stream, const int64_t* from, int64_t count) {
    ASSERT_THAT(stream.Synchronize(), IsOk());
    std::vector<int64_t> got(static_cast<size_t>(count));
    ASSERT_EQ(cudaMemcpy(got.data(), from, got.size() * sizeof(int64_t), cudaMemcpyDeviceToHost),
              cudaSuccess);
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], i);
  }

  static int64_t* Numbers(Device& device, int64_t count) {
    return reinterpret_cast<int64_t*>(testing::Floats(device, static_cast<size_t>(2 * count)));
  }
};

TEST_F(CudaNumberLists, FewTravelByValueAndManyInOneCopy) {
  const auto stream = testing::OpenStream(*device_);
  for (const int64_t count : {0, 1, 960, 961, 20'000}) {
    SCOPED_TRACE(count);
    int64_t* const to = Numbers(*device_, 20'000);
    machine_->ResetCalls();
    ASSERT_THAT(Store(*stream, count, to), IsOk());
    EXPECT_EQ(machine_->calls("cudaLaunchKernel"), count <= 960 ? (count + 479) / 480 : 0);
    EXPECT_EQ(machine_->calls("cudaMemcpyAsync"), count <= 960 ? 0 : 1);
    EXPECT_EQ(machine_->pageable_copies(), 0);
    ExpectCounting(*stream, to, count);
  }
}

TEST_F(CudaNumberLists, GraphsHoldTheirNumbersUpToABound) {
  constexpr int64_t kCount = cuda::kMostCapturedNumbers;
  const auto stream = testing::OpenStream(*device_);
  int64_t* const to = Numbers(*device_, kCount);
  ASSERT_THAT(stream->BeginCapture(), IsOk());
  EXPECT_THAT(Store(*stream, kCount, to), IsOk());
  EXPECT_THAT(Store(*stream, kCount + 1, to),
              testing::FailsWith(absl::StatusCode::kFailedPrecondition,
                                 "7681 numbers of the host cannot be captured in a graph"));
  const auto graph = stream->EndCapture();
  ASSERT_THAT(graph, IsOk());
  ASSERT_THAT((*graph)->Enqueue({}), IsOk());
  ExpectCounting(*stream, to, kCount);
}

}  // namespace
}  // namespace interp::cuda_test
