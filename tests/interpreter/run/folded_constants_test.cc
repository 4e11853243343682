#include "interpreter/run/folded_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interpreter/interpreter_core.h"
#include "interpreter/plan_file/plan_file.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe.h"
#include "tests/testing/probe_cores.h"
#include "tests/testing/test_program.h"

namespace interp::testing::folded_constants_test {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

CoreOptions Options(bool fold = true) {
  CoreOptions options = ProbeOptions();
  options.plan.fold_constants = fold;
  return options;
}

// A constant, what is made of it and a parameter, fetched too, and a reader of both.
Program Folding(int64_t size = 2) {
  return TestProgram(DType::kInt64)
      .Feed("x", {-1})
      .Param("w", {size})
      .Declare("c", {size})
      .AddOp("source", {}, {{"Out", {"c"}}},
             {{"tag", 1}, {"dtype", 3}, {"shape", std::vector<int64_t>{size}}})
      .Call("mix", {"w", "c"}, "a", {{"tag", 2}})
      .Call("mix", {"x", "a"}, "b", {{"tag", 3}})
      .Fetch("a")
      .Fetch("b")
      .Build();
}

std::shared_ptr<Scope> ScopeWith(const Tensor& w) {
  auto scope = std::make_shared<Scope>();
  scope->FindOrCreate("w")->tensor = w;
  return scope;
}

std::vector<Tensor> RunOn(InterpreterCore& core, const std::vector<Tensor>& feeds) {
  auto out = core.Run(feeds);
  EXPECT_THAT(out, IsOk());
  return out.ok() ? *std::move(out) : std::vector<Tensor>();
}

std::vector<Tensor> Unfolded(const Program& program, const Tensor& w, const Tensor& x) {
  return RunOn(*MakeProbeCore(program, ScopeWith(w), Options(/*fold=*/false)), {x});
}

TEST(FoldedConstantsTest, RunOnceAndGiveTheSameBits) {
  const Program program = Folding();
  const auto core = MakeProbeCore(program, ScopeWith(VectorOf<int64_t>({5, 7})));
  Probe probe;
  for (const int64_t first : {1, 2, 3}) {
    const std::vector<Tensor> out = RunOn(*core, {VectorOf<int64_t>({first, 9})});
    if (first == 1) {
      EXPECT_THAT(probe.TakeTrace(), ElementsAre(1, 2, 3));
    } else {
      EXPECT_THAT(probe.TakeTrace(), ElementsAre(3));
    }
    EXPECT_TRUE(
        SameBits(out, Unfolded(program, VectorOf<int64_t>({5, 7}), VectorOf<int64_t>({first, 9}))));
    probe.TakeTrace();
  }
}

// Also for the fetched one: callers may write to what they get.
TEST(FoldedConstantsTest, ClonesShareThemAndCallersDoNot) {
  const Program program = Folding();
  const auto core = MakeProbeCore(program, ScopeWith(VectorOf<int64_t>({5, 7})));
  Probe probe;
  const std::vector<Tensor> out = RunOn(*core, {VectorOf<int64_t>({1, 2})});
  probe.TakeTrace();
  const auto clone = core->Clone();
  EXPECT_TRUE(SameBits(RunOn(*clone, {VectorOf<int64_t>({1, 2})}), out));
  EXPECT_THAT(probe.TakeTrace(), ElementsAre(3));
  const auto variable = [&](const InterpreterCore& of, absl::string_view name) -> const Tensor& {
    size_t id = 0;
    while (of.plan().vars[id].name != name) ++id;
    return of.variables()[id]->tensor;
  };
  EXPECT_EQ(variable(*core, "a").raw_data(), variable(*clone, "a").raw_data());
  EXPECT_FALSE(variable(*core, "c").has_memory()) << "nobody reads it any more";
}

TEST(FoldedConstantsTest, AreMadeAnewOfAnotherParameter) {
  const Program program = Folding();
  const auto scope = ScopeWith(VectorOf<int64_t>({5, 7}));
  const auto core = MakeProbeCore(program, scope);
  const auto clone = core->Clone();
  RunOn(*core, {VectorOf<int64_t>({1, 2})});
  for (const int64_t value : {6, 7}) {
    scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({value, 7});
    const std::vector<Tensor> expected =
        Unfolded(program, VectorOf<int64_t>({value, 7}), VectorOf<int64_t>({1, 2}));
    EXPECT_TRUE(SameBits(RunOn(*clone, {VectorOf<int64_t>({1, 2})}), expected));
    EXPECT_TRUE(SameBits(RunOn(*core, {VectorOf<int64_t>({1, 2})}), expected));
  }
}

TEST(FoldedConstantsTest, FailAsTheirOpsDo) {
  const Program program = Folding();
  const auto plain =
      MakeProbeCore(program, ScopeWith(VectorOf<int64_t>({5, 7})), Options(/*fold=*/false));
  const auto core = MakeProbeCore(program, ScopeWith(VectorOf<int64_t>({5, 7})));
  Probe probe;
  for (const int32_t tag : {1, 2}) {
    probe.FailAt(tag);
    const absl::Status expected = plain->Run({VectorOf<int64_t>({1, 2})}).status();
    EXPECT_FALSE(expected.ok());
    EXPECT_EQ(core->Run({VectorOf<int64_t>({1, 2})}).status(), expected);
    EXPECT_EQ(core->Run({VectorOf<int64_t>({1, 2})}).status(), expected) << "and again";
  }
  probe.FailNowhere();
  EXPECT_TRUE(SameBits(RunOn(*core, {VectorOf<int64_t>({1, 2})}),
                       RunOn(*plain, {VectorOf<int64_t>({1, 2})})));
}

TEST(FoldedConstantsTest, AMissingParameterIsToldAsBefore) {
  const Program program = Folding();
  const auto plain = MakeProbeCore(program, nullptr, Options(/*fold=*/false));
  const absl::Status expected = plain->Run({VectorOf<int64_t>({1, 2})}).status();
  EXPECT_THAT(expected, FailsWith(StatusCode::kNotFound, "'w'"));
  EXPECT_EQ(MakeProbeCore(program, nullptr)->Run({VectorOf<int64_t>({1, 2})}).status(), expected);
}

// An op in a block that is not entered does not fail.
TEST(FoldedConstantsTest, OfABlockAreMadeWhenItRuns) {
  const Program program = TestProgram(DType::kInt64)
                              .Feed("go", {1})
                              .Feed("x", {-1})
                              .Param("w", {2})
                              .Declare("y", {-1})
                              .Call("mix", {"x"}, "y", {{"tag", 4}})
                              .DeclareSteps("steps")
                              .Open()
                              .Call("mix", {"w"}, "a", {{"tag", 1}})
                              .Call("mix", {"y", "a"}, "y", {{"tag", 2}})
                              .Close("repeat", {{"Condition", {"go"}}}, {{"Steps", {"steps"}}})
                              .Fetch("y")
                              .Build();
  const auto core = MakeProbeCore(program, ScopeWith(VectorOf<int64_t>({5, 7})));
  ASSERT_THAT(core->plans()[1].folded, Not(IsEmpty()));
  const auto plain =
      MakeProbeCore(program, ScopeWith(VectorOf<int64_t>({5, 7})), Options(/*fold=*/false));
  Probe probe;
  bool failed = false;
  for (const int64_t go : {0, 1, 2, 3, 5, 7}) {
    probe.FailNowhere();
    const std::vector<Tensor> feeds = {VectorOf<int64_t>({go}), VectorOf<int64_t>({1, 2})};
    EXPECT_TRUE(SameBits(RunOn(*core, feeds), RunOn(*plain, feeds)));
    probe.FailAt(1);
    const absl::Status expected = plain->Run(feeds).status();
    failed = failed || !expected.ok();
    EXPECT_EQ(MakeProbeCore(program, ScopeWith(VectorOf<int64_t>({5, 7})))->Run(feeds).status(),
              expected);
  }
  EXPECT_TRUE(failed);
}

TEST(FoldedConstantsTest, OnADeviceAreCopiedThere) {
  const Program program = Folding();
  CoreOptions options = Options();
  options.plan.place = {PlaceKind::kSim, 0};
  const auto scope = ScopeWith(VectorOf<int64_t>({5, 7}));
  const auto core = MakeProbeCore(program, scope, options);
  const std::vector<Tensor> expected =
      Unfolded(program, VectorOf<int64_t>({5, 7}), VectorOf<int64_t>({1, 2}));
  EXPECT_TRUE(SameBits(RunOn(*core, {VectorOf<int64_t>({1, 2})}), expected));
  EXPECT_TRUE(SameBits(RunOn(*core->Clone(), {VectorOf<int64_t>({1, 2})}), expected));
  scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({6, 7});
  EXPECT_TRUE(SameBits(RunOn(*core, {VectorOf<int64_t>({1, 2})}),
                       Unfolded(program, VectorOf<int64_t>({6, 7}), VectorOf<int64_t>({1, 2}))));
}

TEST(FoldedConstantsTest, PlanFilesHoldThem) {
  const Program program = Folding();
  const auto compiled = Compile(program, {}, {}, {}, {}, ProbeOps());
  ASSERT_THAT(compiled, IsOk());
  const absl::StatusOr<std::string> bytes = FormatPlan(*compiled);
  ASSERT_THAT(bytes, IsOk());
  absl::StatusOr<CompiledProgram> loaded = ParsePlan(*bytes, ProbeOps());
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->main().folded.size(), 2u);
  EXPECT_THAT(CheckProved(loaded->plans), IsOk());
  EXPECT_EQ(*FormatPlan(*loaded), *bytes);
  const auto core =
      InterpreterCore::Create(*std::move(loaded), ScopeWith(VectorOf<int64_t>({5, 7})), Options());
  ASSERT_THAT(core, IsOk());
  EXPECT_TRUE(SameBits(RunOn(**core, {VectorOf<int64_t>({1, 2})}),
                       Unfolded(program, VectorOf<int64_t>({5, 7}), VectorOf<int64_t>({1, 2}))));
}

