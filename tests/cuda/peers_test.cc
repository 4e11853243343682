// Two GPUs of one process: copies between them, and programs that use both.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/device/stream_pool.h"
#include "interpreter/analysis/graphs.h"
#include "interpreter/interpreter_core.h"
#include "tests/cuda/device_test.h"
#include "tests/testing/test_program.h"

namespace interp::cuda_test {
namespace {

using testing::Floats;
using testing::IsOk;
using testing::OpenStream;
using testing::Put;
using testing::Read;

constexpr MachineOptions TwoGpus(uint64_t seed) { return {.devices = 2, .seed = seed}; }

class CudaPeers : public CudaDeviceTest {
 protected:
  // A machine of two GPUs, made anew, and a stream of each. False where there are fewer.
  bool BeginTwo(uint64_t seed) {
    to_.reset();
    from_.reset();
    other_.reset();
    Begin(TwoGpus(seed));
    if (IsSkipped()) return false;
    auto other = cuda::MakeCudaDevice(1);
    EXPECT_THAT(other, IsOk());
    other_ = *std::move(other);
    from_ = OpenStream(*device_);
    to_ = OpenStream(*other_);
    return true;
  }
  void TearDown() override {
    to_.reset();
    from_.reset();
    other_.reset();
    CudaDeviceTest::TearDown();
  }

  std::shared_ptr<Device> other_;
  std::unique_ptr<Stream> from_;
  std::unique_ptr<Stream> to_;
};

TEST_F(CudaPeers, CopyFromEachOther) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    if (!BeginTwo(seed)) return;
    const auto written = from_->CreateEvent();
    ASSERT_THAT(written, IsOk());
    float* const data = Floats(*device_, 64);
    float* const there = Floats(*other_, 64);
    Put(*from_, data, UpTo(64));
    ASSERT_THAT(AddOneOn(*from_, data), IsOk());
    ASSERT_THAT(from_->Record(**written), IsOk());
    ASSERT_THAT(to_->Wait(**written), IsOk());
    ASSERT_THAT(to_->CopyFromPeer(there, data, device_->place(), 256, {}), IsOk());
    ASSERT_THAT(AddOneOn(*to_, there), IsOk());
    ASSERT_EQ(Read(*to_, there, 64).back(), 66) << "seed " << seed;
    ASSERT_THAT(machine_->TakeFindings(), ::testing::IsEmpty());
  }
}

// Memory that a peer still copies is handed on behind the copy.
TEST_F(CudaPeers, MemoryIsHandedOnBehindCopies) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    if (!BeginTwo(seed)) return;
    const auto pool = StreamPool::Create(*device_);
    Tensor x = testing::VectorOf<float>(UpTo(64));
    x.DropMemory();
    ASSERT_THAT(x.Allocate(pool->ForStream(*from_)), IsOk());
    float* const there = Floats(*other_, 64);
    Put(*from_, x.mutable_data<float>(), UpTo(64));
    ASSERT_THAT(from_->Synchronize(), IsOk());
    ASSERT_THAT(to_->CopyFromPeer(there, x.raw_data(), device_->place(), 256, {}), IsOk());
    pool->RecordUse(*x.buffer().get(), *to_);
    x.DropMemory();
    ASSERT_THAT(x.Allocate(pool->ForStream(*from_)), IsOk());
    ASSERT_THAT(from_->Fill(x.mutable_raw_data(), 0, 256), IsOk());
    ASSERT_EQ(Read(*to_, there, 64), UpTo(64)) << "seed " << seed;
    ASSERT_THAT(machine_->TakeFindings(), ::testing::IsEmpty());
  }
}

constexpr int kTerms = 6;

// s = sum of tanh(i x): the first GPU makes the terms, one in the memory of another, while the
// second copies and adds them.
testing::TestProgram OnBothGpus() {
  testing::TestProgram builder(DType::kFloat32);
  builder.Feed("x", {-1, 8}, DType::kFloat32);
  const testing::TestProgram::Attrs first = {{"op_device", std::string("cuda:0")}};
  const testing::TestProgram::Attrs second = {{"op_device", std::string("cuda:1")}};
  std::string sum;
  for (int i = 0; i < kTerms; ++i) {
    const std::string scaled = absl::StrCat("scaled", i);
    const std::string term = absl::StrCat("term", i);
    testing::TestProgram::Attrs scale = first;
    scale.push_back({"scale", 0.01F * static_cast<float>(i + 1)});
    builder.AddOp("scale", {{"X", {"x"}}}, {{"Out", {scaled}}}, scale);
    builder.AddOp("tanh", {{"X", {scaled}}}, {{"Out", {term}}}, first);
    const std::string next = absl::StrCat("sum", i);
    builder.AddOp("elementwise_add", {{"X", {sum.empty() ? term : sum}}, {"Y", {term}}},
                  {{"Out", {next}}}, second);
    sum = next;
  }
  builder.Fetch(sum);
  return builder;
}

struct Way {
  std::string name;
  SchedulerKind scheduler = SchedulerKind::kTrace;
  int workers = 1;
  GcPolicy gc = GcPolicy::kFast;
  bool graphs = false;
};

class CudaPeerPrograms : public ::testing::TestWithParam<Way> {
 protected:
  static void RunBoth();
};

