// Long because each way in which a plan file may be wrong has its test.
#include "interpreter/plan_file/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/device/device_maker.h"
#include "core/io/file.h"
#include "core/program_load.h"
#include "core/program_parse.h"
#include "core/program_print.h"
#include "interpreter/compile/build_plan.h"
#include "interpreter/inspect/plan_print.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/load_cuda.h"
#include "interpreter/load_model.h"
#include "interpreter/plan_file/fingerprint.h"
#include "tests/testing/matchers.h"
#include "tests/testing/plan_bytes.h"
#include "tests/testing/plans.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/temp_folder.h"
#include "tests/testing/test_program.h"

namespace interp::testing {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// A cast, a split output, an inplace pair and a parameter.
constexpr absl::string_view kText = R"(block 0
  var w int64[2] persistable
  var b int32[2]
  source() -> (Out=x) {dtype=3, shape=[2]}
  mix(X=[x, w]) -> (Out=a) inplace(X->Out)
  mix(X=[a, b]) -> (Out=c)
  update(Param=a, X=c) -> (ParamOut=d)
  dynamic(X=c) -> (Out=c)
)";

CompiledProgram CompileText(absl::string_view text) {
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_THAT(program, IsOk());
  CompiledProgram compiled;
  compiled.program = *std::move(program);
  absl::StatusOr<std::vector<Plan>> plans = BuildPlans(compiled.program, {}, ProbeOps());
  EXPECT_THAT(plans, IsOk());
  compiled.plans = *std::move(plans);
  return compiled;
}

std::string Format(const CompiledProgram& compiled) {
  const absl::StatusOr<std::string> bytes = FormatPlan(compiled);
  EXPECT_THAT(bytes, IsOk());
  return bytes.ok() ? *bytes : "";
}

std::string Dumps(const CompiledProgram& compiled) {
  return absl::StrCat(
      ToText(compiled.program),
      PrintPlans(compiled.plans, PlanStage::kDeps, PlanFormat::kJson, &compiled.program),
      PrintPlans(compiled.plans, PlanStage::kPlan, PlanFormat::kJson, &compiled.program));
}

// Dumps may leave something out; bytes written again from what was read do not.
void ExpectRoundTrip(const CompiledProgram& compiled) {
  const std::string bytes = Format(compiled);
  const absl::StatusOr<CompiledProgram> back = ParsePlan(bytes, ProbeOps());
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(Dumps(*back), Dumps(compiled));
  EXPECT_EQ(Format(*back), bytes);
  EXPECT_EQ(back->program.names, compiled.program.names);
  EXPECT_EQ(back->source_fingerprint, compiled.source_fingerprint);
}

TEST(PlanFileTest, KeepsThePlan) {
  CompiledProgram compiled = CompileText(kText);
  ASSERT_GT(compiled.plans[0].inserted_ops.size(), 0u);
  compiled.source_fingerprint = 17;
  ExpectRoundTrip(compiled);
}

TEST(PlanFileTest, KeepsStreamsAndEvents) {
  CompiledProgram compiled = CompileText(kText);
  Plan& plan = compiled.plans[0];
  plan.streams = {{"host", {}, 0}, {"compute", {PlaceKind::kSim, 3}, -2}};
  plan.events = {{1}};
  plan.instructions[1].record = 0;
  plan.instructions[2].waits = {{.event = 0, .previous_run = true, .blocks_host = true}};
  plan.options = {.sequential = true, .place = {PlaceKind::kSim, 3}, .single_stream = true};
  plan.fallbacks = {"mix"};
  ExpectRoundTrip(compiled);
  const absl::StatusOr<CompiledProgram> back = ParsePlan(Format(compiled), ProbeOps());
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->plans[0].streams[1].place, (Place{PlaceKind::kSim, 3}));
  EXPECT_TRUE(back->plans[0].instructions[2].waits[0].blocks_host);
}

