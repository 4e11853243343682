// Every registered kernel against what Paddle computes: the golden cases of tests/goldens, run
// through the interpreter. One test per registered op type.
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/io/file.h"
#include "core/op_def.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/golden_run.h"

namespace interp {
namespace {

using testing::GoldenCase;
using testing::GoldenCasesByOp;
using testing::IsComparable;
using ::testing::IsEmpty;
using testing::MakeGoldenCore;
using testing::RunGolden;

bool IsRegistered(absl::string_view type) { return OpRegistry::Global().Find(type) != nullptr; }

class ConformanceTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ConformanceTest, AgreesWithPaddle) {
  for (const std::string& folder : GoldenCasesByOp().at(GetParam())) {
    SCOPED_TRACE(folder);
    const absl::StatusOr<GoldenCase> golden = testing::ReadGoldenCase(folder);
    ASSERT_TRUE(golden.ok()) << golden.status();
    if (!IsComparable(*golden)) continue;
    absl::StatusOr<std::unique_ptr<InterpreterCore>> core = MakeGoldenCore(*golden);
    if (!core.ok()) {
      ADD_FAILURE() << core.status();
      continue;
    }
    EXPECT_THAT(RunGolden(**core, *golden), IsEmpty());
    // Once more: with shapes known and memory of the first run reused.
    EXPECT_THAT(RunGolden(**core, *golden), IsEmpty()) << "in the second run";
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, ConformanceTest, ::testing::ValuesIn(testing::GoldenOpTypes()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformanceTest);

std::set<std::string> LinesOf(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  std::set<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text.value_or(""), '\n')) {
    if (!line.empty() && line[0] != '#') lines.emplace(line);
  }
  return lines;
}

// tests/kernels/required_ops.txt lists what programs rely on: nothing may vanish from there.
TEST(ConformanceCoverageTest, RequiredOpsAreRegistered) {
  std::vector<std::string> missing;
  for (const std::string& type : LinesOf(INTERP_SOURCE_DIR "/tests/kernels/required_ops.txt")) {
    if (!IsRegistered(type)) missing.push_back(type);
  }
  EXPECT_TRUE(missing.empty()) << "missing: " << absl::StrJoin(missing, " ");
}

TEST(ConformanceCoverageTest, ReportsOpsThatAreNotSupportedYet) {
  std::vector<std::string> missing;
  size_t cases = 0, total = 0;
  for (const auto& [type, folders] : GoldenCasesByOp()) {
    total += folders.size();
    if (IsRegistered(type)) continue;
    missing.push_back(type);
    cases += folders.size();
  }
  std::cout << missing.size() << " of " << GoldenCasesByOp().size()
            << " op types with golden cases (" << cases << " of " << total
            << " cases) are not registered: " << absl::StrJoin(missing, " ") << "\n";
}

// "op dtype" for each kernel that some golden case runs.
std::set<std::string> ExercisedKernels() {
  std::set<std::string> kernels;
  for (const auto& [type, folders] : GoldenCasesByOp()) {
    if (!IsRegistered(type)) continue;
    for (const std::string& folder : folders) {
      const absl::StatusOr<GoldenCase> golden = testing::ReadGoldenCase(folder);
      if (!golden.ok()) continue;
      const absl::StatusOr<std::unique_ptr<InterpreterCore>> core = MakeGoldenCore(*golden);
      if (!core.ok()) continue;
      const Plan& plan = (*core)->plan();
      for (const std::vector<Instruction>* list : {&plan.folded, &plan.instructions}) {
        for (const Instruction& instruction : *list) {
          const DType dtype = instruction.def->kernels[instruction.kernel].dtype;
          kernels.insert(absl::StrCat(instruction.op_type, " ", Name(dtype)));
        }
      }
    }
  }
  return kernels;
}

// A kernel without a case needs one: a line in tests/goldens/recast.txt when the op has cases in
// another dtype, else a function in make_extra_cases.py there. What Paddle cannot compute is listed
// with its reason in tests/kernels/unexercised_kernels.txt.
TEST(ConformanceCoverageTest, EveryKernelIsExercised) {
  if (testing::GoldenSetIsForeign()) GTEST_SKIP() << "not the sets of this repository";
  const std::set<std::string> exercised = ExercisedKernels();
  const std::set<std::string> exempt =
      LinesOf(INTERP_SOURCE_DIR "/tests/kernels/unexercised_kernels.txt");
  std::vector<std::string> missing;
  for (absl::string_view type : OpRegistry::Global().Types()) {
    for (const KernelDef& kernel : OpRegistry::Global().Find(type)->kernels) {
      if (kernel.place != PlaceKind::kCpu) continue;   // see tests/cuda
      if (kernel.dtype == DType::kBFloat16) continue;  // see bfloat16_test.cc
      const std::string row = absl::StrCat(type, " ", Name(kernel.dtype));
      if (!exercised.contains(row) && !exempt.contains(row)) missing.push_back(row);
    }
  }
  EXPECT_TRUE(missing.empty()) << missing.size() << " kernels that no golden case runs:\n"
                               << absl::StrJoin(missing, "\n");
}

}  // namespace
}  // namespace interp
