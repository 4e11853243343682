// Collectives between GPUs, by ranks that are threads, beside those of the host.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda/gpu_ranks.h"
#include "tests/cuda/numbers.h"
#include "tests/testing/test_program.h"

namespace interp::cuda_test {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::TestProgram;

struct Collective {
  std::string type;
  bool reduces = false;
  bool ranks_in_attrs = false;
  bool communicates = true;
};

const std::vector<Collective>& Collectives() {
  static const auto& all = *new std::vector<Collective>{
      {.type = "c_allreduce_sum", .reduces = true},
      {.type = "c_allreduce_max", .reduces = true},
      {.type = "c_allreduce_min", .reduces = true},
      {.type = "c_allreduce_prod", .reduces = true},
      {.type = "mp_allreduce_sum", .reduces = true},
      {.type = "c_reduce_sum", .reduces = true},
      {.type = "c_reduce_max", .reduces = true},
      {.type = "c_reduce_min", .reduces = true},
      {.type = "c_reduce_prod", .reduces = true},
      {.type = "c_reducescatter", .reduces = true, .ranks_in_attrs = true},
      {.type = "c_broadcast"},
      {.type = "c_allgather", .ranks_in_attrs = true},
      {.type = "c_concat", .ranks_in_attrs = true},
      {.type = "partial_allgather", .ranks_in_attrs = true},
      {.type = "alltoall"},
      {.type = "c_split", .ranks_in_attrs = true, .communicates = false},
      {.type = "c_identity", .communicates = false},
      {.type = "c_sync_calc_stream"},
      {.type = "c_sync_comm_stream"},
  };
  return all;
}

// All values are exact, whatever the order of sums.
std::vector<float> ValuesOf(int rank, int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 5 + rank * 7) % 3));
  return values;
}

struct RankRun {
  std::vector<double> values;
  Shape shape;
  bool where_expected = false;
};

absl::StatusOr<RankRun> RunOne(const Collective& collective, DType dtype, std::vector<int64_t> dims,
                               bool on_gpus, const std::shared_ptr<Rings>& rings) {
  const int last = rings->size() - 1;
  TestProgram::Attrs attrs = {{"root", last}, {"root_id", last}};
  if (collective.ranks_in_attrs) attrs.emplace_back("nranks", rings->size());
  const Program program = TestProgram(dtype)
                              .Feed("x", dims, dtype)
                              .Declare("y", {}, dtype)
                              .Call(collective.type, {"x"}, "y", attrs)
                              .Fetch("y")
                              .Build();
  CoreOptions options;
  options.rings = rings;
  if (on_gpus) options.plan.place = GpuOf(rings->rank());
  INTERP_ASSIGN_OR_RETURN(const auto core,
                          InterpreterCore::Create(program, {}, {}, nullptr, options));
  RankRun run;
  for (int times = 0; times < 2; ++times) {
    INTERP_ASSIGN_OR_RETURN(
        const auto fetched,
        core->Run({Numbers(dtype, dims, ValuesOf(rings->rank() + times, NumelOf(dims)))}));
    run.values = AsDoubles(fetched[0]);
    run.shape = fetched[0].shape;
  }
  run.where_expected =
      RunsOnStream(core->plan(), collective.type, collective.communicates ? "comm" : "compute");
  return run;
}

std::vector<RankRun> RunAll(int size, const Collective& collective, DType dtype,
                            const std::vector<int64_t>& dims, bool on_gpus,
                            const CommOptions& comm = kPatientRanks) {
  std::vector<RankRun> runs(size);
  const auto statuses =
      OnGpus(size, comm, [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) -> absl::Status {
        INTERP_ASSIGN_OR_RETURN(runs[rings->rank()],
                                RunOne(collective, dtype, dims, on_gpus, rings));
        return absl::OkStatus();
      });
  for (const absl::Status& status : statuses) EXPECT_THAT(status, IsOk());
  return runs;
}

void ExpectTheHosts(int size, const Collective& collective, DType dtype,
                    const std::vector<int64_t>& dims, const CommOptions& comm = kPatientRanks) {
  SCOPED_TRACE(absl::StrCat(collective.type, " of ", Name(dtype), " on ", size));
  const std::vector<RankRun> host = RunAll(size, collective, dtype, dims, /*on_gpus=*/false);
  const std::vector<RankRun> gpus = RunAll(size, collective, dtype, dims, /*on_gpus=*/true, comm);
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(gpus[rank].values, host[rank].values) << "rank " << rank;
    EXPECT_EQ(gpus[rank].shape, host[rank].shape);
    EXPECT_TRUE(gpus[rank].where_expected);
  }
}

class CudaCollectives : public GpuRanksTest, public ::testing::WithParamInterface<int> {};

