// FoldedConstants: the values of a frame's folded variables, made before its first activation.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/op_def.h"
#include "core/status.h"
#include "core/tensor.h"
#include "core/variable.h"
#include "interpreter/plan/plan.h"
#include "interpreter/run/instruction_runner.h"
#include "interpreter/run/run_control.h"

namespace interp {

// Runs Plan::folded as any instructions are run, so that errors, time-outs and cancellation are
// those of the op, where the frame's activation comes to it. What other instructions read of the
// results stays, in memory of the system, and is shared by the frames of all clones; the rest goes.
//
// Thread-safety: one call at a time.
class FoldedConstants {
 public:
  // `variables`, by VarId, and what `services` and `ops` lead to are borrowed.
  FoldedConstants(const Plan& plan, absl::Span<Variable* const> variables, RunControl& control,
                  const InstructionRunner::Services& services, const RunnerOptions& options,
                  const OpRegistry& ops);

  // Gives folded variables and their copies their values, unless they have them. False when the
  // control knows why not. REQUIRES: constants have their values.
  bool Make() { return made_ || MakeAnew(); }
  // A constant has another value.
  void Forget() { made_ = plan_.folded.empty(); }

 private:
  bool MakeAnew();
  absl::Status Run(const std::vector<VarId>& kept);
  absl::Status CopyInputs(const Instruction& instruction);
  absl::Status Copy(VarId copy);
  std::vector<VarId> FindKept() const;
  std::vector<std::vector<VarId>> LastUses(const std::vector<VarId>& kept) const;

  const Plan& plan_;
  const absl::Span<Variable* const> variables_;
  RunControl& control_;
  const InstructionRunner::Services services_;
  const RunnerOptions options_;
  const OpRegistry& ops_;
  bool made_;
};

}  // namespace interp
