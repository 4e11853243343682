// Whole training programs of the golden sets: steps against Paddle's, and the backward part that
// AppendBackward makes against the one that Paddle made.
#include <algorithm>
#include <filesystem>
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
#include "passes/append_backward.h"
#include "passes/minimize.h"
#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"

namespace interp::training_programs_test {
namespace {

using testing::Difference;
using testing::GoldenProgram;
using ::testing::IsEmpty;

std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  for (const std::string& set : testing::GoldenSets()) {
    for (const std::string& folder : testing::GoldenProgramFolders(set)) folders.push_back(folder);
  }
  return folders;
}

std::string NameOf(const std::string& folder) {
  std::string name = std::filesystem::path(folder).filename().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

// Parameters whose gradients are zero but for rounding, which Adam makes steps of full length: the
// bias of keys in front of a softmax, that of a convolution in front of a batch_norm, whose moving
// mean follows it. "program/variable".
const std::set<std::string>& Noise() {
  static const auto& noise = *new std::set<std::string>{
      "attention_block/fc_1.b_0",
      "depthwise_convnet/depthwise_conv2d_0.b_0",
      "depthwise_convnet/batch_norm_0.w_1",
  };
  return noise;
}

std::string Compare(const std::vector<NamedTensor>& want, const std::vector<NamedTensor>& got,
                    const GoldenProgram& golden) {
  std::vector<std::string> errors;
  for (size_t i = 0; i < want.size(); ++i) {
    const std::string difference =
        Difference(got[i].second, want[i].second, golden.rtol, golden.atol);
    if (!difference.empty()) errors.push_back(absl::StrCat(want[i].first, " ", difference));
  }
  return absl::StrJoin(errors, "\n");
}

absl::Status Fill(const std::vector<NamedTensor>& values, Scope& scope) {
  for (const auto& [name, tensor] : values) {
    INTERP_ASSIGN_OR_RETURN(scope.FindOrCreate(name)->tensor, tensor.Clone(SystemAllocator()));
    ++scope.FindOrCreate(name)->version;
  }
  return absl::OkStatus();
}

std::vector<NamedTensor> Values(const std::vector<NamedTensor>& names, Scope& scope) {
  std::vector<NamedTensor> values;
  for (const auto& [name, tensor] : names) {
    values.emplace_back(name, scope.FindOrCreate(name)->tensor);
  }
  return values;
}

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

  // Runs all steps of `program` and compares what is fetched, and at the end what has changed.
  void ExpectSteps(Program program, const CoreOptions& options) {
    auto scope = std::make_shared<Scope>();
    ASSERT_THAT(Fill(golden_.initial, *scope), testing::IsOk());
    auto core = InterpreterCore::Create(std::move(program), golden_.feed_order, golden_.fetch_order,
                                        scope, options);
    ASSERT_THAT(core, testing::IsOk());
    for (const GoldenProgram::Step& step : golden_.steps) {
      ASSERT_THAT(Fill(step.set, *scope), testing::IsOk());
      std::vector<Tensor> feeds;
      for (const std::string& name : golden_.feed_order) feeds.push_back(Find(step.feeds, name));
      const absl::StatusOr<std::vector<Tensor>> results = (*core)->Run(feeds);
      ASSERT_THAT(results, testing::IsOk());
      std::vector<NamedTensor> want;
      std::vector<NamedTensor> got;
      for (size_t i = 0; i < results->size(); ++i) {
        const std::string& name = golden_.fetch_order[i];
        want.emplace_back(name, Find(step.fetches, name));
        got.emplace_back(name, (*results)[i]);
      }
      EXPECT_THAT(Compare(want, got, golden_), IsEmpty()) << "step " << &step - &golden_.steps[0];
    }
    const std::string name = NameOf(GetParam());
    std::erase_if(golden_.final, [&](const NamedTensor& value) {
      return Noise().contains(absl::StrCat(name, "/", value.first));
    });
    EXPECT_THAT(Compare(golden_.final, Values(golden_.final, *scope), golden_), IsEmpty());
  }

  // What the persistable variables are after two steps, as bytes.
  std::vector<std::string> FinalBytes(const CoreOptions& options) {
    auto scope = std::make_shared<Scope>();
    EXPECT_THAT(Fill(golden_.initial, *scope), testing::IsOk());
    auto core =
        InterpreterCore::Create(program_, golden_.feed_order, golden_.fetch_order, scope, options);
    EXPECT_THAT(core, testing::IsOk());
    std::vector<std::string> bytes;
    for (int step = 0; core.ok() && step < 2; ++step) {
      std::vector<Tensor> feeds;
      for (const std::string& name : golden_.feed_order) {
        feeds.push_back(Find(golden_.steps[step].feeds, name));
      }
      const absl::StatusOr<std::vector<Tensor>> results = (*core)->Run(feeds);
      EXPECT_THAT(results, testing::IsOk());
    }
    for (const auto& [name, tensor] : Values(golden_.final, *scope)) {
      bytes.emplace_back(static_cast<const char*>(tensor.raw_data()), tensor.size_bytes());
    }
    return bytes;
  }

  static Tensor Find(const std::vector<NamedTensor>& tensors, const std::string& name) {
    for (const NamedTensor& tensor : tensors) {
      if (tensor.first == name) return tensor.second;
    }
    return Tensor();
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

TEST_P(TrainingProgramTest, BackwardIsThatOfPaddle) {
  Program forward = program_;
  const std::string loss = StripBackward(forward);
  if (loss.empty()) GTEST_SKIP() << "trains nothing";
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

INSTANTIATE_TEST_SUITE_P(Goldens, TrainingProgramTest, ::testing::ValuesIn(Folders()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace interp::training_programs_test
