// What whole runs on a GPU ask the driver for, and what happens when it fails.
#include <gmock/gmock.h>
#include <gpu_machine.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda/emulated/repeated_step.h"
#include "tests/cuda/emulated/start_machine.h"
#include "tests/testing/matchers.h"

namespace interp::cuda_test {
namespace {

using testing::IsOk;

constexpr const char* kProgram = "convnet_bn";

class CudaRun : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaRun, AsksTheDriverForNothingWhenWarm) {
  const std::unique_ptr<Machine> machine = StartMachine();
  Steps steps(GetParam());
  ASSERT_THAT(steps.Run(), IsOk());
  EXPECT_THAT(steps.Wrong(), ::testing::IsEmpty());
  for (int i = 0; i < 2; ++i) ASSERT_THAT(steps.RunAgain(), IsOk());
  machine->ResetCalls();
  for (int i = 0; i < 3; ++i) ASSERT_THAT(steps.RunAgain(), IsOk());
  EXPECT_GT(machine->calls("cudaLaunchKernel"), 0);
  for (const char* const call :
       {"cudaMalloc", "cudaFree", "cudaMallocAsync", "cudaFreeAsync", "cudaHostAlloc",
        "cudaFreeHost", "cudaDeviceSynchronize", "cudaEventCreateWithFlags", "cudaEventDestroy",
        "cudaStreamCreateWithPriority"}) {
    EXPECT_EQ(machine->calls(call), 0) << call;
  }
  EXPECT_EQ(machine->pageable_copies(), 0);
}

// From the third run on all work of the segments is enqueued by one call each.
TEST(CudaGraphCalls, AreOneForAllWorkOfASegment) {
  const std::unique_ptr<Machine> machine = StartMachine();
  Steps steps(kProgram, /*graphs=*/true);
  ASSERT_THAT(steps.Run(), IsOk());
  ASSERT_THAT(steps.RunAgain(), IsOk());
  const GraphStats captured = steps.graph_stats();
  EXPECT_GT(captured.graphs, 0);
  EXPECT_THAT(captured.refused, ::testing::IsEmpty());
  ASSERT_THAT(steps.RunAgain(), IsOk());
  machine->ResetCalls();
  for (int i = 0; i < 3; ++i) ASSERT_THAT(steps.RunAgain(), IsOk());
  EXPECT_EQ(steps.graph_stats().captures, captured.captures);
  EXPECT_EQ(machine->calls("cudaGraphLaunch"), 3 * captured.graphs);
  for (const char* const call :
       {"cudaLaunchKernel", "cudaStreamBeginCapture", "cudaMalloc", "cudaFree", "cudaHostAlloc",
        "cudaDeviceSynchronize", "cudaEventCreateWithFlags", "cudaEventDestroy"}) {
    EXPECT_EQ(machine->calls(call), 0) << call;
  }
  EXPECT_THAT(machine->TakeFindings(), ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Programs, CudaRun, ::testing::Values(kProgram, "lstm", "words_with_lod"));

// Their errors tell nothing of a device.
bool AsksNoDevice(const std::string& call) {
  return call == "cudaGetDevice" || call == "cudaSetDevice";
}

struct Fault {
  std::string name;
  cudaError_t error = cudaSuccess;
  bool graphs = false;
};

class CudaRunFaults : public ::testing::TestWithParam<Fault> {
 protected:
  // Machine and program, and a run as warm as those whose calls fail.
  void Start() {
    steps_.reset();
    machine_.reset();
    machine_ = StartMachine();
    steps_ = std::make_unique<Steps>(kProgram, GetParam().graphs);
    ASSERT_THAT(steps_->Run(), IsOk());
  }

  // A step; with graphs three, of which the second captures and the third enqueues graphs.
  absl::Status Run() {
    INTERP_RETURN_IF_ERROR(steps_->Run());
    if (!GetParam().graphs) return absl::OkStatus();
    INTERP_RETURN_IF_ERROR(steps_->RunAgain());
    return steps_->RunAgain();
  }

  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Steps> steps_;
};

TEST_P(CudaRunFaults, AreErrorsAndTheNextRunIsRight) {
  Start();
  machine_->ResetCalls();
  ASSERT_THAT(Run(), IsOk());
  const std::map<std::string, int64_t> calls = machine_->calls();
  const bool fatal = GetParam().error == cudaErrorIllegalAddress;
  for (const auto& [call, times] : calls) {
    for (int64_t nth = 1; nth <= times; nth += std::max<int64_t>(1, times / 6)) {
      SCOPED_TRACE(absl::StrCat(call, " ", nth));
      machine_->FailCall(call, static_cast<int>(nth), GetParam().error);
      const absl::Status failed = Run();
      // How many events are made is a matter of time: the call may not have come.
      machine_->FailCall(call, 1 << 30, cudaSuccess);
      if (failed.ok() && !GetParam().graphs) {
        EXPECT_THAT(steps_->Wrong(), ::testing::IsEmpty());
      } else if (!failed.ok() && fatal && !AsksNoDevice(call)) {
        EXPECT_THAT(failed.ToString(), ::testing::HasSubstr("cuda:0 is lost"));
      }
      if (fatal) Start();
      ASSERT_THAT(steps_->Run(), IsOk());
      EXPECT_THAT(steps_->Wrong(), ::testing::IsEmpty());
      EXPECT_THAT(machine_->TakeFindings(), ::testing::IsEmpty());
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Errors, CudaRunFaults,
    ::testing::Values(
        Fault{.name = "ThatItSurvives", .error = cudaErrorMemoryAllocation},
        Fault{.name = "ThatLoseTheDevice", .error = cudaErrorIllegalAddress},
        Fault{.name = "ThatItSurvivesInGraphs", .error = cudaErrorMemoryAllocation, .graphs = true},
        Fault{
            .name = "ThatLoseTheDeviceInGraphs", .error = cudaErrorIllegalAddress, .graphs = true}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace interp::cuda_test
