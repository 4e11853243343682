// OpDef::infer of ops that hand no LoD on where ops alike do.
#pragma once

#include "core/op_def.h"

namespace interp {

// As kInfer, and the outputs of these slots get no LoD.
template <absl::Status (*kInfer)(InferContext&), int... kSlots>
absl::Status WithoutLod(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(kInfer(ctx));
  for (const int slot : {kSlots...}) {
    if (Tensor* const out = ctx.optional_output(slot)) out->lod.clear();
  }
  return absl::OkStatus();
}

}  // namespace interp