TEST(FoldedConstantsTest, MayBeEmpty) {
  const Program program = Folding(0);
  const auto core = MakeProbeCore(program, ScopeWith(VectorOf<int64_t>({})));
  for (int run = 0; run < 2; ++run) {
    EXPECT_TRUE(SameBits(RunOn(*core, {VectorOf<int64_t>({1, 2})}),
                         Unfolded(program, VectorOf<int64_t>({}), VectorOf<int64_t>({1, 2}))));
  }
}

// A run that ends early leaves them for the next.
TEST(FoldedConstantsTest, ACancelledRunMayBeRepeated) {
  const Program program = Folding();
  const auto core = MakeProbeCore(program, ScopeWith(VectorOf<int64_t>({5, 7})));
  Probe probe;
  probe.SetHook([&](int32_t tag) {
    if (tag == 1) core->Cancel();
  });
  EXPECT_THAT(core->Run({VectorOf<int64_t>({1, 2})}),
              FailsWith(StatusCode::kCancelled, "cancelled"));
  EXPECT_THAT(probe.TakeTrace(), ElementsAre(1));
  probe.SetHook(nullptr);
  EXPECT_TRUE(SameBits(RunOn(*core, {VectorOf<int64_t>({1, 2})}),
                       Unfolded(program, VectorOf<int64_t>({5, 7}), VectorOf<int64_t>({1, 2}))));
}

}  // namespace
}  // namespace interp::testing::folded_constants_test
