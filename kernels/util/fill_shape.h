// Shapes of ops that make a tensor from attributes: constants and random numbers.
#pragma once

#include "core/op_def.h"
#include "kernels/util/shape_args.h"

namespace interp {

// Sets the shape of an output to `dims`; error for too many or negative ones.
absl::Status SetFillShape(InferContext& ctx, int output_slot, const IntList& dims);

// What the ops *_batch_size_like have in common: `shape` with one dimension taken from an input.
struct BatchSizeLike {
  IntList shape;
  int64_t input_dim = 0;
  int64_t output_dim = 0;
};
BatchSizeLike ReadBatchSizeLike(AttrReader& reader);

// Sets the shape of an output so. As in Paddle, random numbers take the rows of an input with LoD
// for its batch, and constants its sequences (`by_sequence`).
absl::Status SetBatchSizeLikeShape(InferContext& ctx, int input_slot, int output_slot,
                                   const BatchSizeLike& attrs, bool by_sequence);

}  // namespace interp
