// Training programs of Paddle, shared out over ranks with a GPU each: the losses of one process.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/program_load.h"
#include "interpreter/train/trainer.h"
#include "tests/cuda/gpu_ranks.h"
#include "tests/testing/golden_steps.h"

namespace interp::cuda_test {
namespace {

using testing::GoldenProgram;
using testing::IsOk;

absl::StatusOr<GoldenProgram> ReadGolden(absl::string_view name) {
  for (const std::string& folder : testing::AllGoldenPrograms()) {
    if (absl::EndsWith(folder, absl::StrCat("/", name))) return testing::ReadGoldenProgram(folder);
  }
  return NotFound("there is no golden program '", name, "'");
}

struct Training {
  std::vector<std::string> differences;  // from Paddle's one process
  std::vector<NamedTensor> parameters;
  bool on_streams = false;
};

absl::StatusOr<Training> Train(const GoldenProgram& golden, const std::shared_ptr<Rings>& rings) {
  const auto scope = std::make_shared<Scope>();
  INTERP_RETURN_IF_ERROR(testing::FillScope(golden.initial, *scope));
  TrainerOptions options{
      .feeds = golden.feed_order,
      .fetches = golden.fetch_order,
      .data_parallel = DataParallelOptions{.bucket_bytes = 512},
      .core = {.plan = {.place = GpuOf(rings->rank())}, .rings = rings},
  };
  INTERP_ASSIGN_OR_RETURN(Program program, LoadProgram(golden.program));
  INTERP_ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(std::move(program), scope, options));
  INTERP_RETURN_IF_ERROR(trainer->ShareState());
  Training result;
  for (const GoldenProgram::Step& step : golden.steps) {
    INTERP_RETURN_IF_ERROR(testing::FillScope(step.set, *scope));
    std::vector<Tensor> feeds;
    for (const std::string& name : golden.feed_order) {
      feeds.push_back(testing::FindValue(step.feeds, name));
    }
    INTERP_ASSIGN_OR_RETURN(const auto fetched, trainer->Step(feeds));
    for (size_t i = 0; i < fetched.size(); ++i) {
      const Tensor want = testing::FindValue(step.fetches, golden.fetch_order[i]);
      const std::string difference =
          testing::Difference(fetched[i], want, golden.rtol * 2, golden.atol * 2);
      if (!difference.empty()) {
        result.differences.push_back(absl::StrCat(golden.fetch_order[i], " ", difference));
      }
    }
  }
  result.parameters = testing::ValuesInScope(golden.final, *scope);
  const Plan& plan = trainer->core().plan();
  result.on_streams = RunsOnStream(plan, "c_bucket_allreduce", "comm") &&
                      RunsOnStream(plan, "c_bucket_wait", "comm");
  return result;
}

class CudaDataParallel : public GpuRanksTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void ExpectTheLossesOfOneProcess(const GoldenProgram& golden, int size) {
    std::vector<Training> trainings(size);
    const auto statuses =
        OnGpus(size, kPatientRanks,
               [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) -> absl::Status {
                 INTERP_ASSIGN_OR_RETURN(trainings[rings->rank()], Train(golden, rings));
                 return absl::OkStatus();
               });
    for (const absl::Status& status : statuses) ASSERT_THAT(status, IsOk());
    for (const Training& training : trainings) {
      EXPECT_THAT(training.differences, ::testing::IsEmpty());
      EXPECT_TRUE(training.on_streams);
      for (size_t i = 0; i < training.parameters.size(); ++i) {
        const auto& [name, value] = trainings[0].parameters[i];
        // The same bits on all ranks.
        EXPECT_EQ(testing::Difference(training.parameters[i].second, value, 0, 0), "") << name;
      }
    }
  }
};

TEST_P(CudaDataParallel, HasTheLossesOfOneProcess) {
  const absl::StatusOr<GoldenProgram> golden = ReadGolden(GetParam());
  ASSERT_THAT(golden, IsOk());
  for (const int size : {1, 2, 4}) {
    for (const auto execution :
         {SimOptions::Execution::kThreads, SimOptions::Execution::kInterleaved}) {
      SCOPED_TRACE(absl::StrCat(size, " ranks"));
      StartMachine(size, execution);
      if (IsSkipped()) return;
      ExpectTheLossesOfOneProcess(*golden, size);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, CudaDataParallel,
                         ::testing::Values("mlp_momentum", "mlp_adam", "clip_value",
                                           "embedding_softmax", "embedding_sparse_sgd"));

}  // namespace
}  // namespace interp::cuda_test
