// Gradients that kernels add to.
#pragma once

#include "core/op_def.h"
#include "kernels/util/fill_zero.h"

namespace interp {

// The elements of an output, set to 0; null where nobody wants it.
template <typename T>
T* ZeroedOutput(KernelContext& ctx, int slot) {
  Tensor* const out = ctx.optional_output(slot);
  if (out == nullptr) return nullptr;
  FillZero(ctx.num_threads(), *out);
  return out->mutable_data<T>();
}

}  // namespace interp