TEST_P(CudaCollectives, GiveWhatTheHostGives) {
  StartMachine(GetParam());
  if (IsSkipped()) return;
  for (const Collective& collective : Collectives()) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64,
                              DType::kInt32, DType::kInt64, DType::kUInt8, DType::kInt8}) {
      ExpectTheHosts(GetParam(), collective, dtype, {12, 12});
    }
  }
}

TEST_P(CudaCollectives, TakeTensorsWithoutElements) {
  StartMachine(GetParam());
  if (IsSkipped()) return;
  for (const Collective& collective : Collectives()) {
    ExpectTheHosts(GetParam(), collective, DType::kFloat32, {12, 0});
  }
}

TEST_P(CudaCollectives, MayBeCompared) {
  StartMachine(GetParam());
  if (IsSkipped()) return;
  CommOptions checked = kPatientRanks;
  checked.check = true;
  for (const char* type : {"c_allreduce_sum", "c_broadcast", "alltoall"}) {
    ExpectTheHosts(GetParam(), {.type = type}, DType::kFloat32, {12, 2}, checked);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CudaCollectives, ::testing::Values(1, 2, 3, 4));

class CudaCollectivePrograms : public GpuRanksTest {};

// What NCCL does not compute runs on the host.
TEST_F(CudaCollectivePrograms, SumOtherValuesOnTheHost) {
  StartMachine(2);
  if (IsSkipped()) return;
  const Collective sum{.type = "c_allreduce_sum"};
  for (const DType dtype : {DType::kBool, DType::kInt16}) {
    const std::vector<RankRun> host = RunAll(2, sum, dtype, {4}, /*on_gpus=*/false);
    const std::vector<RankRun> gpus = RunAll(2, sum, dtype, {4}, /*on_gpus=*/true);
    EXPECT_EQ(gpus[1].values, host[1].values);
    EXPECT_FALSE(gpus[1].where_expected);
  }
}

// Two rings, one of them of some ranks, and what is computed between collectives.
Program TwoRings(bool both) {
  TestProgram builder;
  builder.Feed("x", {64}).Call("scale", {"x"}, "a", {{"scale", 2.0F}});
  builder.Call("c_allreduce_sum", {"a"}, "b", {{"ring_id", 0}});
  builder.Call("scale", {"b"}, "c", {{"scale", 0.5F}});
  if (both) builder.Call("c_allreduce_sum", {"c"}, "d", {{"ring_id", 3}});
  builder.Call("c_allreduce_max", {both ? "d" : "c"}, "e", {{"ring_id", 0}});
  return builder.Fetch("e").Build();
}

TEST_F(CudaCollectivePrograms, UseSeveralRings) {
  StartMachine(3);
  if (IsSkipped()) return;
  std::vector<std::vector<double>> results(3);
  const auto statuses = OnGpus(
      3, kPatientRanks, [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) -> absl::Status {
        const int rank = rings->rank();
        const bool both = rank != 1;
        if (both) INTERP_RETURN_IF_ERROR(rings->Add(3, {2, 0}));
        CoreOptions options;
        options.rings = rings;
        options.plan.place = GpuOf(rank);
        INTERP_ASSIGN_OR_RETURN(const auto core,
                                InterpreterCore::Create(TwoRings(both), {}, {}, nullptr, options));
        for (int step = 0; step < 5; ++step) {
          const std::vector<float> x(64, static_cast<float>(rank + step));
          INTERP_ASSIGN_OR_RETURN(const auto fetched, core->Run({Tensor::Of<float>({64}, x)}));
          results[rank] = AsDoubles(fetched[0]);
        }
        return absl::OkStatus();
      });
  for (const absl::Status& status : statuses) ASSERT_THAT(status, IsOk());
  // Values 4, 5 and 6 make 15 for rank 1 and twice that for the others.
  for (const auto& values : results) EXPECT_EQ(values, std::vector<double>(64, 30));
}

TEST_F(CudaCollectivePrograms, SayWhereRanksDiffer) {
  StartMachine(2);
  if (IsSkipped()) return;
  CommOptions checked = kPatientRanks;
  checked.check = true;
  const auto statuses =
      OnGpus(2, checked, [&](const std::shared_ptr<Rings>& rings, ThreadRanks&) -> absl::Status {
        const char* const type = rings->rank() == 0 ? "c_allreduce_sum" : "c_allreduce_max";
        return RunOne({.type = type}, DType::kFloat32, {4}, /*on_gpus=*/true, rings).status();
      });
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(status.ToString(), HasSubstr("ranks differ in what they do on ring 0"));
  }
}

}  // namespace
}  // namespace interp::cuda_test
