// Kernels that take channels-last images give what they give for plain ones, and no result depends
// on the number of threads: the golden cases of tests/goldens again, kernel by kernel.
#include <string>
#include <vector>

#include "core/program_load.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/variable_attributes.h"
#include "tests/testing/golden.h"
#include "tests/testing/kernel_runner.h"

namespace interp {
namespace {

using testing::GoldenCase;
using ::testing::IsEmpty;
using testing::KernelRunOptions;

const Op* OnlyOp(const Program& program) {
  const Op* only = nullptr;
  for (const Op& op : program.blocks[0].ops) {
    if (op.type == "feed" || op.type == "fetch") continue;
    if (only != nullptr) return nullptr;
    only = &op;
  }
  return only;
}

// Empty when the kernel agrees with the golden results, else what is wrong. Cases that do not run
// under these options are left out and do not count in `cases`.
std::vector<std::string> Differences(const std::string& folder, const KernelRunOptions& options,
                                     int& cases) {
  const absl::StatusOr<GoldenCase> golden = testing::ReadGoldenCase(folder);
  if (!golden.ok()) return {golden.status().ToString()};
  absl::StatusOr<Program> program = LoadProgram(golden->program);
  if (program.ok()) program = BindVariableAttributes(*std::move(program), {OpRegistry::Global()});
  if (!program.ok()) return {program.status().ToString()};
  const Op* op = OnlyOp(*program);
  if (op == nullptr || OpRegistry::Global().Find(op->type) == nullptr) return {};
  const auto results = testing::RunKernel(*program, *op, golden->feeds, options);
  if (absl::IsUnimplemented(results.status())) return {};
  if (!results.ok()) return {absl::StrCat(folder, ": ", results.status().ToString())};
  ++cases;
  std::vector<std::string> errors;
  for (const auto& [name, want] : golden->fetches) {
    for (const auto& [got_name, got] : *results) {
      if (got_name != name) continue;
      const std::string text = testing::Difference(got, want, golden->rtol, golden->atol);
      if (!text.empty()) errors.push_back(absl::StrCat(folder, ": '", name, "' ", text));
    }
  }
  return errors;
}

int ExpectAgreement(const KernelRunOptions& options) {
  int cases = 0;
  for (const std::string& set : testing::GoldenSets()) {
    for (const std::string& folder : testing::GoldenCaseFolders(set)) {
      EXPECT_THAT(Differences(folder, options, cases), IsEmpty());
    }
  }
  return cases;
}

TEST(LayoutTest, ChannelsLastImagesGiveTheSameResults) {
  EXPECT_GT(ExpectAgreement({.layout = Layout::kChannelsLast}), 0);
}

TEST(LayoutTest, ThreeThreadsGiveTheSameResults) {
  EXPECT_GT(ExpectAgreement({.num_threads = 3}), 0);
}

}  // namespace
}  // namespace interp
