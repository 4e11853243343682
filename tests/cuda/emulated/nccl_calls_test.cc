// What ranks with GPUs do when NCCL, a rank or a GPU fails: errors, soon, on all of them.
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/comm/device_communicator.h"
#include "interpreter/analysis/graphs.h"
#include "tests/cuda/gpu_ranks.h"
#include "tests/cuda/numbers.h"
#include "tests/cuda_emulation/nccl_presence.h"
#include "tests/testing/test_program.h"

namespace interp::cuda_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using testing::TestProgram;

constexpr int kElements = 8;
constexpr int kCollectives = 6;

// All kinds of calls.
Program SomeCollectives() {
  return TestProgram()
      .Feed("x", {kElements})
      .Call("c_allreduce_sum", {"x"}, "a")
      .Call("scale", {"a"}, "b", {{"scale", 0.5F}})
      .Call("c_broadcast", {"b"}, "c", {{"root", 1}})
      .Call("c_reduce_sum", {"c"}, "d", {{"root_id", 1}})
      .Call("alltoall", {"d"}, "e")
      .Call("c_allgather", {"e"}, "f", {{"nranks", 2}})
      .Call("c_reducescatter", {"f"}, "g", {{"nranks", 2}})
      .Fetch("g")
      .Build();
}

absl::StatusOr<std::unique_ptr<InterpreterCore>> MakeCore(const std::shared_ptr<Rings>& rings,
                                                          Place place) {
  CoreOptions options;
  options.rings = rings;
  options.plan.place = place;
  return InterpreterCore::Create(SomeCollectives(), {}, {}, nullptr, options);
}

absl::StatusOr<std::vector<double>> RunStep(InterpreterCore& core, int rank) {
  const std::vector<float> x(kElements, static_cast<float>(rank + 1));
  INTERP_ASSIGN_OR_RETURN(const auto fetched, core.Run({Tensor::Of<float>({kElements}, x)}));
  return AsDoubles(fetched[0]);
}

absl::Status RunTwoSteps(const std::shared_ptr<Rings>& rings) {
  INTERP_ASSIGN_OR_RETURN(const auto core, MakeCore(rings, GpuOf(rings->rank())));
  for (int step = 0; step < 2; ++step) {
    INTERP_RETURN_IF_ERROR(RunStep(*core, rings->rank()).status());
  }
  return absl::OkStatus();
}

// Two steps of all ranks.
std::vector<absl::Status> RunTwoSteps() {
  return OnGpus(2, kPatientRanks, [](const std::shared_ptr<Rings>& rings, ThreadRanks&) {
    return RunTwoSteps(rings);
  });
}

// As a process does that ends all others when its run has failed.
absl::Status Tell(Rings& rings, const absl::Status& status) {
  if (!status.ok()) rings.Fail(status);
  return status;
}

class NcclCalls : public GpuRanksTest {
 protected:
  void SetUp() override { StartMachine(2); }
  void TearDown() override {
    cuda_emulation::ShowNccl(true);
    GpuRanksTest::TearDown();
  }
};

TEST_F(NcclCalls, FailInTurnAndAllRanksSaySo) {
  ASSERT_THAT(RunTwoSteps(), ::testing::Each(IsOk()));
  const std::map<std::string, int64_t> calls = machine().calls();
  int kinds = 0;
  for (const auto& [call, times] : calls) {
    if (!absl::StartsWith(call, "nccl")) continue;
    ++kinds;
    // Ends are no longer a run's; an abort is only an answer to an error.
    const bool at_end = call == "ncclCommFinalize" || call == "ncclCommDestroy";
    for (int nth = 1; nth <= std::min<int64_t>(times, 6); ++nth) {
      SCOPED_TRACE(absl::StrCat(call, " ", nth));
      machine().FailCall(call, nth, cudaErrorMemoryAllocation);
      const auto statuses = RunTwoSteps();
      // How often ranks ask for errors is a matter of time.
      const bool may_be_ok = at_end || call == "ncclCommGetAsyncError";
      if (!may_be_ok) {
        EXPECT_THAT(statuses, ::testing::Each(Not(IsOk())));
      }
      for (const absl::Status& status : statuses) {
        if (status.ok()) continue;
        EXPECT_THAT(status.ToString(),
                    AllOf(HasSubstr("NCCL: unhandled cuda error"), HasSubstr("on ring 0")));
      }
      machine().FailCall(call, 1 << 30, cudaSuccess);
      ASSERT_THAT(RunTwoSteps(), ::testing::Each(IsOk()));
    }
  }
  EXPECT_GE(kinds, 12);
}