TEST(PlanFileTest, APlanForAGpuSaysWhatItNeeds) {
  CompiledProgram compiled = CompileText(kText);
  compiled.plans[0].streams = {{"host", {}, 0}, {"compute", {PlaceKind::kCuda, 1}, 0}};
  const std::string bytes = Format(compiled);
  EXPECT_THAT(ParsePlan(bytes, ProbeOps()),
              FailsWith(kFailedPrecondition,
                        "compiled for cuda:1, and nothing that runs programs on GPUs is loaded "
                        "(interp::LoadCuda)"));
  std::vector<Place> prepared;
  const auto prepare = [&prepared](Place place) {
    prepared.push_back(place);
    return absl::OkStatus();
  };
  EXPECT_THAT(ParsePlan(bytes, ProbeOps(), prepare), IsOk());
  EXPECT_THAT(prepared, ::testing::ElementsAre(Place{PlaceKind::kCuda, 1}));
}

TEST(PlanFileTest, ModelsThatArePlansForGpusLoadWhatRunsThemWhereTheyMay) {
  CompiledProgram compiled = CompileText(kText);
  compiled.plans[0].streams = {{"host", {}, 0}, {"compute", {PlaceKind::kCuda, 0}, 0}};
  const TempFolder folder;
  ASSERT_THAT(SavePlan(compiled, folder / "m.plan"), IsOk());
  if (FindDeviceMaker(PlaceKind::kCuda) == nullptr) {
    EXPECT_THAT(LoadModel(folder / "m.plan", std::nullopt),
                FailsWith(kFailedPrecondition, "interp::LoadCuda"));
  }
  const absl::Status read = LoadModel(folder / "m.plan", std::nullopt, LoadForPlace).status();
  if (FindDeviceMaker(PlaceKind::kCuda) != nullptr) {
    EXPECT_THAT(std::string(read.message()), ::testing::Not(::testing::HasSubstr("LoadCuda")));
  } else {
    EXPECT_THAT(std::string(read.message()), ::testing::HasSubstr("libinterp_cuda.so"));
  }
}

TEST(PlanFileTest, AnEmptyProgramRoundTrips) { ExpectRoundTrip(CompileText("block 0\n")); }

// A loaded plan computes the same bits as the one it was saved from.
TEST(PlanFileTest, RandomGraphsRunTheSame) {
  CoreOptions options{.num_threads = 1};
  options.ops = &ProbeOps();
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const RandomGraphOptions nested{.max_depth = static_cast<int>(seed % 4)};
    const RandomGraph graph = MakeRandomGraph(seed, nested);
    const PlanOptions plan{.place = {seed % 2 == 0 ? PlaceKind::kSim : PlaceKind::kCpu, 0}};
    const absl::StatusOr<CompiledProgram> compiled =
        Compile(graph.program, {}, {}, {}, plan, ProbeOps());
    ASSERT_THAT(compiled, IsOk());
    ExpectRoundTrip(*compiled);
    const absl::StatusOr<CompiledProgram> loaded = ParsePlan(Format(*compiled), ProbeOps());
    ASSERT_THAT(loaded, IsOk());
    EXPECT_THAT(CheckProved(loaded->plans), IsOk());
    const auto built = InterpreterCore::Create(*compiled, RandomScope(seed, graph), options);
    const auto read = InterpreterCore::Create(*loaded, RandomScope(seed, graph), options);
    ASSERT_THAT(built, IsOk());
    ASSERT_THAT(read, IsOk());
    for (const int64_t rows : {2, 3}) {
      const std::vector<Tensor> feeds = RandomFeeds(seed, nested, rows);
      const auto expected = (*built)->Run(feeds);
      const auto got = (*read)->Run(feeds);
      ASSERT_THAT(expected, IsOk());
      ASSERT_THAT(got, IsOk());
      EXPECT_TRUE(SameBits(*got, *expected));
    }
  }
}

TEST(PlanFileTest, FilesAreReplacedWhole) {
  const TempFolder folder;
  const CompiledProgram compiled = CompileText(kText);
  ASSERT_THAT(SavePlan(compiled, folder / "m.plan"), IsOk());
  ASSERT_THAT(SavePlan(compiled, folder / "m.plan"), IsOk());
  const absl::StatusOr<CompiledProgram> loaded = LoadPlan(folder / "m.plan", ProbeOps());
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(Dumps(*loaded), Dumps(compiled));
  EXPECT_FALSE(SavePlan(compiled, folder / "none/m.plan").ok());
  EXPECT_FALSE(LoadPlan(folder / "none.plan", ProbeOps()).ok());
}

// --- what is refused ---

