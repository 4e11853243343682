// What graphs that draw random numbers ask the driver for, and what happens when it fails.
#include <gmock/gmock.h>
#include <gpu_machine.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/program_parse.h"
#include "tests/cuda/emulated/start_machine.h"
#include "tests/cuda/graph_test.h"
#include "tests/testing/matchers.h"

namespace interp::cuda_test {
namespace {

using testing::IsOk;

// Two masks, one after the other, in one graph.
constexpr char kMasks[] = R"(block 0
  var x float32[300]
  var a float32[300]
  var b float32[300]
  var m uint8[300]
  var n uint8[300]
  dropout(X=x) -> (Out=a, Mask=m) {dropout_prob=0.4}
  dropout(X=a) -> (Out=b, Mask=n) {dropout_prob=0.4}
)";

// Runs of the program in graphs, each of which is to draw what the host draws.
class Masks {
 public:
  Masks() : core_(Make(InGraphs())), host_(Make({})) {}

  absl::Status Run() {
    const RandomState state = core_->random_state();
    INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> got, core_->Run({x_}));
    INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> want, host_->Run({x_}, {.random = state}));
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(testing::Values<uint8_t>(got[i]), testing::Values<uint8_t>(want[i]));
    }
    EXPECT_EQ(core_->random_state().step, state.step + 1);
    return absl::OkStatus();
  }
  GraphStats stats() const { return core_->graph_stats().value_or(GraphStats{}); }

 private:
  static std::unique_ptr<InterpreterCore> Make(const CoreOptions& options) {
    absl::StatusOr<Program> program = ParseProgram(kMasks);
    EXPECT_THAT(program, IsOk());
    auto core = InterpreterCore::Create(*std::move(program), {"x"}, {"m", "n"}, nullptr, options);
    EXPECT_THAT(core, IsOk());
    return *std::move(core);
  }

  const Tensor x_ = TensorOf<float>({300}, SomeValues<float>(300));
  const std::unique_ptr<InterpreterCore> core_;
  const std::unique_ptr<InterpreterCore> host_;
};

// The feed, what the graph draws from, and two fetches.
TEST(CudaRandomCalls, AreOneCopyForAllOpsOfAGraph) {
  const std::unique_ptr<Machine> machine = StartMachine();
  Masks masks;
  for (int i = 0; i < 3; ++i) ASSERT_THAT(masks.Run(), IsOk());
  EXPECT_EQ(masks.stats().graphs, 1);
  machine->ResetCalls();
  for (int i = 0; i < 5; ++i) ASSERT_THAT(masks.Run(), IsOk());
  EXPECT_EQ(machine->calls("cudaGraphLaunch"), 5);
  EXPECT_EQ(machine->calls("cudaMemcpyAsync"), 5 * 5);
  EXPECT_EQ(machine->pageable_copies(), 0);
  for (const char* const call :
       {"cudaLaunchKernel", "cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost",
        "cudaDeviceSynchronize", "cudaEventCreateWithFlags", "cudaEventDestroy"}) {
    EXPECT_EQ(machine->calls(call), 0) << call;
  }
  EXPECT_THAT(machine->TakeFindings(), ::testing::IsEmpty());
}

class CudaRandomFaults : public ::testing::TestWithParam<cudaError_t> {};

// In a run that captures as in those that enqueue the graph.
TEST_P(CudaRandomFaults, AreErrorsAndTheNextRunDrawsWhatTheRunWouldHave) {
  const bool fatal = GetParam() == cudaErrorIllegalAddress;
  std::unique_ptr<Machine> machine = StartMachine();
  auto masks = std::make_unique<Masks>();
  for (int i = 0; i < 3; ++i) ASSERT_THAT(masks->Run(), IsOk());
  machine->ResetCalls();
  ASSERT_THAT(masks->Run(), IsOk());
  const std::map<std::string, int64_t> calls = machine->calls();
  for (const auto& [call, times] : calls) {
    for (int64_t nth = 1; nth <= times; ++nth) {
      SCOPED_TRACE(absl::StrCat(call, " ", nth));
      machine->FailCall(call, static_cast<int>(nth), GetParam());
      masks->Run().IgnoreError();                     // what it gives is right, or an error
      machine->FailCall(call, 1 << 30, cudaSuccess);  // which may not have come to it
      if (fatal) {
        masks.reset();
        machine.reset();
        machine = StartMachine();
        masks = std::make_unique<Masks>();
      }
      for (int i = 0; i < 4; ++i) ASSERT_THAT(masks->Run(), IsOk());
      EXPECT_THAT(machine->TakeFindings(), ::testing::IsEmpty());
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Errors, CudaRandomFaults,
                         ::testing::Values(cudaErrorMemoryAllocation, cudaErrorIllegalAddress),
                         [](const auto& info) {
                           return info.param == cudaErrorIllegalAddress ? "ThatLoseTheDevice"
                                                                        : "ThatItSurvives";
                         });

}  // namespace
}  // namespace interp::cuda_test
