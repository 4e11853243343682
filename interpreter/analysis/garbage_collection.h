// PlanGarbageCollection: which variables may be freed after which instructions.
#pragma once

#include "interpreter/plan.h"

namespace interp {

// Fills gc_check, ref_counts and frees_in_order.
//
// Candidates are tensors that are not persistable. An instruction *uses* a variable when it writes
// it or reads its memory; a kNoNeedBuffer input is no use unless the variable is an argument
// elsewhere in the instruction too. A use followed by another use over one edge cannot be the last
// and is left out; the rest are counted, and whoever lowers the count to zero frees. Memory shared
// between variables is reference-counted itself, so freeing one name never takes it from another.
// REQUIRES: `instructions`, `edges`, `successors` and `order` are there. Linear in arguments and
// edges.
void PlanGarbageCollection(Plan& plan);

}  // namespace interp
