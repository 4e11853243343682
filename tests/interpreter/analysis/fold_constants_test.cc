#include "interpreter/analysis/fold_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interpreter/verify/plan_structure.h"
#include "tests/testing/matchers.h"
#include "tests/testing/plans.h"

namespace interp::testing::fold_constants_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> FoldedOf(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Instruction& instruction : plan.folded) texts.push_back(Brief(plan, instruction));
  return texts;
}

std::vector<std::string> FoldedOf(absl::string_view text, const PlanOptions& options = {}) {
  const absl::StatusOr<Plan> plan = PlanOf(text, options);
  EXPECT_THAT(plan, IsOk());
  return plan.ok() ? FoldedOf(*plan) : std::vector<std::string>();
}

constexpr char kChain[] = R"(block 0
  var w int64[2] persistable
  var x int64[2]
  var c int64[2]
  var a int64[2]
  var b int64[2]
  source() -> (Out=c) {dtype=3, shape=[2]}
  mix(X=[w, c]) -> (Out=a)
  mix(X=[x, a]) -> (Out=b)
)";

TEST(FoldConstantsTest, WhatDependsOnConstantsAloneIsFolded) {
  const absl::StatusOr<Plan> plan = PlanOf(kChain);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(FoldedOf(*plan), ElementsAre("source()->c", "mix(w,c)->a"));
  EXPECT_THAT(Briefs(*plan), ElementsAre("mix(x,a)->b"));
  const PlanVar& a = plan->vars[VarNamed(*plan, "a")];
  EXPECT_TRUE(a.folded && a.constant && !a.persistable);
  EXPECT_EQ(plan->ref_counts[VarNamed(*plan, "a")], 0);
  EXPECT_TRUE(plan->edges.empty());
}

TEST(FoldConstantsTest, NothingIsFoldedWhenSwitchedOff) {
  EXPECT_THAT(FoldedOf(kChain, {.fold_constants = false}), IsEmpty());
}

TEST(FoldConstantsTest, OnDevicesItHappensOnTheHost) {
  const absl::StatusOr<Plan> plan = PlanOf(kChain, {.place = {PlaceKind::kSim, 0}});
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(FoldedOf(*plan), ElementsAre("source()->c", "mix(w,c)->a"));
  EXPECT_TRUE(plan->folded[1].place.on_host());
  EXPECT_EQ(plan->vars[plan->instructions.back().inputs[1]].copy_of, VarNamed(*plan, "a"));
}

// What is written twice, read before, of unknown size, random, dynamic or a parameter itself.
TEST(FoldConstantsTest, OnlyVariablesOfOneKnownValueAreFolded) {
  EXPECT_THAT(FoldedOf(R"(block 0
  var w int64[2] persistable
  var p int64[2] persistable
  var twice int64[2]
  var early int64[2]
  var any int64[-1]
  var drawn int64[2]
  var made int64[2]
  var seen int64[2]
  mix(X=early) -> (Out=seen)
  source() -> (Out=early) {dtype=3, shape=[2]}
  source() -> (Out=twice) {dtype=3, shape=[2]}
  mix(X=twice) -> (Out=twice) inplace(X->Out)
  mix(X=w) -> (Out=any)
  mix(X=w) -> (Out=undeclared)
  random() -> (Out=drawn) {dtype=3, shape=[2]}
  dynamic(X=w) -> (Out=made)
  mix(X=w) -> (Out=p)
)"),
              IsEmpty());
}

// A parameter that the program writes anywhere is none.
TEST(FoldConstantsTest, WhatIsWrittenIsNoConstant) {
  EXPECT_THAT(FoldedOf(R"(block 0
  var w int64[2] persistable
  var x int64[2]
  var a int64[2]
  mix(X=w) -> (Out=a)
  update(Param=w, X=x) -> (ParamOut=w)
)"),
              IsEmpty());
}

TEST(FoldConstantsTest, NoOutputTakesOverWhatIsFolded) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var x int64[2]
  var c int64[2]
  var a int64[2]
  var v int64[2]
  source() -> (Out=c) {dtype=3, shape=[2]}
  view(X=c) -> (Out=v) {shape=[2]} inplace(X->Out)
  mix(X=[c, x, v]) -> (Out=a) inplace(X->Out)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(FoldedOf(*plan), ElementsAre("source()->c", "view(c)->v"));
  EXPECT_EQ(plan->folded[1].share.size(), 1u);
  EXPECT_TRUE(plan->instructions[0].share.empty());
}

