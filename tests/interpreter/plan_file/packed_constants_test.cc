#include "interpreter/plan/packed_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/packed_arrays.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/plan_file/plan_file.h"
#include "tests/testing/matchers.h"
#include "tests/testing/packed_plans.h"
#include "tests/testing/plan_bytes.h"
#include "tests/testing/probe.h"
#include "tests/testing/probe_ops.h"
#include "tests/testing/temp_folder.h"
#include "tests/testing/test_program.h"

namespace interp::testing::packed_constants_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Instructions 1 and 2 are folded; `v` is read as it is.
Program Folding() {
  return TestProgram(DType::kInt64)
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

std::vector<Tensor> RunOn(const Ready& ready) {
  const auto core = InterpreterCore::Create(ready.compiled, ready.scope, PackedOptions(ProbeOps()));
  EXPECT_THAT(core, IsOk());
  auto out = (*core)->Run({VectorOf<int64_t>({3, 9})});
  EXPECT_THAT(out, IsOk());
  return out.ok() ? *std::move(out) : std::vector<Tensor>();
}

Ready Packed() {
  return PackedOf(Folding(), {{"v", VectorOf<int64_t>({1, 2})}, {"w", VectorOf<int64_t>({5, 7})}},
                  VectorOf<int64_t>({3, 9}), ProbeOps());
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
  loaded.scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({50, 70});
  Ready other = Packed();
  other.compiled.packed = nullptr;
  other.scope->FindOrCreate("w")->tensor = VectorOf<int64_t>({50, 70});
  const std::vector<Tensor> expected = RunOn(other);
  Probe probe;
  EXPECT_TRUE(SameBits(RunOn(loaded), expected));
  EXPECT_THAT(probe.TakeTrace(), ElementsAre(1, 2, 3, 4));
}

TEST(PackedConstantsTest, AreForgottenWhenAParameterChangesInPlace) {
  const Ready loaded = Load(PackedFile());
  const auto core =
      InterpreterCore::Create(loaded.compiled, loaded.scope, PackedOptions(ProbeOps()));
  ASSERT_THAT((*core)->Run({VectorOf<int64_t>({3, 9})}), IsOk());
  ++loaded.scope->FindOrCreate("w")->version;
  Probe probe;
  ASSERT_THAT((*core)->Run({VectorOf<int64_t>({3, 9})}), IsOk());
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

TEST(PackedConstantsTest, DamagedOnesFailTheRun) {
  const Ready packed = Packed();
  ASSERT_EQ(packed.compiled.packed->entries.size(), 1U);
  const std::string bytes = WithDamage(PackedFile(), packed.compiled.packed->entries[0].tensors[0]);
  const Ready loaded = Load(bytes);
  const auto core =
      InterpreterCore::Create(loaded.compiled, loaded.scope, PackedOptions(ProbeOps()));
  ASSERT_THAT(core, IsOk());
  EXPECT_THAT((*core)->Run({VectorOf<int64_t>({3, 9})}),
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
    const auto core =
        InterpreterCore::Create(ready.compiled, ready.scope, PackedOptions(ProbeOps()));
    if (core.ok()) (*core)->Run({VectorOf<int64_t>({3, 9})}).IgnoreError();
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
                p.parameters[0].second = VectorOf<int64_t>({1, 2, 3});
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
