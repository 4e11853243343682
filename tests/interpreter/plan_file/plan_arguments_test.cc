// Plan files that say of memory, captures, numbers and streams what their program does not.
#include "interpreter/plan_file/plan_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "interpreter/analysis/storage.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/plan_file/plan_file.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/test_program.h"

namespace interp::testing::plan_arguments_test {
namespace {

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// The block of `repeat` reads x and writes y.
CompiledProgram CompiledLoop() {
  const Program program = TestProgram(DType::kInt64)
                              .Feed("go", {1})
                              .Feed("x", {-1})
                              .Declare("y", {-1})
                              .Call("mix", {"x"}, "y", {{"tag", 1}})
                              .DeclareSteps("steps")
                              .Open()
                              .Call("mix", {"y", "x"}, "y", {{"tag", 2}})
                              .Close("repeat", {{"Condition", {"go"}}}, {{"Steps", {"steps"}}})
                              .Call("mix", {"y", "x"}, "z", {{"tag", 3}})
                              .Fetch("z")
                              .Build();
  return *Compile(program, {}, {}, {}, {}, ProbeOps());
}

Instruction& InstructionOf(Plan& plan, absl::string_view type) {
  const auto found = std::find_if(plan.instructions.begin(), plan.instructions.end(),
                                  [&](const Instruction& i) { return i.op_type == type; });
  EXPECT_TRUE(found != plan.instructions.end()) << type;
  return *found;
}

template <typename Change>
absl::Status Reread(const Change& change) {
  CompiledProgram compiled = CompiledLoop();
  EXPECT_EQ(compiled.plans.size(), 2U);
  change(compiled.plans[0], compiled.plans[1]);
  const absl::StatusOr<std::string> bytes = FormatPlan(compiled);
  return bytes.ok() ? ParsePlan(*bytes, ProbeOps()).status() : bytes.status();
}

TEST(PlanArgumentsTest, ThoseOfAProgramAreTaken) {
  EXPECT_THAT(Reread([](Plan&, Plan&) {}), IsOk());
}

TEST(PlanArgumentsTest, MemoryIsSharedAsTheKernelDeclares) {
  const auto status = Reread([](Plan& plan, Plan&) {
    Instruction& feed = InstructionOf(plan, "feed");
    feed.share = {{0, 0}};
  });
  EXPECT_THAT(status, FailsWith(kInvalidArgument, "would use the memory of input 0"));
}

// It would point at memory of the caller, who frees it after the run.
TEST(PlanArgumentsTest, PersistableVariablesHaveTheirOwnMemory) {
  CompiledProgram compiled = *Compile(*ParseProgram(R"(block 0
  var x int64[2]
  var kept int64[2] persistable
  view(X=x) -> (Out=kept) {shape=[2]}
)"),
                                      {"x"}, {"kept"}, {}, {}, ProbeOps());
  Plan& plan = compiled.plans[0];
  Instruction& view = InstructionOf(plan, "view");
  ASSERT_TRUE(view.share.empty());
  view.share = {{0, 0}};
  AnalyzeStorage(plan.instructions, plan.vars);
  const absl::StatusOr<std::string> bytes = FormatPlan(compiled);
  ASSERT_THAT(bytes, IsOk());
  EXPECT_THAT(ParsePlan(*bytes, ProbeOps()),
              FailsWith(kInvalidArgument,
                        "output 'kept' outlives the run, but would use the memory of input 0"));
}

TEST(PlanArgumentsTest, BlocksCaptureWhatTheProgramSays) {
  const auto status = Reread([](Plan& plan, Plan& inner) {
    Instruction& repeat = InstructionOf(plan, "repeat");
    const VarId written = repeat.outputs.back();
    for (VarId& id : repeat.inputs) id = id == written ? id : written;
    ASSERT_GE(inner.captures.size(), 2U);
  });
  EXPECT_THAT(status, FailsWith(kInvalidArgument, ""));
  const auto hidden = Reread([](Plan& plan, Plan&) {
    Instruction& repeat = InstructionOf(plan, "repeat");
    repeat.inputs.back() = repeat.inputs[repeat.inputs.size() - 2];
  });
  EXPECT_THAT(hidden, FailsWith(kInvalidArgument, "block 1 does not capture the '"));
}

TEST(PlanArgumentsTest, NumbersOfInstructionsFollowTheBlocks) {
  EXPECT_THAT(Reread([](Plan&, Plan& inner) { inner.first_number = 1 << 20; }),
              FailsWith(kInvalidArgument, "block 1 numbers its instructions from 1048576"));
}

TEST(PlanArgumentsTest, BlocksRunOnTheStreamsOfTheMainOne) {
  EXPECT_THAT(Reread([](Plan&, Plan& inner) {
                inner.streams.push_back({.name = "compute", .place = {PlaceKind::kSim, 0}});
              }),
              FailsWith(kInvalidArgument, "has other streams than the main block"));
  EXPECT_THAT(Reread([](Plan& plan, Plan& inner) {
                plan.streams.clear();
                inner.streams.clear();
              }),
              FailsWith(kInvalidArgument, "or none of the host"));
}

TEST(PlanArgumentsTest, VariablesLieWhereStreamsAre) {
  EXPECT_THAT(Reread([](Plan& plan, Plan&) {
                plan.vars.back().place = {PlaceKind::kSim, 0};
              }),
              FailsWith(kInvalidArgument, "lies on sim:0, where no stream is"));
}

TEST(PlanArgumentsTest, GradientsTakeWhatTheProgramSays) {
  EXPECT_THAT(Reread([](Plan&, Plan& inner) { inner.gradient_block = 1; }),
              FailsWith(kInvalidArgument, "leaves or takes other values for a gradient"));
}

}  // namespace
}  // namespace interp::testing::plan_arguments_test
