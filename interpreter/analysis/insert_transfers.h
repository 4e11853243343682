// InsertTransfers: casts and layout changes, where a kernel wants another dtype or layout than the
// variable has.
#pragma once

#include "core/op_def.h"
#include "core/status.h"
#include "interpreter/plan.h"

namespace interp {

// Walks the instructions in order, decides the layout of every output from the ops' LayoutRules,
// and inserts `cast` and `transfer_layout` instructions in front of those whose inputs do not fit.
//
// A transferred copy belongs to one version of its source: later readers of the same version reuse
// it, a write to the source makes it stale. (Paddle keys copies by name alone and can reuse a stale
// one; see ApplyDataTransform in its data_transfer.cc.) Copies are named as Paddle names them,
// `<v>_layout_<from>_<to>` and `<v>_dtype_<from>_<to>`, with `_<n>` behind for the n-th further
// copy. The ops of the inserted instructions are appended to `inserted_ops`. Linear.
absl::StatusOr<std::vector<Instruction>> InsertTransfers(std::vector<Instruction> instructions,
                                                         bool optimize_layout,
                                                         const OpRegistry& registry,
                                                         std::vector<PlanVar>& vars,
                                                         std::vector<Op>& inserted_ops);

}  // namespace interp