TEST(FoldConstantsTest, WhatGrowsMuchIsMadeInEveryRun) {
  const auto fold = [](int64_t elements) {
    return FoldedOf(absl::StrCat(R"(block 0
  var x int64[2]
  var big int64[)",
                                 elements, R"(]
  var a int64[2]
  source() -> (Out=big) {dtype=3, shape=[)",
                                 elements, R"(]}
  mix(X=[x, big]) -> (Out=a)
)"));
  };
  EXPECT_THAT(fold(int64_t{1} << 17), ElementsAre("source()->big"));
  EXPECT_THAT(fold((int64_t{1} << 17) + 1), IsEmpty());
}

// `count` values of 8 MiB that the runs read, each made of a parameter of as much in `steps` steps.
std::vector<std::string> FoldedOfWeights(int count, int steps) {
  std::string vars = "block 0\n  var w int64[1048576] persistable\n  var x int64[2]\n";
  std::string ops;
  for (int i = 0; i < count; ++i) {
    std::string from = "w";
    for (int step = 0; step < steps; ++step) {
      const std::string to = absl::StrCat("a", i, "_", step);
      absl::StrAppend(&vars, "  var ", to, " int64[1048576]\n");
      absl::StrAppend(&ops, "  mix(X=", from, ") -> (Out=", to, ")\n");
      from = to;
    }
    absl::StrAppend(&vars, "  var b", i, " int64[2]\n");
    absl::StrAppend(&ops, "  mix(X=[x, ", from, "]) -> (Out=b", i, ")\n");
  }
  return FoldedOf(vars + ops);
}

// Each is no larger than the parameter, but all of them are kept.
TEST(FoldConstantsTest, AllThatIsKeptIsBounded) {
  // 16 MiB and 8 for the parameter.
  EXPECT_THAT(FoldedOfWeights(5, 1), ElementsAre("mix(w)->a0_0", "mix(w)->a1_0", "mix(w)->a2_0"));
}

// What the last step of a value reads is not kept: it does not count, and stays in the runs with a
// value that does.
TEST(FoldConstantsTest, WhatGoesAtOnceDoesNotCount) {
  EXPECT_THAT(FoldedOfWeights(4, 2),
              ElementsAre("mix(w)->a0_0", "mix(a0_0)->a0_1", "mix(w)->a1_0", "mix(a1_0)->a1_1",
                          "mix(w)->a2_0", "mix(a2_0)->a2_1"));
}

// What goes at once may be any number of times as much, but not all at a time: twice 16 MiB and 8.
TEST(FoldConstantsTest, WhatIsThereAtATimeIsBounded) {
  EXPECT_THAT(FoldedOfWeights(1, 100), ::testing::SizeIs(100));
  const auto folded_of = [](int count) {
    std::string vars = "block 0\n  var w int64[1048576] persistable\n  var x int64[2]\n";
    std::string ops;
    std::string all;
    for (int i = 0; i < count; ++i) {
      absl::StrAppend(&vars, "  var a", i, " int64[1048576]\n");
      absl::StrAppend(&ops, "  mix(X=w) -> (Out=a", i, ")\n");
      absl::StrAppend(&all, i > 0 ? ", a" : "a", i);
    }
    return FoldedOf(absl::StrCat(vars, "  var s int64[1048576]\n  var y int64[2]\n", ops,
                                 "  mix(X=[", all, "]) -> (Out=s)\n  mix(X=[x, s]) -> (Out=y)\n"));
  };
  EXPECT_THAT(folded_of(5), ::testing::SizeIs(6));
  EXPECT_THAT(folded_of(6), IsEmpty());
}

TEST(FoldConstantsTest, WhatNobodyReadsStays) {
  EXPECT_THAT(FoldedOf(R"(block 0
  var c int64[2]
  source() -> (Out=c) {dtype=3, shape=[2]}
)"),
              IsEmpty());
}

// Casts of parameters have no instruction at all; one of what is folded is folded.
TEST(FoldConstantsTest, CastsAreFoldedWithWhatTheyCast) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var w int32[2] persistable
  var x int64[2]
  var c int32[2]
  var wide int64[2]
  var a int64[2]
  source() -> (Out=c) {dtype=2, shape=[2]}
  cast(X=w) -> (Out=y) {in_dtype=2, out_dtype=3}
  cast(X=c) -> (Out=wide) {in_dtype=2, out_dtype=3}
  mix(X=[x, wide, y, c]) -> (Out=a)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(FoldedOf(*plan), ElementsAre("source()->c", "cast(c)->wide"));
  EXPECT_THAT(Briefs(*plan), ElementsAre("mix(x,wide,w_dtype_2_3,c_dtype_2_3)->a"));
}

// Shapes that follow from folded values are static.
TEST(FoldConstantsTest, ShapesOfFoldedValuesAreStatic) {
  const absl::StatusOr<Plan> plan = PlanOf(R"(block 0
  var x int64[2]
  var s int64[1]
  var a int64[-1]
  source() -> (Out=s) {dtype=3, shape=[1]}
  resize_to(X=x, Shape=s) -> (Out=a)
)");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(Briefs(*plan), ElementsAre("resize_to(x,s)->a"));
  EXPECT_FALSE(plan->instructions[0].dynamic_shape);
}

// A damaged plan file may claim anything.
TEST(FoldConstantsTest, TheStructureIsChecked) {
  const absl::StatusOr<Plan> good = PlanOf(kChain);
  ASSERT_THAT(good, IsOk());
  EXPECT_THAT(CheckPlanStructure(*good), IsOk());
  Plan plan = *good;
  std::swap(plan.folded[0], plan.folded[1]);
  EXPECT_THAT(CheckPlanStructure(plan), FailsWith(absl::StatusCode::kInvalidArgument, "'c'"));
  plan = *good;
  plan.folded.pop_back();
  EXPECT_THAT(CheckPlanStructure(plan), FailsWith(absl::StatusCode::kInvalidArgument, "'a'"));
  plan = *good;
  plan.folded[1].inputs[0] = VarNamed(plan, "x");
  EXPECT_THAT(CheckPlanStructure(plan), FailsWith(absl::StatusCode::kInvalidArgument, "'x'"));
  plan = *good;
  plan.instructions[0].outputs[0] = VarNamed(plan, "c");
  EXPECT_THAT(CheckPlanStructure(plan), FailsWith(absl::StatusCode::kInvalidArgument, "'c'"));
  plan = *good;
  plan.folded[1].share = {{0, 0}};
  EXPECT_THAT(CheckPlanStructure(plan),
              FailsWith(absl::StatusCode::kInvalidArgument, "writes over"));
}

}  // namespace
}  // namespace interp::testing::fold_constants_test
