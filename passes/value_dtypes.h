// ValueDTypes: the dtypes of values as the ops of block 0 make them. Declarations may say something
// else: an early Paddle declares what crf_decoding gives as float32.
#pragma once

#include <vector>

#include "core/infer_dtypes.h"
#include "core/op_def.h"
#include "core/program.h"
#include "passes/var_uses.h"

namespace interp {

// Sets the dtypes of the op's outputs. False where the attributes are unusable, which whoever
// compiles the program tells, and where no kernel of dtype `wanted` (kUndefined: of any) would
// compute it.
bool InferOutputDTypes(const Op& op, const OpDef& def, DTypeContext::Inputs inputs,
                       DTypeContext::Outputs outputs, DType wanted = DType::kUndefined);

// Follows the ops in program order.
class ValueDTypes {
 public:
  // `uses` are those of `program`; `ops` is borrowed.
  ValueDTypes(const Program& program, const std::vector<VarUse>& uses, const OpRegistry& ops);

  // Of the variable's value behind the ops seen so far: what it is declared as where no op wrote
  // it, kUndefined where nothing tells.
  DType Of(VarId id) const { return dtypes_[id]; }

  // Goes past an op of block 0.
  void Pass(const Op& op);

 private:
  void Write(VarId id, DType dtype);

  const OpRegistry& ops_;
  const VarId empty_;
  std::vector<DType> dtypes_;  // by VarId
};

}  // namespace interp
