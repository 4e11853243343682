// Plan files of golden cases with changed bytes and a right checksum. What is read and proved ends
// with a result or with an error. What is read or written beyond a tensor shows under
// AddressSanitizer.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/program_load.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/plan_file/plan_file.h"
#include "tests/testing/golden_run.h"
#include "tests/testing/plan_bytes.h"

namespace interp::testing {
namespace {

constexpr size_t kMostPlansOfAnOp = 3;
constexpr int kDamages = 80;  // of one plan

absl::StatusOr<std::string> PlanFileOf(const GoldenCase& golden) {
  INTERP_ASSIGN_OR_RETURN(Program program, LoadProgram(golden.program));
  INTERP_ASSIGN_OR_RETURN(const CompiledProgram compiled,
                          Compile(std::move(program), {}, {}, {}, {}, OpRegistry::Global()));
  return FormatPlan(compiled);
}

absl::Status RunPlan(const std::string& bytes, const std::vector<NamedTensor>& feeds) {
  INTERP_ASSIGN_OR_RETURN(CompiledProgram compiled, ParsePlan(bytes, OpRegistry::Global()));
  INTERP_RETURN_IF_ERROR(CheckProved(compiled.plans));
  INTERP_ASSIGN_OR_RETURN(auto core,
                          InterpreterCore::Create(std::move(compiled), nullptr, DamagedOptions()));
  return RunDamagedTwice(*core, feeds);
}

std::string Damaged(std::string bytes, uint32_t seed) {
  std::mt19937 random(seed);
  for (uint32_t change = 0; change <= seed % 3; ++change) {
    char& byte = bytes[kPlanHeaderBytes + random() % (bytes.size() - kPlanHeaderBytes)];
    byte = static_cast<char>(seed % 2 == 0 ? random() : byte ^ (1 << random() % 8));
  }
  SealPlan(bytes);
  return bytes;
}

class DamagedPlansTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DamagedPlansTest, EndWithAResultOrAnError) {
  const std::vector<std::string>& folders = GoldenCasesByOp().at(GetParam());
  const size_t step = std::max<size_t>(1, folders.size() / kMostPlansOfAnOp);
  for (size_t at = 0; at < folders.size(); at += step) {
    const absl::StatusOr<GoldenCase> golden = ReadGoldenCase(folders[at]);
    ASSERT_TRUE(golden.ok()) << golden.status();
    const absl::StatusOr<std::string> bytes = PlanFileOf(*golden);
    if (!bytes.ok()) continue;
    for (uint32_t i = 0; i < kDamages; ++i) {
      const uint32_t seed = i + kDamages * static_cast<uint32_t>(at);
      const absl::Status status = RunPlan(Damaged(*bytes, seed), golden->feeds);
      EXPECT_FALSE(absl::IsInternal(status)) << folders[at] << ", seed " << seed << ": " << status;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, DamagedPlansTest, ::testing::ValuesIn(GoldenOpTypes()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DamagedPlansTest);

}  // namespace
}  // namespace interp::testing
