// Any bytes as the text form of a program: an error, or a program that prints to text which reads
// as the same program, and that the passes and the analysis take or refuse.
#include <cstdint>
#include <cstdlib>

#include "core/program_load.h"
#include "core/program_parse.h"
#include "core/program_print.h"
#include "interpreter/compile/build_plan.h"
#include "passes/pipeline.h"
#include "tests/testing/probe_ops.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace interp;  // NOLINT(google-build-using-namespace)
  absl::StatusOr<Program> program = ParseProgram({reinterpret_cast<const char*>(data), size});
  if (!program.ok()) return 0;
  const std::string text = ToText(*program);
  const absl::StatusOr<Program> again = ParseProgram(text);
  if (!again.ok() || ToText(*again) != text) std::abort();
  SaveProgram(*program).status().IgnoreError();
  absl::StatusOr<PipelineResult> result =
      RunPipeline(*std::move(program), {.ops = testing::ProbeOps()}, {.verify = true});
  if (absl::IsInternal(result.status())) std::abort();  // a pass broke the program
  if (!result.ok()) return 0;
  if (absl::IsInternal(BuildPlans(result->program, {}, testing::ProbeOps()).status())) std::abort();
  return 0;
}
