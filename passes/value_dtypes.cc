#include "passes/value_dtypes.h"

#include <utility>

#include "core/each_argument.h"
#include "core/find_kernel.h"
#include "core/sub_blocks.h"
#include "passes/op_side.h"

namespace interp {

bool InferOutputDTypes(const Op& op, const OpDef& def, DTypeContext::Inputs inputs,
                       DTypeContext::Outputs outputs, DType wanted) {
  ParsedAttrs attrs;
  if (def.parse != nullptr) {
    AttrReader reader(op);
    absl::StatusOr<ParsedAttrs> parsed = def.parse(reader);
    if (!parsed.ok()) return false;
    attrs = *std::move(parsed);
  }
  const DType kernel = KernelDType(def, op, attrs.get(), inputs, outputs);
  const bool any = wanted == DType::kUndefined;
  if (!any && (kernel != wanted || !HasKernel(def, wanted, attrs.get()))) return false;
  InferDTypes(def, attrs.get(), kernel, inputs, outputs);
  return true;
}

ValueDTypes::ValueDTypes(const Program& program, const std::vector<VarUse>& uses,
                         const OpRegistry& ops)
    : ops_(ops), empty_(program.Find(kEmptyVarName)), dtypes_(uses.size()) {
  for (size_t id = 0; id < uses.size(); ++id) {
    if (uses[id].var != nullptr) dtypes_[id] = uses[id].var->dtype;
  }
}

void ValueDTypes::Pass(const Op& op) {
  const OpDef* const def = ops_.Find(op.type);
  if (def == nullptr || HasSubBlock(op)) {
    for (const VarId id : EachArgument(op.outputs)) Write(id, DType::kUndefined);
    return;
  }
  auto in = BindSide(op.inputs, def->inputs);
  for (size_t arg = 0; arg < in.args.size(); ++arg) in.dtypes[arg] = Of(*in.args[arg]);
  auto out = BindSide(op.outputs, def->outputs);
  for (size_t arg = 0; arg < out.args.size(); ++arg) out.dtypes[arg] = Of(*out.args[arg]);
  const bool known =
      InferOutputDTypes(op, *def, {in.dtypes, in.counts}, {absl::MakeSpan(out.dtypes), out.counts});
  for (size_t arg = 0; arg < out.args.size(); ++arg) {
    Write(*out.args[arg], known ? out.dtypes[arg] : DType::kUndefined);
  }
}

void ValueDTypes::Write(VarId id, DType dtype) {
  if (id != empty_) dtypes_[id] = dtype;
}

}  // namespace interp
