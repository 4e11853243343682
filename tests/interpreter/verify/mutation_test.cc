// VerifyPlan against a proof by brute force, on damaged plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "core/io/file.h"
#include "core/program_load.h"
#include "core/program_print.h"
#include "interpreter/compile/build_plan.h"
#include "interpreter/verify/verify_plan.h"
#include "passes/pipeline.h"
#include "tests/testing/brute_proof.h"
#include "tests/testing/matchers.h"
#include "tests/testing/mutations.h"
#include "tests/testing/plans.h"
#include "tests/testing/random_graph.h"

namespace interp::testing::mutation_test {
namespace {

struct Tally {
  int harmful = 0;
  int harmless = 0;
};
using Tallies = std::array<Tally, kNumMutationKinds>;

// Damages `plan` in up to `most` ways and expects VerifyPlan to find exactly what brute force does.
void CheckMutations(const Plan& plan, size_t most, std::mt19937_64& random, Tallies& tallies) {
  ASSERT_EQ(BruteProof(plan), "");
  const VerifyReport unharmed = VerifyPlan(plan);
  ASSERT_TRUE(unharmed.proved()) << ToText(AsPlans(plan), unharmed);
  std::vector<Mutation> mutations = AllMutations(plan);
  std::shuffle(mutations.begin(), mutations.end(), random);
  if (mutations.size() > most) mutations.resize(most);
  for (const Mutation& mutation : mutations) {
    const Plan mutant = Mutate(plan, mutation);
    const std::string wrong = BruteProof(mutant);
    const VerifyReport report = VerifyPlan(mutant, {.count_redundancy = false});
    ASSERT_TRUE(report.structure.ok()) << Describe(plan, mutation) << ": " << report.structure;
    ASSERT_EQ(report.proved(), wrong.empty()) << Describe(plan, mutation) << ": " << wrong << "\n"
                                              << ToText(AsPlans(mutant), report);
    Tally& tally = tallies[static_cast<size_t>(mutation.kind)];
    ++(wrong.empty() ? tally.harmless : tally.harmful);
  }
}

// Few ops, and all that makes plans interesting: updates, views, branches, a join.
constexpr absl::string_view kPrograms[] = {
    R"(block 0
  var p int64[2] param
  var x int64[2]
  mix(X=p) -> (Out=a)
  update(Param=p, X=x) -> (ParamOut=p)
  mix(X=[a, p]) -> (Out=b)
  mix(X=x) -> (Out=p)
  mix(X=[b, p]) -> (Out=c)
)",
    R"(block 0
  var x int64[2]
  mix(X=x) -> (Out=a)
  view(X=a) -> (Out=v) {shape=[-1]} inplace(X->Out)
  view(X=a) -> (Out=u) {shape=[-1]} inplace(X->Out)
  mix(X=v) -> (Out=c)
  mix(X=u) -> (Out=d) inplace(X->Out)
  shape_of(X=a) -> (Out=s)
  resize_to(X=c, Shape=s) -> (Out=e)
  mix(X=d) -> (Out=a)
  mix(X=[a, e]) -> (Out=f)
)",
    R"(block 0
  random() -> (Out=a) {dtype=3, shape=[2]}
  random() -> (Out=b) {dtype=3, shape=[2]}
  mix(X=a) -> (Out=a)
  mix(X=b) -> (Out=c) inplace(X->Out)
  mix(X=[a, c]) -> (Out=d)
  random() -> (Out=a) {dtype=3, shape=[2]}
)",
};

const PlanOptions kOnDevice = {.place = {PlaceKind::kSim, 0}};

TEST(MutationTest, HarmIsFoundAndHarmlessnessShownOnRandomPlans) {
  Tallies tallies = {};
  std::mt19937_64 random(1);
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph graph = MakeRandomGraph(seed, {.num_ops = static_cast<int>(4 + seed % 20),
                                               .max_depth = static_cast<int>(seed % 4)});
    const absl::StatusOr<PipelineResult> passed =
        RunPipeline(std::move(graph.program), {.ops = ProbeOps()});
    ASSERT_THAT(passed, IsOk());
    PlanOptions options = seed % 3 == 0 ? PlanOptions{} : kOnDevice;
    options.garbage_collection = seed % 7 != 0;
    const auto plans = BuildPlans(passed->program, options, ProbeOps());
    ASSERT_THAT(plans, IsOk());
    for (const Plan& plan : *plans) {
      if (plan.block > 0 && plan.instructions.empty()) continue;
      CheckMutations(plan, plan.block == 0 ? 24 : 8, random, tallies);
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "block " << plan.block << " of\n"
                                                       << ToText(passed->program);
    }
  }
  for (int kind = 0; kind < kNumMutationKinds; ++kind) {
    const auto name = Name(static_cast<MutationKind>(kind));
    RecordProperty(name, absl::StrCat(tallies[kind].harmful, " of ",
                                      tallies[kind].harmful + tallies[kind].harmless));
    EXPECT_GT(tallies[kind].harmful, 0) << name;
  }
}

TEST(MutationTest, EveryMutationOfSmallPlans) {
  Tallies tallies = {};
  std::mt19937_64 random(2);
  for (const absl::string_view text : kPrograms) {
    for (PlanOptions options : {PlanOptions{}, kOnDevice}) {
      for (const bool collect : {true, false}) {
        options.garbage_collection = collect;
        const absl::StatusOr<Plan> plan = PlanOf(text, options);
        ASSERT_THAT(plan, IsOk());
        CheckMutations(*plan, /*most=*/1'000'000, random, tallies);
        ASSERT_FALSE(::testing::Test::HasFatalFailure()) << text;
      }
    }
  }
}

// A real program, where the kernels are there.
TEST(MutationTest, EveryMutationOfTheDigitClassifier) {
  if (OpRegistry::Global().Find("pool2d") == nullptr) GTEST_SKIP() << "built without kernels";
  const absl::StatusOr<std::string> bytes =
      ReadFile(std::string(INTERP_SOURCE_DIR) + "/tools/digits/digits.pdmodel");
  ASSERT_THAT(bytes, IsOk());
  absl::StatusOr<Program> program = LoadProgram(*bytes);
  ASSERT_THAT(program, IsOk());
  const absl::StatusOr<PipelineResult> passed =
      RunPipeline(*std::move(program), {.ops = OpRegistry::Global()});
  ASSERT_THAT(passed, IsOk());
  Tallies tallies = {};
  std::mt19937_64 random(3);
  for (const PlanOptions& options : {PlanOptions{}, kOnDevice}) {
    const absl::StatusOr<Plan> plan = MainPlan(passed->program, options, OpRegistry::Global());
    ASSERT_THAT(plan, IsOk());
    CheckMutations(*plan, /*most=*/1'000'000, random, tallies);
  }
}

}  // namespace
}  // namespace interp::testing::mutation_test