TEST(PlanFileTest, RefusesOtherFiles) {
  for (const std::string bytes : {"", "INTERP", "\x0a\x02\x08\x01 no plan"}) {
    EXPECT_THAT(ParsePlan(bytes, ProbeOps()), FailsWith(kDataLoss, "not a plan file"));
  }
}

TEST(PlanFileTest, RefusesOtherFormats) {
  std::string bytes = Format(CompileText(kText));
  bytes[8] = 1;
  EXPECT_THAT(ParsePlan(bytes, ProbeOps()),
              FailsWith(kFailedPrecondition, "written in plan format 1, this build reads 6"));
}

TEST(PlanFileTest, RefusesEveryTruncation) {
  const std::string bytes = Format(CompileText(kText));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(ParsePlan(bytes.substr(0, size), ProbeOps()), FailsWith(kDataLoss, "")) << size;
  }
  EXPECT_THAT(ParsePlan(bytes + "x", ProbeOps()), FailsWith(kDataLoss, "cut off or damaged"));
}

TEST(PlanFileTest, RefusesEveryFlippedBit) {
  std::string bytes = Format(CompileText(kText));
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(ParsePlan(bytes, ProbeOps()).ok()) << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  }
}

// With a checksum that fits, what is wrong is found by looking, or harmless.
TEST(PlanFileTest, SurvivesDamageWithARightChecksum) {
  const std::string bytes = Format(CompileText(kText));
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = bytes;
    for (int change = 0; change <= round % 3; ++change) {
      const size_t at = kPlanHeaderBytes + random() % (bytes.size() - kPlanHeaderBytes);
      damaged[at] =
          static_cast<char>(round % 2 == 0 ? random() : damaged[at] ^ (1 << random() % 8));
    }
    if (round % 5 == 0) damaged.resize(kPlanHeaderBytes + random() % bytes.size());
    SealPlan(damaged);
    const absl::StatusOr<CompiledProgram> parsed = ParsePlan(damaged, ProbeOps());
    if (parsed.ok()) Dumps(*parsed);
  }
}

TEST(PlanFileTest, RefusesOtherKernels) {
  const std::string bytes = Format(CompileText(kText));
  EXPECT_THAT(
      ParsePlan(bytes, OpRegistry()),
      FailsWith(kFailedPrecondition, "compiled for other kernels: op assign is not in this"));
  OpRegistry changed;
  for (const absl::string_view type : ProbeOps().Types()) {
    OpDef def = *ProbeOps().Find(type);
    if (type == "mix") def.inplace.clear();
    changed.Add(std::move(def));
  }
  EXPECT_THAT(ParsePlan(bytes, changed),
              FailsWith(kFailedPrecondition,
                        "compiled for other kernels: op mix has changed; compile it again"));
}

TEST(PlanFileTest, RefusesIndicesOutOfRange) {
  CompiledProgram compiled = CompileText(kText);
  compiled.plans[0].instructions[0].outputs[0] = 1000;
  EXPECT_THAT(ParsePlan(Format(compiled), ProbeOps()),
              FailsWith(kInvalidArgument, "argument 1000 is none of"));
}

TEST(PlanFileTest, KeepsWhatRunsMake) {
  CompiledProgram compiled = CompileText(kText);
  const VarId w = compiled.program.Find("w");
  const VarId b = compiled.program.Find("b");
  const auto parse = [&](std::vector<VarId> made_in_runs) {
    compiled.made_in_runs = std::move(made_in_runs);
    return ParsePlan(Format(compiled), ProbeOps());
  };
  const auto loaded = parse({b});
  ASSERT_THAT(loaded, IsOk());
  EXPECT_THAT(loaded->made_in_runs, ::testing::ElementsAre(b));
  EXPECT_THAT(parse({w}), FailsWith(kInvalidArgument, "'w' is persistable and made in runs"));
  EXPECT_THAT(parse({b, b}), FailsWith(kInvalidArgument, "made in runs"));
  EXPECT_THAT(parse({-1}), FailsWith(kInvalidArgument, "made in runs"));
  EXPECT_THAT(parse({1000}), FailsWith(kInvalidArgument, "variable 1000 behind -1"));
}

