// InsertTransfers: copies, casts and layout changes, where a kernel wants another place, dtype or
// layout than the variable has.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"

namespace interp {

// Walks the instructions in order, decides the layout of every output from the ops' LayoutRules,
// and inserts `memcpy_h2d`, `memcpy_d2h`, `memcpy_p2p`, `transfer_layout` and `cast` instructions
// in front of those whose inputs do not fit: place first, so that the rest happens where the reader
// runs. Between devices of one kind the device that reads makes the copy; between two kinds it goes
// through the host. Host inputs of device kernels (kHostInput, kValueInInfer) stay on the host.
// Hidden arguments are taken where they lie, in plain layout.
//
// An instruction that makes something else than the variable's home (its place; for a settled
// variable its dtype and plain layout, too) writes a variable of its own, `<v>_device_<place>` or
// `<v>_own`, which is converted at once.
//
// A transferred copy belongs to one version of its source: later readers of the same version reuse
// it, a write to the source makes it stale. (Paddle keys copies by name alone and can reuse a stale
// one; see ApplyDataTransform in its data_transfer.cc.) A constant is transferred without an
// instruction, once for all runs (PlanVar::copy_of); so is the result of a `cast` of one in the
// program, which then is no instruction; that of a folded variable is an instruction as the one
// that makes it. Copies are named as Paddle names them,
// `<v>_device_<from>_<to>`, `<v>_layout_<from>_<to>` and `<v>_dtype_<from>_<to>`, with `_<n>`
// behind for the n-th further copy. The ops of the inserted instructions are appended to
// `plan.inserted_ops`. Linear.
//
// `declared` has the dtypes of the plan's variables when its block starts, by VarId: one may be
// written with several dtypes, and is what its last writer made it. REQUIRES: ChooseHomes.
absl::Status InsertTransfers(const OpRegistry& registry, const std::vector<DType>& declared,
                             Plan& plan);

}  // namespace interp
