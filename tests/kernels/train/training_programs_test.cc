// Whole training programs of the golden sets: steps against Paddle's, and the backward part that
// AppendBackward makes against the one that Paddle made.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/op_role.h"
#include "core/program_load.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter_core.h"
#include "passes/train/append_backward.h"
#include "passes/train/minimize.h"
#include "tests/testing/golden_steps.h"
#include "tests/testing/matchers.h"

namespace interp::training_programs_test {
namespace {

using testing::FillScope;
using testing::FindValue;
using testing::GoldenProgram;
using ::testing::IsEmpty;
using testing::NameOfGoldenProgram;
using testing::ValuesInScope;

class TrainingProgramTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    absl::StatusOr<GoldenProgram> golden = testing::ReadGoldenProgram(GetParam());
    ASSERT_THAT(golden, testing::IsOk());
    golden_ = *std::move(golden);
    absl::StatusOr<Program> program = LoadProgram(golden_.program);
    ASSERT_THAT(program, testing::IsOk());
    program_ = *std::move(program);
  }

  void ExpectSteps(Program program, const CoreOptions& options) const {
    EXPECT_THAT(testing::RunGoldenSteps(golden_, NameOfGoldenProgram(GetParam()),
                                        std::move(program), options),
                IsEmpty());
  }

  // What the persistable variables are after two steps, as bytes.
  std::vector<std::string> FinalBytes(const CoreOptions& options) {
    auto scope = std::make_shared<Scope>();
    EXPECT_THAT(FillScope(golden_.initial, *scope), testing::IsOk());
    auto core =
        InterpreterCore::Create(program_, golden_.feed_order, golden_.fetch_order, scope, options);
    EXPECT_THAT(core, testing::IsOk());
    std::vector<std::string> bytes;
    for (int step = 0; core.ok() && step < 2; ++step) {
      std::vector<Tensor> feeds;
      for (const std::string& name : golden_.feed_order) {
        feeds.push_back(FindValue(golden_.steps[step].feeds, name));
      }
      const absl::StatusOr<std::vector<Tensor>> results = (*core)->Run(feeds);
      EXPECT_THAT(results, testing::IsOk());
    }
    for (const auto& [name, tensor] : ValuesInScope(golden_.final, *scope)) {
      bytes.emplace_back(static_cast<const char*>(tensor.raw_data()), tensor.size_bytes());
    }
    return bytes;
  }

  GoldenProgram golden_;
  Program program_;
};

TEST_P(TrainingProgramTest, AgreesWithPaddle) {
  CoreOptions options;
  options.passes.disable = {"prune"};
  ExpectSteps(program_, options);
}

// What one op of a backward part is, apart from the order of slots and ops.
std::string Describe(const Program& program, const Op& op) {
  std::set<std::string> parts;
  const auto add = [&](absl::string_view direction, const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) {
      std::vector<std::string> names;
      bool any = false;
      for (const VarId id : slot.args) {
        names.push_back(program.NameOf(id));
        any = any || names.back() != kEmptyVarName;
      }
      if (any) parts.insert(absl::StrCat(direction, slot.name, "=", absl::StrJoin(names, ",")));
    }
  };
  add("", op.inputs);
  add(">", op.outputs);
  return absl::StrCat(op.type, " ", absl::StrJoin(parts, " "));
}

std::vector<std::string> BackwardOps(const Program& program) {
  std::vector<std::string> ops;
  for (const Op& op : program.blocks[0].ops) {
    if (IsBackward(op)) ops.push_back(Describe(program, op));
  }
  std::sort(ops.begin(), ops.end());
  return ops;
}

// The forward part of a training program, and its loss: "" where it has none.
std::string StripBackward(Program& program) {
  std::string loss;
  for (const Op& op : program.blocks[0].ops) {
    if (RoleOf(op) == (kForwardRole | kLossRole)) loss = program.NameOf(op.outputs[0].args[0]);
  }
  std::vector<Op>& ops = program.blocks[0].ops;
  ops.erase(std::find_if(ops.begin(), ops.end(), IsBackward), ops.end());
  std::erase_if(program.blocks[0].vars, [&](const Var& var) {
    return absl::StrContains(program.NameOf(var.id), kGradientSuffix);
  });
  return loss;
}

// Whether a forward program, where there is one, has gradients of its own.
bool HasGradients(absl::string_view forward) {
  const absl::StatusOr<Program> program = LoadProgram(forward);
  return program.ok() &&
         std::any_of(program->blocks[0].ops.begin(), program->blocks[0].ops.end(), IsBackward);
}

TEST_P(TrainingProgramTest, BackwardIsThatOfPaddle) {
  Program forward = program_;
  const std::string loss = StripBackward(forward);
  if (loss.empty()) GTEST_SKIP() << "trains nothing";
  if (HasGradients(golden_.forward))
    GTEST_SKIP() << "its gradients would go with the backward part";
  const absl::StatusOr<BackwardProgram> made =
      AppendBackward(std::move(forward), {.loss = loss}, OpRegistry::Global());
  ASSERT_THAT(made, testing::IsOk());
  EXPECT_EQ(BackwardOps(made->program), BackwardOps(program_));
}

TEST_P(TrainingProgramTest, AllSchedulersAndWorkersGiveTheSameBits) {
  const auto run = [&](SchedulerKind scheduler, int workers, int threads) {
    CoreOptions options;
    options.passes.disable = {"prune"};
    options.scheduler = scheduler;
    options.num_workers = workers;
    options.num_threads = threads;
    return FinalBytes(options);
  };
  const std::vector<std::string> want = run(SchedulerKind::kTrace, 1, 1);
  EXPECT_EQ(run(SchedulerKind::kTrace, 1, 2), want);
  EXPECT_EQ(run(SchedulerKind::kAsync, 4, 1), want);
  EXPECT_EQ(run(SchedulerKind::kEngine, 2, 1), want);
}

// Paddle's numbers with the backward part and the optimizer that interp appends.
TEST_P(TrainingProgramTest, MinimizeTrainsAsPaddle) {
  if (golden_.optimizer.empty()) GTEST_SKIP() << "has no forward program";
  absl::StatusOr<Program> forward = LoadProgram(golden_.forward);
  ASSERT_THAT(forward, testing::IsOk());
  const absl::StatusOr<OptimizerSpec> optimizer = ParseOptimizerSpec(golden_.optimizer);
  ASSERT_THAT(optimizer, testing::IsOk());
  absl::StatusOr<TrainingPrograms> made =
      Minimize(*std::move(forward), Program(),
               {.backward = {.loss = golden_.loss}, .optimizer = *optimizer}, OpRegistry::Global());
  ASSERT_THAT(made, testing::IsOk());
  CoreOptions options;
  options.passes.disable = {"prune"};
  ExpectSteps(std::move(made->main), options);
}

INSTANTIATE_TEST_SUITE_P(Goldens, TrainingProgramTest,
                         ::testing::ValuesIn(testing::AllGoldenPrograms()),
                         [](const auto& info) { return NameOfGoldenProgram(info.param); });

}  // namespace
}  // namespace interp::training_programs_test
