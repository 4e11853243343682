// Ranks as threads of a test, each with a GPU of one machine.
#pragma once

#include <gmock/gmock.h>
#include <gpu_machine.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "core/place.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/rank_team.h"

namespace interp::cuda_test {

inline Place GpuOf(int rank) { return {PlaceKind::kCuda, static_cast<int8_t>(rank)}; }

// A machine with as many GPUs, whose streams run with delays of their own or in an order of the
// emulation's. Skips the test where there are fewer, and finds nothing wrong at the end.
class GpuRanksTest : public ::testing::Test {
 protected:
  void StartMachine(int num_gpus,
                    SimOptions::Execution execution = SimOptions::Execution::kThreads) {
    EndMachine();
    auto machine = Machine::Start(
        {.devices = num_gpus, .seed = 1, .execution = execution, .max_delay_ns = 200'000});
    if (absl::IsNotFound(machine.status())) GTEST_SKIP() << machine.status();
    ASSERT_THAT(machine, testing::IsOk());
    machine_ = *std::move(machine);
  }
  void TearDown() override { EndMachine(); }

  Machine& machine() { return *machine_; }

 private:
  void EndMachine() {
    if (machine_ == nullptr) return;
    for (const Finding& finding : machine_->TakeFindings()) ADD_FAILURE() << finding.text;
    machine_.reset();
  }

  std::unique_ptr<Machine> machine_;
};

constexpr CommOptions kPatientRanks{.timeout = std::chrono::seconds(60)};

// What each rank returns; messages between hosts take their time.
inline std::vector<absl::Status> OnGpus(
    int size, const CommOptions& comm,
    const std::function<absl::Status(const std::shared_ptr<Rings>&, ThreadRanks&)>& body) {
  return testing::OnAllRanks(
      {.size = size, .longest_delay = std::chrono::microseconds(200), .seed = 5}, comm, body);
}

// Whether instructions of a type run on a GPU, on the stream of that name.
inline bool RunsOnStream(const Plan& plan, absl::string_view type, absl::string_view stream) {
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.op_type != type) continue;
    return instruction.place.kind == PlaceKind::kCuda &&
           plan.streams[instruction.stream].name == stream;
  }
  return false;
}

}  // namespace interp::cuda_test
