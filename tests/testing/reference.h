// Reference: runs a program op by op, in program order, with no plan.
//
// Every input is a deep copy and every output new memory, so nothing can be shared, freed early or
// run out of order: what an InterpreterCore must agree with, bit for bit.
#pragma once

#include <deque>
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

  // Runs block 0 and, where ops say so, others. All layouts are plain; inputs are cast where the
  // kernel's dtype asks for it. Random ops draw as in the runs of a new core. Variables of nested
  // blocks are declared where they belong.
  absl::StatusOr<std::vector<Tensor>> Run(Program program, const std::vector<Tensor>& feeds);

 private:
  using Variables = std::map<std::string, Variable>;
  struct Binding;
  struct Level;
  class BlockOfOp;

  absl::Status RunBlock(Level& level);
  absl::Status RunOp(Level& level, const Op& op);
  absl::Status RunKernel(Level& level, const Op& op, const OpDef& def, Binding& binding);
  absl::Status BindInputs(Level& level, const Op& op, const OpDef& def, Binding& binding);
  void BindOutputs(Level& level, const Op& op, const OpDef& def, Binding& binding);
  Variable& Find(Level& level, VarId id);
  bool IsForward(int32_t block) const;
  Variables CapturesOf(Level& level);

  const OpRegistry& ops_;
  std::map<std::string, Variable> parameters_;
  const Program* program_ = nullptr;  // during a run
  const std::vector<Tensor>* feeds_ = nullptr;
  std::vector<Tensor> fetched_;
  std::vector<bool> persistable_;            // by VarId
  std::vector<bool> tensor_;                 // by VarId: no declaration says otherwise
  std::vector<bool> rows_;                   // by VarId: declared as selected rows
  std::vector<std::vector<bool>> declared_;  // by block, then VarId
  std::deque<Variables> left_;               // by activations that were saved
  uint64_t runs_ = 0;
};

}  // namespace interp::testing
