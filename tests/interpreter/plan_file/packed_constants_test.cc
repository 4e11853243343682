#include "interpreter/plan/packed_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/packed_arrays.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/load_model.h"
#include "interpreter/plan_file/plan_file.h"
#include "tests/testing/matchers.h"
#include "tests/testing/plan_bytes.h"
#include "tests/testing/probe.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/program_builder.h"
#include "tests/testing/temp_folder.h"

namespace interp::testing::packed_constants_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

CoreOptions Options() {
  CoreOptions options{.scheduler = SchedulerKind::kTrace, .num_threads = 1};
  options.ops = &ProbeOps();
  return options;
}

Tensor Vector(const std::vector<int64_t>& values) {
  return Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

// Instructions 1 and 2 are folded; `v` is read as it is.
Program Folding() {
  return ProgramBuilder(DType::kInt64)
      .Feed("x", {-1})
      .Param("v", {2})
      .Param("w", {2})
      .Declare("c", {2})
      .AddOp("source", {}, {{"Out", {"c"}}},
             {{"tag", 1}, {"dtype", 3}, {"shape", std::vector<int64_t>{2}}})
      .Call("mix", {"w", "c"}, "a", {{"tag", 2}})
      .Call("mix", {"x", "a"}, "b", {{"tag", 3}})
      .Call("mix", {"b", "v"}, "d", {{"tag", 4}})
      .Fetch("d")
      .Build();
}

struct Ready {
  CompiledProgram compiled;
  std::shared_ptr<Scope> scope = std::make_shared<Scope>();
  std::string note = {};
};

std::vector<Tensor> RunOn(const Ready& ready) {
  const auto core = InterpreterCore::Create(ready.compiled, ready.scope, Options());
  EXPECT_THAT(core, IsOk());
  auto out = (*core)->Run({Vector({3, 9})});
  EXPECT_THAT(out, IsOk());
  return out.ok() ? *std::move(out) : std::vector<Tensor>();
}

// The program with its parameters, which are sorted by name, and what a run makes of them.
Ready PackedOf(Program program, std::vector<NamedTensor> parameters, const Tensor& feed,
               const OpRegistry& ops) {
  Ready ready;
  ready.compiled = *Compile(std::move(program), {}, {}, {}, {}, ops);
  auto packed = std::make_shared<PackedConstants>();
  packed->machine = MachineFingerprint();
  packed->parameters = std::move(parameters);
  for (const auto& [name, tensor] : packed->parameters) {
    packed->parameter_checksums.push_back(ChecksumOf(tensor));
    ready.scope->FindOrCreate(name)->tensor = tensor;
  }
  CoreOptions options = Options();
  options.ops = &ops;
  const auto core = InterpreterCore::Create(ready.compiled, ready.scope, options);
  EXPECT_THAT((*core)->Run({feed}), IsOk());
  packed->entries = (*core)->PackedEntries();
  ready.compiled.packed = std::move(packed);
  return ready;
}

Ready Packed() {
  return PackedOf(Folding(), {{"v", Vector({1, 2})}, {"w", Vector({5, 7})}}, Vector({3, 9}),
                  ProbeOps());
}

std::string PackedFile() { return *FormatPlan(Packed().compiled); }

Ready Load(const std::string& bytes) {
  Ready ready;
  absl::StatusOr<CompiledProgram> compiled = ParsePlan(bytes, ProbeOps());
  EXPECT_THAT(compiled, IsOk());
  if (!compiled.ok()) return ready;
  ready.compiled = *std::move(compiled);
  EXPECT_THAT(UsePackedConstants(ready.compiled, *ready.scope, &ready.note), IsOk());
  return ready;
}

TEST(PackedConstantsTest, AreNotComputedAgain) {
  const std::vector<Tensor> expected = RunOn(Packed());
  const Ready loaded = Load(PackedFile());
  EXPECT_THAT(loaded.note, IsEmpty());
  Probe probe;
  const std::vector<Tensor> out = RunOn(loaded);
  EXPECT_THAT(probe.TakeTrace(), ElementsAre(3, 4));
  EXPECT_TRUE(SameBits(out, expected));
}

TEST(PackedConstantsTest, AreWrittenAgainToTheSameBytes) {
  const std::string bytes = PackedFile();
  EXPECT_EQ(*FormatPlan(Load(bytes).compiled), bytes);
}

TEST(PackedConstantsTest, AreForTheParametersOfTheFileAlone) {
  const Ready loaded = Load(PackedFile());
  loaded.scope->FindOrCreate("w")->tensor = Vector({50, 70});
  Ready other = Packed();
  other.compiled.packed = nullptr;
  other.scope->FindOrCreate("w")->tensor = Vector({50, 70});
  const std::vector<Tensor> expected = RunOn(other);
  Probe probe;
  EXPECT_TRUE(SameBits(RunOn(loaded), expected));
  EXPECT_THAT(probe.TakeTrace(), ElementsAre(1, 2, 3, 4));
}

TEST(PackedConstantsTest, AreForgottenWhenAParameterChangesInPlace) {
  const Ready loaded = Load(PackedFile());
  const auto core = InterpreterCore::Create(loaded.compiled, loaded.scope, Options());
  ASSERT_THAT((*core)->Run({Vector({3, 9})}), IsOk());
  ++loaded.scope->FindOrCreate("w")->version;
  Probe probe;
  ASSERT_THAT((*core)->Run({Vector({3, 9})}), IsOk());
  EXPECT_THAT(probe.TakeTrace(), ElementsAre(1, 2, 3, 4));
}

TEST(PackedConstantsTest, OtherMachinesComputeTheirOwn) {
  const Ready packed = Packed();
  auto elsewhere = std::make_shared<PackedConstants>(*packed.compiled.packed);
  elsewhere->machine = "interp 0.0.0 on abacus";
  Ready made = packed;
  made.compiled.packed = elsewhere;
  const Ready loaded = Load(*FormatPlan(made.compiled));
  EXPECT_THAT(loaded.note, HasSubstr("the plan has those of interp 0.0.0 on abacus, this is"));
  const std::vector<Tensor> expected = RunOn(packed);
  Probe probe;
  EXPECT_TRUE(SameBits(RunOn(loaded), expected));
  EXPECT_THAT(probe.TakeTrace(), ElementsAre(1, 2, 3, 4));
}

TEST(PackedConstantsTest, TheFingerprintNamesBuildAndProcessor) {
  EXPECT_THAT(MachineFingerprint(), HasSubstr("interp "));
  EXPECT_THAT(MachineFingerprint(), ::testing::ContainsRegex("build [0-9a-f]{16,}"));
  EXPECT_THAT(MachineFingerprint(), HasSubstr(", on "));
}

// --- what is refused ---

// Changes a byte of a tensor's elements in the file.
std::string WithDamage(std::string bytes, const Tensor& tensor) {
  const std::string elements(static_cast<const char*>(tensor.raw_data()), tensor.size_bytes());
  const size_t at = bytes.rfind(elements);
  EXPECT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  return bytes;
}

TEST(PackedConstantsTest, DamagedOnesFailTheRun) {
  const Ready packed = Packed();
  ASSERT_EQ(packed.compiled.packed->entries.size(), 1U);
  const std::string bytes = WithDamage(PackedFile(), packed.compiled.packed->entries[0].tensors[0]);
  const Ready loaded = Load(bytes);
  const auto core = InterpreterCore::Create(loaded.compiled, loaded.scope, Options());
  ASSERT_THAT(core, IsOk());
  EXPECT_THAT((*core)->Run({Vector({3, 9})}),
              FailsWith(kDataLoss, "the packed constants of the plan file are damaged"));
}

TEST(PackedConstantsTest, DamagedParametersThatAreReadAreFoundAtOnce) {
  const Ready packed = Packed();
  const std::string bytes = PackedFile();
  absl::StatusOr<CompiledProgram> read =
      ParsePlan(WithDamage(bytes, packed.compiled.packed->parameters[0].second), ProbeOps());
  ASSERT_THAT(read, IsOk());
  Scope scope;
  std::string note;
  EXPECT_THAT(UsePackedConstants(*read, scope, &note),
              FailsWith(kDataLoss, "damaged: the checksum of parameter 'v' differs"));
}

// Reads a plan file of real ops, in which a byte of that parameter is damaged.
absl::Status UseDamaged(const Ready& packed, size_t parameter) {
  const Tensor& damaged = packed.compiled.packed->parameters[parameter].second;
  INTERP_ASSIGN_OR_RETURN(
      CompiledProgram read,
      ParsePlan(WithDamage(*FormatPlan(packed.compiled), damaged), OpRegistry::Global()));
  Scope scope;
  std::string note;
  return UsePackedConstants(read, scope, &note);
}

TEST(PackedConstantsTest, ABiasThatIsReadBesideAPackedWeightIsChecked) {
  if (OpRegistry::Global().Find("mul") == nullptr) GTEST_SKIP() << "built without kernels";
  const Ready packed = PackedOf(
      ProgramBuilder()
          .Feed("x", {-1, 2})
          .Param("b", {3})
          .Param("w", {2, 3})
          .AddOp("mul", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"m"}}})
          .Declare("y", {-1, 3})
          .AddOp("elementwise_add", {{"X", {"m"}}, {"Y", {"b"}}}, {{"Out", {"y"}}}, {{"axis", 1}})
          .Fetch("y")
          .Build(),
      {{"b", Tensor::Of<float>({3}, {7, 8, 9})},
       {"w", Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6})}},
      Tensor::Of<float>({1, 2}, {10, 20}), OpRegistry::Global());
  ASSERT_EQ(packed.compiled.packed->entries.size(), 1U);
  EXPECT_THAT(UseDamaged(packed, 0),
              FailsWith(kDataLoss, "damaged: the checksum of parameter 'b' differs"));
  EXPECT_THAT(UseDamaged(packed, 1), IsOk());  // its packed form is read
}

