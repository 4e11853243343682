// Each mistake of a kernel is found whatever the order of threads, and nothing is found in a kernel
// that is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cuda/device_array.h"
#include "tests/cuda/row_kernels.h"
#include "tests/cuda_emulation/emulation.h"

namespace interp::cuda_test {
namespace {

using cuda_emulation::Finding;
using cuda_emulation::Machine;
using Type = cuda_emulation::Finding::Type;

struct Outcome {
  std::vector<Finding> findings;
  cudaError_t error = cudaSuccess;  // of the device, afterwards
  std::vector<float> output;
  float sum = 0;
};

constexpr int kRows = 3;

Outcome RunReverse(Change change, uint64_t seed) {
  auto machine = Machine::Start({.seed = seed});
  EXPECT_TRUE(machine.ok()) << machine.status();
  std::vector<float> rows(kRows * kColumns);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 17);
  const DeviceArray<float> input(rows);
  const DeviceArray<float> output(rows.size());
  const DeviceArray<float> sum(std::vector<float>(1, 0.0f));
  float on_host = 0;
  float* const to = change == Change::kHostPointer ? &on_host : sum.data();
  EXPECT_TRUE(ReverseRows(change, input.data(), output.data(), to, kRows, nullptr).ok());
  Outcome outcome;
  outcome.error = cudaDeviceSynchronize();
  outcome.findings = (*machine)->TakeFindings();
  if (outcome.error == cudaSuccess) {
    outcome.output = output.Read();
    outcome.sum = sum.Read()[0];
  }
  return outcome;
}

class ShadowMemory : public ::testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    if (!cuda_emulation::kShadow) GTEST_SKIP() << "kernels are not instrumented in this build";
  }

  // The kernel with `change` has a finding of `type` with `text`, and leaves the device as `error`
  // says.
  void ExpectFound(Change change, Type type, const std::string& text, cudaError_t error) {
    const Outcome outcome = RunReverse(change, GetParam());
    std::vector<std::string> texts;
    for (const Finding& finding : outcome.findings) {
      if (finding.type == type) texts.push_back(finding.text);
    }
    EXPECT_THAT(texts, ::testing::Contains(::testing::HasSubstr(text)));
    EXPECT_EQ(outcome.error, error);
  }
};

TEST(CudaEmulation, RunsAKernelInEachOrderToTheSameResult) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Outcome outcome = RunReverse(Change::kNone, seed);
    EXPECT_THAT(outcome.findings, ::testing::IsEmpty());
    ASSERT_EQ(outcome.error, cudaSuccess);
    for (int i = 0; i < kRows * kColumns; ++i) {
      const int from = i / kColumns * kColumns + kColumns - 1 - i % kColumns;
      ASSERT_EQ(outcome.output[i], static_cast<float>(from % 17)) << "seed " << seed;
    }
    EXPECT_GT(outcome.sum, 0);
  }
}

TEST_P(ShadowMemory, FindsARemovedBarrier) {
  ExpectFound(Change::kNoBarrier, Type::kRace, "of shared 'row' of 256 bytes", cudaSuccess);
}

TEST_P(ShadowMemory, FindsARemovedBarrierOfAWarp) {
  ExpectFound(Change::kNoWarpBarrier, Type::kRace, "of shared 'lanes' of 256 bytes", cudaSuccess);
}

TEST_P(ShadowMemory, FindsABarrierThatSomeThreadsDoNotReach) {
  ExpectFound(Change::kBarrierInBranch, Type::kBarrier,
              "the 64 threads never meet: ", cudaErrorLaunchFailure);
}

TEST_P(ShadowMemory, FindsABarrierThatSomeThreadsEndBefore) {
  ExpectFound(Change::kEarlyReturn, Type::kBarrier,
              "56 at the barrier at row_kernels.cu:", cudaErrorLaunchFailure);
}

TEST_P(ShadowMemory, FindsBlocksThatWriteTheSameElement) {
  ExpectFound(Change::kSwappedIndex, Type::kRace, "of an allocation of 768 bytes, which block (",
              cudaSuccess);
}

TEST_P(ShadowMemory, FindsAReadBeyondTheEnd) {
  ExpectFound(Change::kOneMore, Type::kOutOfBounds,
              "kernel Reverse, block (2,0,0), thread (63,0,0): reads 4 bytes at row_kernels.cu:",
              cudaErrorIllegalAddress);
}

TEST_P(ShadowMemory, FindsSharedMemoryThatNobodyWrote) {
  ExpectFound(Change::kNothingWritten, Type::kUninitialised, "byte 0 of shared 'row'", cudaSuccess);
}

TEST_P(ShadowMemory, FindsAWriteBeyondSharedMemory) {
  ExpectFound(Change::kOneTooSmall, Type::kOutOfBounds, "byte 252 of shared 'copy' of 252 bytes",
              cudaErrorIllegalAddress);
}

TEST_P(ShadowMemory, FindsAVectorThatIsNotAligned) {
  ExpectFound(Change::kMisalignedVector, Type::kMisaligned, "not aligned to 16",
              cudaErrorMisalignedAddress);
}

TEST_P(ShadowMemory, FindsASumThatIsNotAtomic) {
  ExpectFound(Change::kPlainSum, Type::kRace, "of an allocation of 4 bytes", cudaSuccess);
}

TEST_P(ShadowMemory, FindsALaneThatItsMaskLeavesOut) {
  ExpectFound(Change::kHalfMask, Type::kWarp, "which the mask 0000ffff leaves out",
              cudaErrorLaunchFailure);
}

TEST_P(ShadowMemory, FindsAShuffleThatSomeLanesDoNotReach) {
  ExpectFound(Change::kDivergentShuffle, Type::kWarp, "an operation of lanes ffffffff at ",
              cudaErrorLaunchFailure);
}

TEST_P(ShadowMemory, FindsMemoryOfTheHost) {
  ExpectFound(Change::kHostPointer, Type::kOutOfBounds, "no memory of the device",
              cudaErrorIllegalAddress);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ShadowMemory, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace interp::cuda_test