void CudaPeerPrograms::RunBoth() {
  const auto host = InterpreterCore::Create(OnBothGpus().Build(), {}, {}, nullptr, {});
  ASSERT_THAT(host, IsOk());
  CoreOptions options{.scheduler = GetParam().scheduler,
                      .num_workers = GetParam().workers,
                      .cuda_graphs = GetParam().graphs};
  options.plan.place = {PlaceKind::kCuda, 0};
  options.gc.policy = GetParam().gc;
  const auto core = InterpreterCore::Create(OnBothGpus().Build(), {}, {}, nullptr, options);
  ASSERT_THAT(core, IsOk());
  const auto& instructions = (*core)->plan().instructions;
  const auto is = [](absl::string_view type) {
    return [type](const Instruction& instruction) { return instruction.op_type == type; };
  };
  EXPECT_EQ(std::count_if(instructions.begin(), instructions.end(), is("memcpy_p2p")), kTerms);
  EXPECT_EQ(std::count_if(instructions.begin(), instructions.end(), is("memcpy_d2h")), 1);
  for (int run = 0; run < 8; ++run) {
    const int64_t rows = run < 5 ? 4 : 2 + run;
    Tensor x = testing::VectorOf<float>(UpTo(static_cast<size_t>(8 * rows)));
    x.shape = {rows, 8};
    const auto got = (*core)->Run({x});
    ASSERT_THAT(got, IsOk());
    const auto want = (*host)->Run({x});
    ASSERT_THAT(want, IsOk());
    EXPECT_THAT(
        testing::Values<float>((*got)[0]),
        ::testing::Pointwise(::testing::FloatNear(1e-6F), testing::Values<float>((*want)[0])));
  }
}

TEST_P(CudaPeerPrograms, GiveWhatTheHostGives) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const auto machine = Machine::Start(TwoGpus(seed));
    if (absl::IsNotFound(machine.status())) return;  // one GPU alone
    ASSERT_THAT(machine, IsOk());
    RunBoth();
    EXPECT_THAT((*machine)->TakeFindings(), ::testing::IsEmpty()) << seed;
  }
}

// An input of which only the shape is read may lie on another GPU.
TEST(CudaPeerGraphs, LeaveOutWhatReadsMemoryOfAPeerAlone) {
  const auto machine = Machine::Start(TwoGpus(1));
  if (absl::IsNotFound(machine.status())) return;
  ASSERT_THAT(machine, IsOk());
  testing::TestProgram builder(DType::kFloat32);
  builder.Feed("x", {4}, DType::kFloat32);
  builder.Declare("g", {4}, DType::kFloat32);
  const testing::TestProgram::Attrs first = {{"op_device", std::string("cuda:0")}};
  const testing::TestProgram::Attrs second = {{"op_device", std::string("cuda:1")}};
  builder.AddOp("tanh", {{"X", {"x"}}}, {{"Out", {"a"}}}, first);
  builder.AddOp("tanh", {{"X", {"x"}}}, {{"Out", {"g"}}}, second);
  builder.AddOp("elementwise_add_grad", {{"X", {"a"}}, {"Y", {"a"}}, {"Out@GRAD", {"g"}}},
                {{"X@GRAD", {"da"}}}, second);
  builder.AddOp("tanh", {{"X", {"a"}}}, {{"Out", {"b"}}}, second);
  builder.Fetch("da");
  builder.Fetch("b");
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, {});
  ASSERT_THAT(core, IsOk());
  const Plan& plan = (*core)->plan();
  for (const Instruction& instruction : plan.instructions) {
    const bool copy = absl::StartsWith(instruction.op_type, "memcpy");
    if (instruction.place.on_host()) continue;
    EXPECT_EQ(!WhyInNoGraph(plan, instruction).empty(), copy) << instruction.op_type;
    if (instruction.op_type != "memcpy_p2p") continue;
    EXPECT_EQ(WhyInNoGraph(plan, instruction), "reads memory of another GPU");
  }
}

// Devices of two kinds know nothing of each other's memory.
TEST(CudaPeersOfTwoKinds, GoThroughTheHostToAnotherKindOfDevice) {
  const auto machine = Machine::Start({});
  if (absl::IsNotFound(machine.status())) return;
  ASSERT_THAT(machine, IsOk());
  testing::TestProgram builder(DType::kFloat32);
  builder.Feed("x", {4}, DType::kFloat32);
  const auto double_on = [&](const char* device, const char* in, const char* out) {
    builder.AddOp("elementwise_add", {{"X", {in}}, {"Y", {in}}}, {{"Out", {out}}},
                  {{"op_device", std::string(device)}});
  };
  double_on("sim:0", "x", "a");
  double_on("cuda:0", "a", "b");
  double_on("sim:0", "b", "c");
  builder.Fetch("c");
  const auto core = InterpreterCore::Create(builder.Build(), {}, {}, nullptr, {});
  ASSERT_THAT(core, IsOk());
  std::vector<std::string> copies;
  for (const Instruction& instruction : (*core)->plan().instructions) {
    if (absl::StartsWith(instruction.op_type, "memcpy")) copies.emplace_back(instruction.op_type);
  }
  EXPECT_THAT(copies, ::testing::ElementsAre("memcpy_h2d", "memcpy_d2h", "memcpy_h2d", "memcpy_d2h",
                                             "memcpy_h2d", "memcpy_d2h"));
  const auto got = (*core)->Run({testing::VectorOf<float>({1, 2, 3, 4})});
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(testing::Values<float>((*got)[0]), ::testing::ElementsAre(8, 16, 24, 32));
  EXPECT_THAT((*machine)->TakeFindings(), ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Ways, CudaPeerPrograms,
    ::testing::Values(Way{.name = "Trace"}, Way{.name = "EventGc", .gc = GcPolicy::kEvent},
                      Way{.name = "Graphs", .graphs = true},
                      Way{.name = "Async", .scheduler = SchedulerKind::kAsync, .workers = 3},
                      Way{.name = "Engine", .scheduler = SchedulerKind::kEngine, .workers = 2}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace interp::cuda_test