TEST(PackedConstantsTest, WhatARecurrentOpReadsBesideItsPackedWeightIsChecked) {
  if (OpRegistry::Global().Find("gru_unit") == nullptr) GTEST_SKIP() << "built without kernels";
  const Ready packed = PackedOf(
      ProgramBuilder()
          .Feed("x", {-1, 3})
          .Param("b", {1, 3})
          .Param("h", {1, 1})
          .Param("w", {1, 3})
          .AddOp("gru_unit",
                 {{"Input", {"x"}}, {"HiddenPrev", {"h"}}, {"Weight", {"w"}}, {"Bias", {"b"}}},
                 {{"Gate", {"gate"}}, {"ResetHiddenPrev", {"reset"}}, {"Hidden", {"y"}}})
          .Fetch("y")
          .Build(),
      {{"b", Tensor::Of<float>({1, 3}, {7, 8, 9})},
       {"h", Tensor::Of<float>({1, 1}, {0.625F})},
       {"w", Tensor::Of<float>({1, 3}, {1, 2, 3})}},
      Tensor::Of<float>({1, 3}, {10, 20, 30}), OpRegistry::Global());
  ASSERT_EQ(packed.compiled.packed->entries.size(), 1U);
  EXPECT_THAT(UseDamaged(packed, 0), FailsWith(kDataLoss, "parameter 'b' differs"));
  EXPECT_THAT(UseDamaged(packed, 1), FailsWith(kDataLoss, "parameter 'h' differs"));
  EXPECT_THAT(UseDamaged(packed, 2), IsOk());
}

