// Stress: random programs give the same bits under every scheduler, with any number of workers, in
// any combination of options, as the reference gives op by op.
#include "interpreter/run/scheduler.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "core/program_print.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/differential.h"
#include "tests/testing/matchers.h"
#include "tests/testing/sample.h"
#include "tests/testing/test_program.h"

namespace interp::testing::scheduler_test {
namespace {

const uint64_t kGraphs = SampleOf<uint64_t>(60, 400);

// Random programs of that depth, under every variant for the host or, on one or two devices, every
// one for those. `more`: with everything that the programs can have.
void ExpectAllToAgree(bool with_devices, bool nested, bool more = false) {
  for (const uint64_t seed : Seeds(kGraphs)) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomGraphOptions options{.num_ops =
                                   5 + static_cast<int>(seed * 7 % (with_devices ? 60 : 90))};
    if (nested) options.max_depth = 1 + static_cast<int>(seed % 3);
    if (with_devices) options.num_devices = 1 + static_cast<int>(seed % 2);
    options.growth = options.rows = more;
    const DifferentialCase test = MakeCase(seed, options);
    const auto expected = RunReference(test);
    ASSERT_THAT(expected, IsOk()) << ToText(test.program);
    for (const Variant& variant : with_devices ? DeviceVariants(seed) : HostVariants()) {
      ExpectAgreement(variant, test, *expected);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(SchedulerStressTest, AllVariantsAgreeWithTheReference) {
  ExpectAllToAgree(/*with_devices=*/false, /*nested=*/false);
}

TEST(SchedulerStressTest, DevicesAgreeWithTheReference) {
  ExpectAllToAgree(/*with_devices=*/true, /*nested=*/false);
}

// Loops, branches, scans and the ways back through them, nested up to three deep.
TEST(SchedulerStressTest, NestedBlocksAgreeWithTheReference) {
  ExpectAllToAgree(/*with_devices=*/false, /*nested=*/true);
}

TEST(SchedulerStressTest, NestedBlocksOnDevicesAgreeWithTheReference) {
  ExpectAllToAgree(/*with_devices=*/true, /*nested=*/true);
}

// With selected rows, and variables that grow from trip to trip.
TEST(SchedulerStressTest, GrowthAndRowsAgreeWithTheReference) {
  ExpectAllToAgree(/*with_devices=*/false, /*nested=*/true, /*more=*/true);
}

TEST(SchedulerStressTest, GrowthAndRowsOnDevicesAgreeWithTheReference) {
  ExpectAllToAgree(/*with_devices=*/true, /*nested=*/true, /*more=*/true);
}

// A loop over "v" and its way back, which reads the "v" that the loop found and overwrites it, as
// the main block does on a stream of its own.
Program LoopAndWayBack() {
  TestProgram builder(DType::kInt64);
  const auto mix = [&](const std::string& input, const std::string& output, int32_t tag) {
    TestProgram::Attrs attrs = {{"tag", tag}};
    if (builder.current_block() == 0) attrs.push_back({"execution_stream", std::string("own0")});
    builder.Call("mix", {input}, output, attrs);
  };
  builder.Feed("x", {-1, 4}).Feed("n", {1}).Param("w", {4}).DeclareSteps("steps");
  builder.Call("mix", {"x"}, "v", {{"tag", 1}}).Open();
  mix("v", "within", 2);
  builder.Close("repeat", {{"Condition", {"n"}}}, {{"Steps", {"steps"}}}).Open(1);
  mix("v", "found", 3);
  mix("within", "v", 4);
  mix("v", "back", 5);
  for (const char* x : {"found", "back"}) {
    builder.AddOp("update", {{"Param", {"w"}}, {"X", {x}}}, {{"ParamOut", {"w"}}}, {{"tag", 6}});
  }
  builder.Close("back", {{"Steps", {"steps"}}}, {{"StepsOut", {"steps"}}});
  mix("v", "out", 7);
  mix("x", "v", 8);
  mix("v", "last", 9);
  return builder.Fetch("out").Fetch("last").Fetch("w").Build();
}

// Runs with two, two and three rows in "x" and as many trips as `trips`.
DifferentialCase LoopCase(Program program, int64_t trips) {
  DifferentialCase test{
      .program = std::move(program), .params = {"w"}, .initial = {RandomParameter(1, 0)}};
  for (const int64_t rows : {2, 2, 3}) {
    std::vector<int64_t> x(4 * rows);
    std::iota(x.begin(), x.end(), rows);
    test.feeds.push_back({Tensor::Of<int64_t>({rows, 4}, x), Tensor::Of<int64_t>({1}, {trips})});
  }
  return test;
}

// The main block drops or overwrites a value that a way back reads, and the way back one that the
// main block has yet to read.
TEST(SchedulerStressTest, WaysBackKeepTheirValuesApart) {
  const DifferentialCase test = LoopCase(LoopAndWayBack(), /*trips=*/1);
  const auto expected = RunReference(test);
  ASSERT_THAT(expected, IsOk());
  for (const uint64_t seed : Seeds(kGraphs / 4)) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    for (const Variant& variant : DeviceVariants(seed)) {
      ASSERT_THAT(Compare(variant, test, *expected), IsOk()) << variant.name;
    }
  }
}

// Reads "var" of a block, gives it another shape, and reads it again.
void GiveOtherShape(TestProgram& builder, const std::string& var) {
  const auto update = [&](int32_t tag) {
    builder.AddOp("update", {{"Param", {"w"}}, {"X", {var}}}, {{"ParamOut", {"w"}}},
                  {{"tag", tag}});
  };
  update(1);
  builder.AddOp("source", {}, {{"Out", {var}}},
                {{"tag", 2}, {"shape", std::vector<int64_t>{2}}, {"dtype", int32_t{3}}});
  update(3);
}

void ExpectAllVariantsToAgree(const DifferentialCase& test) {
  const auto expected = RunReference(test);
  ASSERT_THAT(expected, IsOk());
  for (const std::vector<Variant>& variants : {HostVariants(), DeviceVariants(1)}) {
    for (const Variant& variant : variants) {
      EXPECT_THAT(Compare(variant, test, *expected), IsOk()) << variant.name;
    }
  }
}

// Each step starts with the shape that the loop's trip left, and has another when it ends.
TEST(SchedulerStressTest, WaysBackGiveVariablesOfTheLoopOtherShapes) {
  TestProgram builder(DType::kInt64);
  builder.Feed("x", {-1, 4}).Feed("n", {1}).Param("w", {4}).DeclareSteps("steps").Open();
  builder.Call("mix", {"x"}, "u", {{"tag", 4}});
  builder.Close("repeat", {{"Condition", {"n"}}}, {{"Steps", {"steps"}}}).Open(1);
  GiveOtherShape(builder, "u");
  builder.Close("back", {{"Steps", {"steps"}}}, {{"StepsOut", {"steps"}}}).Fetch("w");
  ExpectAllVariantsToAgree(LoopCase(builder.Build(), /*trips=*/3));
}

TEST(SchedulerStressTest, BlocksGiveTheirEntriesOtherShapes) {
  TestProgram builder(DType::kInt64);
  builder.Feed("x", {-1, 4}).Feed("n", {1}).Param("w", {4}).Open();
  builder.Declare("row", {4}).Declare("state", {1});
  GiveOtherShape(builder, "row");
  builder.Call("mix", {"state"}, "next", {{"tag", 4}});
  const std::vector<std::string> names = {"row", "state", "next", "row"};
  builder.Close("scan", {{"Rows", {"x"}}, {"State", {"n"}}}, {{"Out", {"out"}}},
                {{"names", names}, {"dtype", int32_t{3}}});
  ExpectAllVariantsToAgree(LoopCase(builder.Fetch("out").Fetch("w").Build(), /*trips=*/1));
}

// What the kernel gives a block lies on the host, also where a device writes it in the block.
TEST(SchedulerStressTest, BlocksUpdateTheirEntriesOnDevices) {
  TestProgram builder(DType::kInt64);
  builder.Feed("x", {-1, 4}).Feed("n", {1}).Param("w", {4}).Open();
  builder.Declare("row", {4}).Declare("state", {4});
  builder.AddOp("update", {{"Param", {"state"}}, {"X", {"row"}}}, {{"ParamOut", {"state"}}},
                {{"tag", 1}});
  builder.Call("mix", {"state"}, "next", {{"tag", 2}});
  const std::vector<std::string> names = {"row", "state", "next", "row"};
  builder.Close("scan", {{"Rows", {"x"}}, {"State", {"w"}}}, {{"Out", {"out"}}},
                {{"names", names}, {"dtype", int32_t{3}}});
  ExpectAllVariantsToAgree(LoopCase(builder.Fetch("out").Fetch("w").Build(), /*trips=*/1));
}

// A loop in a way back looks at a condition that the forward loop left and it changes itself.
TEST(SchedulerStressTest, LoopsInWaysBackFollowWhatTheyInherit) {
  TestProgram builder(DType::kInt64);
  builder.Feed("x", {-1, 4}).Feed("n", {1}).Param("w", {4}).DeclareSteps("steps").Open();
  builder.Call("mix", {"x"}, "u", {{"tag", 1}});
  builder.Close("repeat", {{"Condition", {"n"}}}, {{"Steps", {"steps"}}}).Open(1).Open();
  GiveOtherShape(builder, "u");
  builder.Close("repeat", {{"Condition", {"u"}}}, {});
  builder.Close("back", {{"Steps", {"steps"}}}, {{"StepsOut", {"steps"}}}).Fetch("w");
  ExpectAllVariantsToAgree(LoopCase(builder.Build(), /*trips=*/3));
}

// The same one block further in: the block between has the condition from outside.
TEST(SchedulerStressTest, LoopsInWaysBackFollowWhatBlocksAroundThemHave) {
  TestProgram builder(DType::kInt64);
  builder.Feed("x", {-1, 4}).Feed("n", {1}).Param("w", {4}).DeclareSteps("outer");
  builder.Call("mix", {"x"}, "c", {{"tag", 5}}).Open();
  builder.DeclareSteps("inner").Open().Call("mix", {"c"}, "u", {{"tag", 6}});
  builder.Close("repeat", {{"Condition", {"n"}}}, {{"Steps", {"inner"}}});
  builder.Close("when", {{"Condition", {"n"}}}, {{"Steps", {"outer"}}}).Open(1);
  builder.Call("mix", {"c"}, "g", {{"tag", 7}});
  builder.AddOp("update", {{"Param", {"w"}}, {"X", {"g"}}}, {{"ParamOut", {"w"}}}, {{"tag", 8}});
  builder.Open(2).Open();
  GiveOtherShape(builder, "c");
  builder.Close("repeat", {{"Condition", {"c"}}}, {});
  builder.AddOp("update", {{"Param", {"w"}}, {"X", {"c"}}}, {{"ParamOut", {"w"}}}, {{"tag", 9}});
  builder.Close("back", {{"Steps", {"inner"}}}, {{"StepsOut", {"inner"}}});
  builder.Close("back", {{"Steps", {"outer"}}}, {{"StepsOut", {"outer"}}}).Fetch("w");
  ExpectAllVariantsToAgree(LoopCase(builder.Build(), /*trips=*/1));
}

// What runs a block and writes a variable that the block reads does not update it.
TEST(SchedulerStressTest, ResultsTakeTheNamesOfWhatTheirBlocksRead) {
  TestProgram builder(DType::kInt64);
  builder.Feed("x", {-1, 4}).Feed("n", {1}).Param("w", {4});
  builder.Call("mix", {"x"}, "v", {{"tag", 1}}).Call("mix", {"v"}, "r", {{"tag", 2}}).Open();
  builder.Declare("row", {4}).Declare("state", {1});
  builder.AddOp("update", {{"Param", {"w"}}, {"X", {"v"}}}, {{"ParamOut", {"w"}}}, {{"tag", 3}});
  builder.Call("mix", {"state"}, "next", {{"tag", 4}});
  const std::vector<std::string> names = {"row", "state", "next", "next"};
  builder.Close("scan", {{"Rows", {"x"}}, {"State", {"n"}}}, {{"Out", {"v"}}},
                {{"names", names}, {"dtype", int32_t{3}}});
  const Program program = builder.Fetch("r").Fetch("v").Fetch("w").Build();
  ExpectAllVariantsToAgree(LoopCase(program, /*trips=*/1));
}

// Clones share plan, parameters and devices; each has its own variables.
void CheckClones(const Variant& variant, const DifferentialCase& test, const Expected& expected) {
  SCOPED_TRACE(variant.name);
  const std::shared_ptr<Scope> scope = test.MakeScope();
  const auto core = InterpreterCore::Create(test.program, {}, {}, scope, variant.options);
  ASSERT_THAT(core, IsOk());
  std::vector<absl::Status> statuses(3);
  std::vector<std::thread> threads;
  for (absl::Status& status : statuses) {
    threads.emplace_back([&] {
      const std::unique_ptr<InterpreterCore> clone = (*core)->Clone();
      clone->SetRandomState({});  // that of the original, which the expected numbers are from
      status =
          CompareFetches(*clone, test, expected, {.wait_for_devices = variant.wait_for_devices});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) EXPECT_THAT(status, IsOk()) << ToText(test.program);
}

TEST(SchedulerStressTest, ClonesRunSideBySide) {
  for (const uint64_t seed : Seeds(kGraphs / 10)) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const int num_devices = static_cast<int>(seed % 3);
    // Without updates, as clones would race for the parameters.
    const DifferentialCase test = MakeCase(seed, {.updates = false, .num_devices = num_devices});
    const auto expected = RunReference(test);
    ASSERT_THAT(expected, IsOk());
    for (const Variant& variant : num_devices == 0 ? HostVariants() : DeviceVariants(seed)) {
      CheckClones(variant, test, *expected);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace interp::testing::scheduler_test
