// PlanGarbageCollection: which variables may be freed after which instructions.
#pragma once

#include "interpreter/plan/plan.h"

namespace interp {

// Fills gc_check, ref_counts and frees_in_order.
//
// Candidates are tensors, arrays, rank tables and step records of this plan's own: neither
// persistable nor captured, nor results that the kernel which runs the block reads. An instruction
// *uses* a variable when it writes it or reads its memory; a kNoNeedBuffer input is no use unless
// the variable is an argument elsewhere in the instruction too. Of the uses that may be the last,
// those that another one follows over one edge are left out, as far as that is found at a glance;
// the rest are counted, and whoever lowers the count to zero frees. Memory shared between variables
// is reference-counted itself, so freeing one name never takes it from another.
// REQUIRES: `instructions`, `edges`, `successors` and `order` are there. Linear in arguments.
void PlanGarbageCollection(Plan& plan);

}  // namespace interp