TEST(PackedConstantsTest, WhatIsFoldedIntoAPackedFilterIsNotRead) {
  if (OpRegistry::Global().Find("conv2d") == nullptr) GTEST_SKIP() << "built without kernels";
  const Ready packed =
      PackedOf(ProgramBuilder()
                   .Feed("x", {-1, 1, 2, 2})
                   .Param("b", {2})
                   .Param("w", {2, 1, 2, 2})
                   .Declare("c", {-1, 2, 1, 1})
                   .AddOp("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}, {"Bias", {"b"}}},
                          {{"Output", {"c"}}})
                   .Fetch("c")
                   .Build(),
               {{"b", Tensor::Of<float>({2}, {0.375F, 8})},
                {"w", Tensor::Of<float>({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}},
               Tensor::Of<float>({1, 1, 2, 2}, {1, 2, 3, 4}), OpRegistry::Global());
  ASSERT_EQ(packed.compiled.packed->entries.size(), 1U);
  CompiledProgram read = *ParsePlan(*FormatPlan(packed.compiled), OpRegistry::Global());
  auto damaged = std::make_shared<PackedConstants>(*read.packed);
  for (uint64_t& checksum : damaged->parameter_checksums) checksum ^= 1;
  EXPECT_THAT(CheckReadParameters(read.plans, *damaged), IsOk());
  damaged->entries.clear();
  EXPECT_THAT(CheckReadParameters(read.plans, *damaged), FailsWith(kDataLoss, "damaged"));
}

// The pass that leaves out what writes a parameter takes with it why its dims may differ.
TEST(PackedConstantsTest, ParametersMayHaveOtherDimsOfOne) {
  Ready packed = Packed();
  auto other = std::make_shared<PackedConstants>(*packed.compiled.packed);
  Tensor& v = other->parameters[0].second;
  v.shape = {1, 2};
  other->parameter_checksums[0] = ChecksumOf(v);
  packed.compiled.packed = other;
  const auto read = ParsePlan(*FormatPlan(packed.compiled), ProbeOps());
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->packed->parameters[0].second.shape, Shape({1, 2}));
}

TEST(PackedConstantsTest, FiltersOfAPairAreNotRead) {
  if (OpRegistry::Global().Find("conv2d") == nullptr) GTEST_SKIP() << "built without kernels";
  const std::vector<float> w(256 * 256, 0.5F);
  const std::vector<float> v(256 * 9, 0.25F);
  const std::vector<float> x(256 * 16, 2);
  const Ready packed = PackedOf(
      ProgramBuilder()
          .Feed("x", {-1, 256, 4, 4})
          .Param("v", {256, 1, 3, 3})
          .Param("w", {256, 256, 1, 1})
          .Declare("a", {-1, 256, 4, 4})
          .Declare("b", {-1, 256, 2, 2})
          .AddOp("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"a"}}})
          .AddOp("depthwise_conv2d", {{"Input", {"a"}}, {"Filter", {"v"}}}, {{"Output", {"b"}}},
                 {{"groups", 256}})
          .Fetch("b")
          .Build(),
      {{"v", Tensor::Of<float>({256, 1, 3, 3}, v)}, {"w", Tensor::Of<float>({256, 256, 1, 1}, w)}},
      Tensor::Of<float>({1, 256, 4, 4}, x), OpRegistry::Global());
  ASSERT_EQ(packed.compiled.packed->entries.size(), 2U);
  CompiledProgram read = *ParsePlan(*FormatPlan(packed.compiled), OpRegistry::Global());
  auto damaged = std::make_shared<PackedConstants>(*read.packed);
  for (uint64_t& checksum : damaged->parameter_checksums) checksum ^= 1;
  EXPECT_THAT(CheckReadParameters(read.plans, *damaged), IsOk());

  Ready loaded;
  loaded.compiled = std::move(read);
  ASSERT_THAT(UsePackedConstants(loaded.compiled, *loaded.scope, &loaded.note), IsOk());
  CoreOptions options = Options();
  options.ops = &OpRegistry::Global();
  const auto core = InterpreterCore::Create(loaded.compiled, loaded.scope, options);
  ASSERT_THAT(core, IsOk());
  for (const int64_t batch : {1, 40}) {
    Tensor feed;
    feed.dtype = DType::kFloat32;
    feed.shape = {batch, 256, 4, 4};
    ASSERT_THAT(feed.Allocate(SystemAllocator()), IsOk());
    std::fill_n(feed.mutable_data<float>(), feed.numel(), 2.0F);
    const auto out = (*core)->Run({feed});
    ASSERT_THAT(out, IsOk());
    EXPECT_EQ(*(*out)[0].data<float>(), 256 * 0.5F * 2 * 9 * 0.25F);
  }
}

TEST(PackedConstantsTest, RefusesEveryTruncation) {
  const std::string bytes = PackedFile();
  for (size_t size = 0; size < bytes.size(); size += size < 600 ? 1 : 61) {
    EXPECT_THAT(ParsePlan(bytes.substr(0, size), ProbeOps()), FailsWith(kDataLoss, "")) << size;
  }
  EXPECT_THAT(ParsePlan(bytes + "x", ProbeOps()), FailsWith(kDataLoss, "cut off or damaged"));
}

TEST(PackedConstantsTest, RefusesEveryFlippedBitBeforeTheData) {
  std::string bytes = PackedFile();
  for (size_t bit = 0; bit < 4096 * 8; bit += bit < 3000 ? 1 : 7) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(ParsePlan(bytes, ProbeOps()).ok()) << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  }
}

// With a checksum that fits, what is wrong is found by looking, or gives other numbers.
TEST(PackedConstantsTest, SurvivesDamageWithARightChecksum) {
  const std::string bytes = PackedFile();
  uint64_t payload = 0;
  std::memcpy(&payload, bytes.data() + kPlanSizeOffset, sizeof(payload));
  std::mt19937 random(7);
  for (int round = 0; round < 10'000; ++round) {
    std::string damaged = bytes;
    for (int change = 0; change <= round % 3; ++change) {
      char& byte = damaged[kPlanHeaderBytes + random() % payload];
      byte = static_cast<char>(round % 2 == 0 ? random() : byte ^ (1 << random() % 8));
    }
    SealPlan(damaged, /*packed=*/true);
    absl::StatusOr<CompiledProgram> parsed = ParsePlan(damaged, ProbeOps());
    if (!parsed.ok() || parsed->packed == nullptr || !CheckProved(parsed->plans).ok()) continue;
    Ready ready{.compiled = *std::move(parsed)};
    if (!UsePackedConstants(ready.compiled, *ready.scope, &ready.note).ok()) continue;
    const auto core = InterpreterCore::Create(ready.compiled, ready.scope, Options());
    if (core.ok()) (*core)->Run({Vector({3, 9})}).IgnoreError();
  }
}

TEST(PackedConstantsTest, RefusesWhatThePlanHasNot) {
  const Ready packed = Packed();
  const auto refused = [&](auto change) {
    auto changed = std::make_shared<PackedConstants>(*packed.compiled.packed);
    change(*changed);
    CompiledProgram compiled = packed.compiled;
    compiled.packed = changed;
    return ParsePlan(*FormatPlan(compiled), ProbeOps()).status();
  };
  EXPECT_THAT(refused([](PackedConstants& p) { p.parameters[1].first = "z"; }),
              FailsWith(kInvalidArgument, "parameter 'z': the program has none of that name"));
  EXPECT_THAT(refused([](PackedConstants& p) { std::swap(p.parameters[0], p.parameters[1]); }),
              FailsWith(kInvalidArgument, "is out of order"));
  EXPECT_THAT(refused([](PackedConstants& p) {
                p.parameters[0].second = Vector({1, 2, 3});
              }),
              FailsWith(kInvalidArgument, "the program declares int64[2]"));
  EXPECT_THAT(refused([](PackedConstants& p) { p.entries.push_back(p.entries[0]); }),
              FailsWith(kInvalidArgument, "are out of order"));
  EXPECT_THAT(refused([](PackedConstants& p) { p.entries[0].instruction = -9; }),
              FailsWith(kInvalidArgument, "constants of block 8 of 1"));
  EXPECT_THAT(refused([](PackedConstants& p) { p.entries[0].instruction = 99; }),
              FailsWith(kInvalidArgument, "are none of the plan's"));
  EXPECT_THAT(refused([](PackedConstants& p) { p.entries[0].vars[0] = 0; }),
              FailsWith(kInvalidArgument, "is not folded"));
  EXPECT_THAT(refused([](PackedConstants& p) { p.entries[0].key = 0; }),
              FailsWith(kInvalidArgument, "is no copy of a constant"));
  EXPECT_THAT(refused([](PackedConstants& p) {
                p.entries[0].tensors[0] = Tensor::Of<float>({2}, {1, 2});
              }),
              FailsWith(kInvalidArgument, "which is not the plan's"));
}

TEST(PackedArraysTest, OfOtherSizesAreRefused) {
  const PackedArrays packed{{Tensor::Of<float>({2}, {1, 2})}};
  EXPECT_THAT(CheckArrays(packed, {8}), IsOk());
  EXPECT_THAT(CheckArrays(packed, {12}),
              FailsWith(kDataLoss, "array #0 of packed constants has 8 bytes, expected 12"));
  EXPECT_THAT(CheckArrays(packed, {8, 4}), FailsWith(kDataLoss, "have 1 arrays, expected 2"));
}

}  // namespace
}  // namespace interp::testing::packed_constants_test
