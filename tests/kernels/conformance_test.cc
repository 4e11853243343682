// Every registered kernel against what Paddle computes: the golden cases of tests/goldens, run
// through the interpreter. One test per registered op type.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/io/file.h"
#include "core/op_def.h"
#include "core/program_load.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/golden.h"

namespace interp {
namespace {

using testing::Difference;
using testing::GoldenCase;
using ::testing::IsEmpty;

// Case folders by the op type they are filed under.
const std::map<std::string, std::vector<std::string>>& CasesByOp() {
  static const auto* cases = [] {
    auto* by_op = new std::map<std::string, std::vector<std::string>>;
    for (const std::string& set : testing::GoldenSets()) {
      for (const std::string& folder : testing::GoldenCaseFolders(set)) {
        (*by_op)[std::filesystem::path(folder).parent_path().filename().string()].push_back(folder);
      }
    }
    return by_op;
  }();
  return *cases;
}

bool IsRegistered(absl::string_view type) { return OpRegistry::Global().Find(type) != nullptr; }

std::vector<std::string> OpTypesToTest() {
  std::vector<std::string> types;
  for (const auto& [type, folders] : CasesByOp()) {
    if (IsRegistered(type)) types.push_back(type);
  }
  return types;
}

const Tensor* FindByName(const std::vector<NamedTensor>& tensors, absl::string_view name) {
  for (const NamedTensor& t : tensors) {
    if (t.first == name) return &t.second;
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<InterpreterCore>> MakeCore(const GoldenCase& golden) {
  INTERP_ASSIGN_OR_RETURN(Program program, LoadProgram(golden.program));
  return InterpreterCore::Create(std::move(program), {}, {}, nullptr);
}

absl::StatusOr<std::vector<Tensor>> FeedsInOrder(const InterpreterCore& core,
                                                 const GoldenCase& golden) {
  std::vector<Tensor> feeds;
  for (const FeedSpec& spec : core.plan().feeds) {
    const Tensor* feed = FindByName(golden.feeds, spec.name);
    if (feed == nullptr) return NotFound("no value for feed '", spec.name, "'");
    feeds.push_back(*feed);
  }
  return feeds;
}

// Empty when one run gives the expected results, else what is wrong.
std::vector<std::string> RunOnce(InterpreterCore& core, const GoldenCase& golden) {
  const absl::StatusOr<std::vector<Tensor>> feeds = FeedsInOrder(core, golden);
  if (!feeds.ok()) return {feeds.status().ToString()};
  const absl::StatusOr<std::vector<Tensor>> results = core.Run(*feeds);
  if (!results.ok()) return {results.status().ToString()};
  std::vector<std::string> errors;
  for (size_t i = 0; i < results->size(); ++i) {
    const std::string& name = core.plan().fetches[i];
    const Tensor* want = FindByName(golden.fetches, name);
    if (want == nullptr) {
      errors.push_back(absl::StrCat("no expected value for '", name, "'"));
      continue;
    }
    const std::string difference = Difference((*results)[i], *want, golden.rtol, golden.atol);
    if (!difference.empty()) errors.push_back(absl::StrCat("'", name, "' ", difference));
  }
  return errors;
}

class ConformanceTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ConformanceTest, AgreesWithPaddle) {
  for (const std::string& folder : CasesByOp().at(GetParam())) {
    SCOPED_TRACE(folder);
    const absl::StatusOr<GoldenCase> golden = testing::ReadGoldenCase(folder);
    ASSERT_TRUE(golden.ok()) << golden.status();
    if (!std::all_of(golden->ops.begin(), golden->ops.end(), IsRegistered)) continue;
    absl::StatusOr<std::unique_ptr<InterpreterCore>> core = MakeCore(*golden);
    if (!core.ok()) {
      ADD_FAILURE() << core.status();
      continue;
    }
    EXPECT_THAT(RunOnce(**core, *golden), IsEmpty());
    // Once more: with shapes known and memory of the first run reused.
    EXPECT_THAT(RunOnce(**core, *golden), IsEmpty()) << "in the second run";
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, ConformanceTest, ::testing::ValuesIn(OpTypesToTest()),
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
  for (const auto& [type, folders] : CasesByOp()) {
    total += folders.size();
    if (IsRegistered(type)) continue;
    missing.push_back(type);
    cases += folders.size();
  }
  std::cout << missing.size() << " of " << CasesByOp().size() << " op types with golden cases ("
            << cases << " of " << total
            << " cases) are not registered: " << absl::StrJoin(missing, " ") << "\n";
}

// "op dtype" for each kernel that some golden case runs.
std::set<std::string> ExercisedKernels() {
  std::set<std::string> kernels;
  for (const auto& [type, folders] : CasesByOp()) {
    if (!IsRegistered(type)) continue;
    for (const std::string& folder : folders) {
      const absl::StatusOr<GoldenCase> golden = testing::ReadGoldenCase(folder);
      if (!golden.ok()) continue;
      const absl::StatusOr<std::unique_ptr<InterpreterCore>> core = MakeCore(*golden);
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
