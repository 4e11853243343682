// CompiledProgram: a program after the passes with its plan, ready to be bound to variables and
// devices (InterpreterCore) or kept in a file (plan_file.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"
#include "interpreter/plan/packed_constants.h"
#include "interpreter/plan/plan.h"
#include "passes/pipeline.h"

namespace interp {

// A value: copies are independent, and may be changed before a core is made of them.
struct CompiledProgram {
  Program program;  // after the passes; an instruction's op_index is a position in its plan's block
  std::vector<Plan> plans;  // by block of the program; empty ones for blocks that never run
  std::vector<PassTiming> pass_timings;  // empty when it was read from a file
  // Variables that the program before the passes declares persistable, as tensors, and this one
  // does not, ascending: combined files of parameters hold them.
  std::vector<VarId> made_in_runs;
  // FingerprintOf the program before the passes; 0: not known. Compile leaves it 0, because finding
  // it takes about as long as the passes.
  uint64_t source_fingerprint = 0;
  // Of a plan file that has them; else null. They are used as long as the parameters of the scope
  // are the tensors of `packed->parameters` themselves. Copies share them.
  std::shared_ptr<const PackedConstants> packed = nullptr;

  // Of block 0, which takes the feeds and gives the fetches.
  const Plan& main() const { return plans[0]; }
};

// Runs the passes on `program` and plans the result; nothing is executed. `feeds` and `fetches`
// name variables; when both are empty, the program's own feed and fetch ops tell.
absl::StatusOr<CompiledProgram> Compile(Program program, const std::vector<std::string>& feeds,
                                        const std::vector<std::string>& fetches,
                                        const PipelineOptions& passes, const PlanOptions& plan,
                                        const OpRegistry& ops);

}  // namespace interp
