// Any bytes as a plan file: an error, or a plan that can be printed, proved or not, and written
// again to the same bytes. The checksum of the input is put right, or no change would get past it.
#include <cstdint>
#include <cstdlib>

#include "interpreter/inspect/plan_print.h"
#include "interpreter/plan_file/plan_file.h"
#include "tests/testing/plan_bytes.h"
#include "tests/testing/probe_ops.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace interp;  // NOLINT(google-build-using-namespace)
  std::string file(reinterpret_cast<const char*>(data), size);
  if (size >= testing::kPlanHeaderBytes) testing::SealPlan(file, /*packed=*/true);
  const absl::StatusOr<CompiledProgram> compiled = ParsePlan(file, testing::ProbeOps());
  if (!compiled.ok()) return 0;
  PrintPlans(compiled->plans, PlanStage::kDeps, PlanFormat::kDot);
  PrintPlans(compiled->plans, PlanStage::kPlan, PlanFormat::kJson, &compiled->program);
  CheckProved(compiled->plans).IgnoreError();
  if (compiled->packed != nullptr) {
    CheckReadParameters(compiled->plans, *compiled->packed).IgnoreError();
    for (const PackedEntry& entry : compiled->packed->entries) {
      for (const Tensor& tensor : entry.tensors) ChecksumOf(tensor);
    }
  }
  const absl::StatusOr<std::string> saved = FormatPlan(*compiled);
  if (!saved.ok()) std::abort();
  const absl::StatusOr<CompiledProgram> again = ParsePlan(*saved, testing::ProbeOps());
  if (!again.ok() || *FormatPlan(*again) != *saved) std::abort();
  return 0;
}