TEST_F(NcclCalls, OfTheDriverFailInTurnAndNoRankWaits) {
  for (const char* const call : {"cudaEventRecord", "cudaEventCreateWithFlags", "cudaEventQuery",
                                 "cudaLaunchKernel", "cudaStreamWaitEvent", "cudaMemcpyAsync"}) {
    for (const int nth : {1, 4, 9, 16}) {
      SCOPED_TRACE(absl::StrCat(call, " ", nth));
      machine().FailCall(call, nth, cudaErrorMemoryAllocation);
      // Some are made good, some come when all is done.
      OnGpus(2, kPatientRanks, [](const std::shared_ptr<Rings>& rings, ThreadRanks&) {
        return Tell(*rings, RunTwoSteps(rings));
      });
      machine().FailCall(call, 1 << 30, cudaSuccess);
      ASSERT_THAT(RunTwoSteps(), ::testing::Each(IsOk()));
    }
  }
}

// What rank 0 says when rank 1 does not come to its second step.
absl::Status StatusOfRank0(const CommOptions& comm, bool dies) {
  const auto statuses =
      OnGpus(2, comm, [&](const std::shared_ptr<Rings>& rings, ThreadRanks& ranks) -> absl::Status {
        const int rank = rings->rank();
        INTERP_ASSIGN_OR_RETURN(const auto core, MakeCore(rings, GpuOf(rank)));
        INTERP_RETURN_IF_ERROR(RunStep(*core, rank).status());
        if (rank == 0) return RunStep(*core, rank).status();
        if (dies) {
          ranks.Kill(1);
          return absl::OkStatus();
        }
        // It is somewhere else until rank 0 has given up.
        Communicator& ring = **rings->Find(0);
        while (ring.CheckPeers().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses[1], IsOk());
  return statuses[0];
}

TEST_F(NcclCalls, EndWhenARankDies) {
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = StatusOfRank0(kPatientRanks, /*dies=*/true);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_THAT(status.ToString(),
              AllOf(HasSubstr("c_allreduce_sum"), HasSubstr("c_allreduce on ring 0, number 7"),
                    HasSubstr("rank 1 has died")));
}

TEST_F(NcclCalls, EndWhenARankDoesNotCome) {
  const absl::Status status = StatusOfRank0({.timeout = std::chrono::seconds(2)}, /*dies=*/false);
  EXPECT_THAT(status.ToString(),
              AllOf(HasSubstr("c_allreduce_sum"), HasSubstr("c_allreduce on ring 0, number 7"),
                    HasSubstr("rank 0 of the ring has waited 2000 ms for the others")));
}

TEST_F(NcclCalls, EndWhenARankDiesBeforeItHasJoined) {
  const auto statuses =
      OnGpus(2, kPatientRanks,
             [&](const std::shared_ptr<Rings>& rings, ThreadRanks& ranks) -> absl::Status {
               if (rings->rank() == 1) {
                 ranks.Kill(1);
                 return absl::OkStatus();
               }
               INTERP_ASSIGN_OR_RETURN(const auto core, MakeCore(rings, GpuOf(0)));
               return RunStep(*core, 0).status();
             });
  EXPECT_THAT(statuses[0].ToString(),
              AllOf(HasSubstr("c_allreduce_sum"), HasSubstr("NCCL on ring 0, rank 0 on cuda:0"),
                    HasSubstr("rank 1 has died")));
}

TEST_F(NcclCalls, EndWhenAGpuIsLost) {
  const auto statuses = OnGpus(
      2, kPatientRanks, [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) -> absl::Status {
        const int rank = rings->rank();
        INTERP_ASSIGN_OR_RETURN(const auto core, MakeCore(rings, GpuOf(rank)));
        INTERP_RETURN_IF_ERROR(RunStep(*core, rank).status());
        if (rank == 0) machine().FailCall("cudaLaunchKernel", 1, cudaErrorLaunchFailure);
        return Tell(*rings, RunStep(*core, rank).status());
      });
  EXPECT_THAT(statuses, ::testing::Each(Not(IsOk())));
}

TEST_F(NcclCalls, RefuseTwoRanksOnOneGpu) {
  const auto statuses = OnGpus(
      2, kPatientRanks, [](const std::shared_ptr<Rings>& rings, ThreadRanks&) -> absl::Status {
        INTERP_ASSIGN_OR_RETURN(const auto core, MakeCore(rings, GpuOf(0)));
        return RunStep(*core, rings->rank()).status();
      });
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(status.ToString(), HasSubstr("Duplicate GPU detected"));
  }
}

TEST_F(NcclCalls, AreTheHostsWhereThereIsNoNccl) {
  cuda_emulation::ShowNccl(false);
  EXPECT_THAT(DeviceCommunication(PlaceKind::kCuda).ToString(), HasSubstr("cannot load NCCL"));
  std::vector<std::vector<double>> results(4);
  for (const bool gpus : {false, true}) {
    const auto statuses = OnGpus(
        2, kPatientRanks, [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) -> absl::Status {
          const int rank = rings->rank();
          INTERP_ASSIGN_OR_RETURN(const auto core, MakeCore(rings, gpus ? GpuOf(rank) : Place()));
          INTERP_ASSIGN_OR_RETURN(results[rank + (gpus ? 2 : 0)], RunStep(*core, rank));
          EXPECT_FALSE(RunsOnStream(core->plan(), "c_allreduce_sum", "comm"));
          return absl::OkStatus();
        });
    EXPECT_THAT(statuses, ::testing::Each(IsOk()));
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[3]);
}

TEST_F(NcclCalls, AllocateNothingWhenWarm) {
  const auto statuses = OnGpus(
      2, kPatientRanks, [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) -> absl::Status {
        const int rank = rings->rank();
        Communicator& ring = **rings->Find(0);
        INTERP_ASSIGN_OR_RETURN(const auto core, MakeCore(rings, GpuOf(rank)));
        for (int step = 0; step < 8; ++step) {
          INTERP_RETURN_IF_ERROR(ring.Run({.kind = CommKind::kBarrier}));
          if (step == 4 && rank == 0) machine().ResetCalls();
          INTERP_RETURN_IF_ERROR(ring.Run({.kind = CommKind::kBarrier}));
          INTERP_RETURN_IF_ERROR(RunStep(*core, rank).status());
        }
        if (rank == 1) return ring.Run({.kind = CommKind::kBarrier});
        for (const char* const call :
             {"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaDeviceSynchronize"}) {
          EXPECT_EQ(machine().calls(call), 0) << call;
        }
        // At most two for each collective of a rank, where more are in flight than ever before.
        EXPECT_LE(machine().calls("cudaEventCreateWithFlags"), 2 * 2 * kCollectives);
        EXPECT_EQ(machine().pageable_copies(), 0);
        return ring.Run({.kind = CommKind::kBarrier});
      });
  EXPECT_THAT(statuses, ::testing::Each(IsOk()));
}

TEST_F(NcclCalls, AreInNoGraph) {
  const auto statuses = OnGpus(
      2, kPatientRanks, [](const std::shared_ptr<Rings>& rings, ThreadRanks&) -> absl::Status {
        const int rank = rings->rank();
        CoreOptions options;
        options.rings = rings;
        options.plan.place = GpuOf(rank);
        options.cuda_graphs = true;
        INTERP_ASSIGN_OR_RETURN(
            const auto core, InterpreterCore::Create(SomeCollectives(), {}, {}, nullptr, options));
        EXPECT_THAT(TypesInNoGraph(core->plan()),
                    ::testing::Contains("alltoall (speaks with other ranks)"));
        std::vector<double> first;
        for (int step = 0; step < 4; ++step) {
          INTERP_ASSIGN_OR_RETURN(const auto values, RunStep(*core, rank));
          if (step == 0) first = values;
          EXPECT_EQ(values, first);
        }
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, ::testing::Each(IsOk()));
}

}  // namespace
}  // namespace interp::cuda_test
