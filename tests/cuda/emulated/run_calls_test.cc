// What whole runs on a GPU ask the driver for, and what happens when it fails.
#include <gmock/gmock.h>
#include <gpu_machine.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/program_load.h"
#include "tests/testing/golden_steps.h"
#include "tests/testing/matchers.h"

namespace interp::cuda_test {
namespace {

using testing::GoldenProgram;
using testing::IsOk;

std::unique_ptr<Machine> StartMachine() {
  auto machine = Machine::Start({});
  EXPECT_THAT(machine, IsOk());
  return machine.ok() ? *std::move(machine) : nullptr;
}

// A training program of Paddle on cuda:0, whose first step may be run again and again.
class Steps {
 public:
  explicit Steps(const std::string& name) {
    for (const std::string& folder : testing::AllGoldenPrograms()) {
      if (!absl::EndsWith(folder, absl::StrCat("/", name))) continue;
      absl::StatusOr<GoldenProgram> golden = testing::ReadGoldenProgram(folder);
      EXPECT_THAT(golden, IsOk());
      golden_ = *std::move(golden);
    }
    for (const std::string& feed : golden_.feed_order) {
      feeds_.push_back(testing::FindValue(golden_.steps[0].feeds, feed));
    }
    absl::StatusOr<Program> program = LoadProgram(golden_.program);
    EXPECT_THAT(program, IsOk());
    CoreOptions options;
    options.passes.disable = {"prune"};
    options.plan.place = {PlaceKind::kCuda, 0};
    auto core = InterpreterCore::Create(*std::move(program), golden_.feed_order,
                                        golden_.fetch_order, scope_, options);
    status_ = core.status();
    if (core.ok()) core_ = *std::move(core);
  }

  // Runs the first step from the initial parameters.
  absl::Status Run() {
    INTERP_RETURN_IF_ERROR(status_);
    INTERP_RETURN_IF_ERROR(testing::FillScope(golden_.initial, *scope_));
    return RunAgain();
  }
  // From what the run before has left.
  absl::Status RunAgain() {
    INTERP_ASSIGN_OR_RETURN(results_, core_->Run(feeds_));
    return absl::OkStatus();
  }

  // What the last run gave that Paddle did not; empty when all is right.
  std::vector<std::string> Wrong() const {
    std::vector<std::string> wrong;
    for (size_t i = 0; i < results_.size(); ++i) {
      const Tensor want = testing::FindValue(golden_.steps[0].fetches, golden_.fetch_order[i]);
      std::string difference = testing::Difference(results_[i], want, golden_.rtol, golden_.atol);
      if (!difference.empty()) wrong.push_back(std::move(difference));
    }
    return wrong;
  }

 private:
  GoldenProgram golden_;
  std::vector<Tensor> feeds_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  absl::Status status_;
  std::unique_ptr<InterpreterCore> core_;
  std::vector<Tensor> results_;
};

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

INSTANTIATE_TEST_SUITE_P(Programs, CudaRun, ::testing::Values(kProgram, "lstm", "words_with_lod"));

// Their errors tell nothing of a device.
bool AsksNoDevice(const std::string& call) {
  return call == "cudaGetDevice" || call == "cudaSetDevice";
}

class CudaRunFaults : public ::testing::TestWithParam<cudaError_t> {};

TEST_P(CudaRunFaults, AreErrorsAndTheNextRunIsRight) {
  std::unique_ptr<Machine> machine = StartMachine();
  auto steps = std::make_unique<Steps>(kProgram);
  ASSERT_THAT(steps->Run(), IsOk());
  machine->ResetCalls();
  ASSERT_THAT(steps->Run(), IsOk());
  const std::map<std::string, int64_t> calls = machine->calls();
  const bool fatal = GetParam() == cudaErrorIllegalAddress;
  for (const auto& [call, times] : calls) {
    for (int64_t nth = 1; nth <= times; nth += std::max<int64_t>(1, times / 6)) {
      SCOPED_TRACE(absl::StrCat(call, " ", nth));
      machine->FailCall(call, static_cast<int>(nth), GetParam());
      const absl::Status failed = steps->Run();
      if (failed.ok()) {
        EXPECT_THAT(steps->Wrong(), ::testing::IsEmpty());
      } else if (fatal && !AsksNoDevice(call)) {
        EXPECT_THAT(failed.ToString(), ::testing::HasSubstr("cuda:0 is lost"));
      }
      if (fatal) {
        steps.reset();
        machine.reset();
        machine = StartMachine();
        steps = std::make_unique<Steps>(kProgram);
      }
      ASSERT_THAT(steps->Run(), IsOk());
      EXPECT_THAT(steps->Wrong(), ::testing::IsEmpty());
      EXPECT_THAT(machine->TakeFindings(), ::testing::IsEmpty());
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Errors, CudaRunFaults,
                         ::testing::Values(cudaErrorMemoryAllocation, cudaErrorIllegalAddress),
                         [](const auto& info) {
                           return info.param == cudaErrorIllegalAddress ? "ThatLoseTheDevice"
                                                                        : "ThatItSurvives";
                         });

}  // namespace
}  // namespace interp::cuda_test
