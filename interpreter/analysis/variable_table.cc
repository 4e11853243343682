#include "interpreter/analysis/variable_table.h"

namespace interp {

std::vector<PlanVar> BuildVariableTable(const Program& program) {
  std::vector<PlanVar> vars(program.names.size());
  for (size_t id = 0; id < vars.size(); ++id) vars[id].name = program.names[id];
  for (const Var& var : program.blocks[0].vars) {
    PlanVar& entry = vars[var.id];
    entry.kind = var.kind;
    entry.dtype = var.dtype;
    entry.rank = var.dtype == DType::kUndefined ? -1 : static_cast<int32_t>(var.dims.size());
    entry.declared = true;
    entry.persistable =
        var.persistable || var.kind == VarKind::kFeedMinibatch || var.kind == VarKind::kFetchList;
  }
  return vars;
}

}  // namespace interp
