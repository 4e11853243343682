// Reference: runs a program op by op, in program order, with no plan.
//
// Every input is a deep copy and every output new memory, so nothing can be shared, freed early or
// run out of order: what an InterpreterCore must agree with, bit for bit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/tensor.h"

namespace interp::testing {

class Reference {
 public:
  explicit Reference(const OpRegistry& ops) : ops_(ops) {}

  // A persistable variable; keeps its value from run to run.
  Tensor& Parameter(const std::string& name) { return parameters_[name].tensor; }

  // Runs block 0. All layouts are plain; inputs are cast where the kernel's dtype asks for it.
  // Random ops draw as in the runs of a new core.
  absl::StatusOr<std::vector<Tensor>> Run(Program program, const std::vector<Tensor>& feeds);

 private:
  struct Binding;

  absl::Status BindInputs(const Program& program, const Op& op, const OpDef& def, Binding& binding);
  void BindOutputs(const Program& program, const Op& op, const OpDef& def, Binding& binding);
  absl::Status RunOp(const Program& program, const Op& op);
  Variable& Find(const Program& program, VarId id);

  const OpRegistry& ops_;
  std::map<std::string, Variable> parameters_;
  std::map<std::string, Variable> locals_;
  std::vector<bool> persistable_;  // by VarId
  uint64_t runs_ = 0;
};

}  // namespace interp::testing