TEST(PlanFileTest, RefusesCapturesOutOfRange) {
  const Program program = TestProgram(DType::kInt64)
                              .Feed("go", {1})
                              .Feed("x", {-1})
                              .Declare("y", {-1})
                              .Call("mix", {"x"}, "y", {{"tag", 1}})
                              .DeclareSteps("steps")
                              .Open()
                              .Call("mix", {"y"}, "y", {{"tag", 2}})
                              .Close("repeat", {{"Condition", {"go"}}}, {{"Steps", {"steps"}}})
                              .Fetch("y")
                              .Build();
  absl::StatusOr<CompiledProgram> compiled = Compile(program, {}, {}, {}, {}, ProbeOps());
  ASSERT_THAT(compiled, IsOk());
  ASSERT_EQ(compiled->plans.size(), 2U);
  compiled->plans[1].captures[0].var = 1 << 20;
  EXPECT_THAT(ParsePlan(Format(*compiled), ProbeOps()),
              FailsWith(kInvalidArgument, "block 1 captures variable 1048576"));
}

// What a kernel would read and write memory by is not taken from the file.
TEST(PlanFileTest, RefusesOtherTypesThanTheProgramGives) {
  const CompiledProgram compiled = CompileText(kText);
  const auto refused = [&](auto change) {
    CompiledProgram changed = compiled;
    change(changed.plans[0]);
    return ParsePlan(Format(changed), ProbeOps()).status();
  };
  EXPECT_THAT(refused([](Plan& plan) { plan.instructions[0].dtype = DType::kInt32; }),
              FailsWith(kInvalidArgument, "instruction #0 source: its kernel is for int32"));
  EXPECT_THAT(refused([](Plan& plan) { plan.instructions[0].kernel = 1; }),
              FailsWith(kInvalidArgument, "instruction #0 source"));
  EXPECT_THAT(refused([](Plan& plan) { plan.instructions[1].output_dtypes[0] = DType::kBool; }),
              FailsWith(kInvalidArgument, "instruction #1 mix"));
  EXPECT_THAT(refused([](Plan& plan) { plan.vars[0].persistable = false; }),
              FailsWith(kInvalidArgument, "'w' is not as the program declares and uses it"));
  EXPECT_THAT(refused([](Plan& plan) { plan.vars[0].constant = false; }),
              FailsWith(kInvalidArgument, "'w' is not as the program declares and uses it"));
  EXPECT_THAT(refused([](Plan& plan) { plan.vars.back().copy_of = 0; }),
              FailsWith(kInvalidArgument, "is no copy of a constant"));
  EXPECT_THAT(refused([](Plan& plan) { plan.fetches = {"w"}; }),
              FailsWith(kInvalidArgument, "feeds or fetches are not those of the program"));
  // mix #3 would read int32 values as int64 ones.
  EXPECT_THAT(refused([&](Plan& plan) {
                Instruction& mix = plan.instructions[3];
                ASSERT_EQ(mix.op_type, "mix");
                mix.inputs[1] = VarNamed(plan, "b");
              }),
              FailsWith(kInvalidArgument, "reads 'b', which is int32, as int64"));
}

// Kernels take for granted that an input is there and a tensor.
TEST(PlanFileTest, RefusesOtherArgumentsThanTheProgramGives) {
  const CompiledProgram compiled = CompileText(R"(block 0
  var feed feed_minibatch persistable
  var w int64[2] persistable
  var x int64[2]
  feed(X=feed) -> (Out=x)
  mix(X=[x, w]) -> (Out=a)
)");
  const auto refused = [&](auto change) {
    CompiledProgram changed = compiled;
    Plan& plan = changed.plans[0];
    Instruction& mix = plan.instructions[1];
    EXPECT_EQ(mix.op_type, "mix");
    change(plan, mix);
    return ParsePlan(Format(changed), ProbeOps()).status();
  };
  EXPECT_THAT(
      refused([](Plan&, Instruction& mix) { mix.inputs[0] = -1; }),
      FailsWith(kInvalidArgument, "instruction #1 mix: argument 0 of input 'X' is left out"));
  EXPECT_THAT(refused([](Plan&, Instruction& mix) {
                mix.inputs.pop_back();
                --mix.input_counts[0];
              }),
              FailsWith(kInvalidArgument, "arguments, in the program"));
  EXPECT_THAT(refused([](Plan& plan, Instruction& mix) { mix.inputs[0] = VarNamed(plan, "feed"); }),
              FailsWith(kInvalidArgument, "a variable of kind feed_minibatch, expected a tensor"));
  EXPECT_THAT(refused([](Plan& plan, Instruction& mix) { mix.inputs[0] = VarNamed(plan, "w"); }),
              FailsWith(kInvalidArgument, "argument 0 of input 'X' is 'w', unlike that of the op"));
}

