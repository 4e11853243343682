// InferLike: OpDef::infer of ops whose output looks like an input.
#pragma once

#include "core/op_context.h"

namespace interp {

// Output kTo gets the shape and the LoD of input kFrom.
template <int kFrom, int kTo>
absl::Status InferLike(InferContext& ctx) {
  ctx.ShareShape(kFrom, kTo);
  return absl::OkStatus();
}

}  // namespace interp
