// Every op with a row for GPUs against what Paddle computes: the golden cases of tests/goldens on
// cuda:0. One test per op type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/op_def.h"
#include "tests/cuda/kernel_test.h"
#include "tests/testing/golden_run.h"

namespace interp::cuda_test {
namespace {

using testing::GoldenCase;

// Ops of which a row takes one form, and golden cases have another
// (tests/cuda/quantize_rows_test.cc has the first).
bool HasNoCase(absl::string_view type) { return type == "quantize" || type == "dequantize"; }

std::vector<std::string> OpsWithRows() {
  std::vector<std::string> types;
  for (const auto& [type, folders] : testing::GoldenCasesByOp()) {
    const OpDef* const def = OpRegistry::Global().Find(type);
    if (def == nullptr || HasNoCase(type)) continue;
    if (def->RunsOn(PlaceKind::kCuda)) types.push_back(type);
  }
  return types;
}

// Whether the GPU computes the op itself, not the host for it.
bool RunsOnGpu(const Plan& plan, absl::string_view type) {
  return std::any_of(
      plan.instructions.begin(), plan.instructions.end(), [type](const Instruction& instruction) {
        return instruction.op_type == type && instruction.place.kind == PlaceKind::kCuda;
      });
}

// Cases of sorts with equal elements, and of selections that need no order: both are left to the
// algorithms of the host's standard library there, and GPUs sort, and keep the order of what is
// equal.
bool PinsAlgorithmsOfTheHost(const std::string& folder) {
  return absl::StrContains(folder, "/tied_") || absl::StrContains(folder, "/unsorted_");
}

// Logarithms, of which normal numbers are made, are rounded by each library in its own way.
double LeastTolerance(absl::string_view type) { return type == "gaussian_random" ? 1e-6 : 0; }

class CudaConformanceTest : public KernelTest, public ::testing::WithParamInterface<std::string> {
 protected:
  // Whether the GPU computed the op.
  bool Check(const std::string& folder) {
    absl::StatusOr<GoldenCase> golden = testing::ReadGoldenCase(folder);
    EXPECT_TRUE(golden.ok()) << golden.status();
    if (!golden.ok() || !testing::IsComparable(*golden)) return false;
    golden->rtol = std::max(golden->rtol, LeastTolerance(GetParam()));
    CoreOptions options;
    options.plan.place = {PlaceKind::kCuda, 0};
    const absl::StatusOr<std::unique_ptr<InterpreterCore>> core =
        testing::MakeGoldenCore(*golden, options);
    EXPECT_TRUE(core.ok()) << core.status();
    if (!core.ok()) return false;
    EXPECT_THAT(testing::RunGolden(**core, *golden), ::testing::IsEmpty());
    // Once more: with shapes known and memory of the first run reused.
    EXPECT_THAT(testing::RunGolden(**core, *golden), ::testing::IsEmpty()) << "in the second run";
    return RunsOnGpu((*core)->plan(), GetParam());
  }
};

TEST_P(CudaConformanceTest, AgreesWithPaddle) {
  int on_gpu = 0;
  for (const std::string& folder : testing::GoldenCasesByOp().at(GetParam())) {
    if (PinsAlgorithmsOfTheHost(folder)) continue;
    SCOPED_TRACE(folder);
    on_gpu += Check(folder) ? 1 : 0;
  }
  EXPECT_GT(on_gpu, 0) << "no case is computed by the GPU";
}

INSTANTIATE_TEST_SUITE_P(Goldens, CudaConformanceTest, ::testing::ValuesIn(OpsWithRows()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaConformanceTest);

}  // namespace
}  // namespace interp::cuda_test