TEST(PlanFileTest, RefusesAVariableThatStandsForAnother) {
  std::string bytes = Format(CompileText(kText));
  // Of 'w': copy_of is -1, program_var 0, and captured comes next.
  const size_t at = bytes.find(std::string("\x58\x01\x60\x00\x68", 5));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 3] = 2;  // variable 1
  SealPlan(bytes);
  EXPECT_THAT(ParsePlan(bytes, ProbeOps()),
              FailsWith(kInvalidArgument, "'w' is not as the program declares and uses it"));
}

// Order and lifetimes are proved before a plan from a file is run.
TEST(PlanFileTest, RefusesWhatIsNotProved) {
  const TempFolder folder;
  CompiledProgram compiled = CompileText(kText);
  std::swap(compiled.plans[0].order[0], compiled.plans[0].order[1]);
  ASSERT_THAT(SavePlan(compiled, folder / "m.plan"), IsOk());
  EXPECT_THAT(LoadPlan(folder / "m.plan", ProbeOps()), FailsWith(kInvalidArgument, "not proved"));
}

TEST(PlanFileTest, OnlyPlansOfTheirProgramAreWritten) {
  CompiledProgram compiled = CompileText(kText);
  CompiledProgram other = compiled;
  other.program.names[0] = "other";
  EXPECT_THAT(FormatPlan(other),
              FailsWith(kInvalidArgument, "is 'w' in the plan, but no variable"));
  other = compiled;
  other.plans[0].instructions[0].op_index = 99;
  EXPECT_THAT(FormatPlan(other), FailsWith(kInvalidArgument, "is not the op it names"));
  EXPECT_THAT(FormatPlan(CompiledProgram()), FailsWith(kInvalidArgument, "0 plans of 0 blocks"));
}

TEST(FingerprintTest, ProgramsAreToldApart) {
  const absl::StatusOr<Program> program = ParseProgram(kText);
  const absl::StatusOr<Program> other = ParseProgram("block 0\n  source() -> (Out=x)\n");
  ASSERT_THAT(program, IsOk());
  EXPECT_EQ(*FingerprintOf(*program), *FingerprintOf(*ParseProgram(kText)));
  EXPECT_NE(*FingerprintOf(*program), *FingerprintOf(*other));
}

TEST(FingerprintTest, ChangedDefinitionsAreToldApart) {
  const OpDef& mix = *ProbeOps().Find("mix");
  const auto differs = [&](auto change) {
    OpDef changed = mix;
    change(changed);
    return FingerprintOf(changed) != FingerprintOf(mix);
  };
  EXPECT_FALSE(differs([](OpDef&) {}));
  EXPECT_TRUE(differs([](OpDef& def) { def.inputs[0].flags ^= kAnyDType; }));
  EXPECT_TRUE(differs([](OpDef& def) { def.view.push_back({0, 0}); }));
  EXPECT_TRUE(differs([](OpDef& def) { def.kernels.pop_back(); }));
  EXPECT_TRUE(differs([](OpDef& def) { def.kernels[0].place = PlaceKind::kSim; }));
  EXPECT_TRUE(differs([](OpDef& def) { def.random = !def.random; }));
  EXPECT_TRUE(differs([](OpDef& def) { def.layout = LayoutRule::kFollows; }));
}

// Ids given beforehand are kept, whatever the order in the message.
TEST(LoadProgramTest, NamesMayHaveIdsAlready) {
  const absl::StatusOr<Program> program = ParseProgram(kText);
  ASSERT_THAT(program, IsOk());
  const std::string bytes = *SaveProgram(*program);
  const std::vector<std::string> names = {"unused", "x", "w"};
  const absl::StatusOr<Program> loaded = LoadProgram(bytes, names);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->Find("x"), 1);
  EXPECT_EQ(*SaveProgram(*loaded), bytes);
  const std::vector<std::string> twice = {"x", "x"};
  EXPECT_THAT(LoadProgram(bytes, twice), FailsWith(kInvalidArgument, "the name 'x' repeats"));
}

}  // namespace
}  // namespace interp::testing
