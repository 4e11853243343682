// sum with selected rows among its inputs.
#pragma once

#include "core/op_def.h"

namespace interp {

// Whether an argument of the input slot is selected rows.
bool AnyRows(const OpContext& ctx, int slot);

// Arguments of X that are selected rows, for T float or double. Where Out is selected rows, too, it
// becomes their sum, each row once; else they are added to Out, which holds that of the tensors.
template <typename T>
absl::Status AddRows(KernelContext& ctx, int x_slot, int out_slot);

}  // namespace interp
