// Random ops whose shape may be given as tensors or as that of an input.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "kernels/util/fill_shape.h"
#include "kernels/util/shape_args.h"

namespace interp::random {

std::vector<SlotDef> ShapeInputs();

// Sets the shape of output 0 of an op with ShapeInputs(): by the list of tensors, else by the
// attribute, else, when that is empty, by the one tensor. (Ops that fill constants prefer the
// tensor.) With none of them it is 0-D.
absl::Status SetRandomShape(InferContext& ctx, const IntList& attribute);

// The op that draws by ShapeInputs(). `Attrs` has `dtype`, that of the numbers, and `like`, of
// which only the shape counts.
template <typename Attrs, auto kRead>
OpDef RandomOp(absl::string_view type, const std::vector<KernelDef>& kernels) {
  return {
      .type = type,
      .inputs = ShapeInputs(),
      .outputs = {{"Out"}},
      .parse = ParseAttrs<Attrs, kRead>,
      .kernel_dtype = [](const DTypeContext& ctx) { return ctx.attrs<Attrs>().dtype; },
      .infer = [](InferContext& ctx) { return SetRandomShape(ctx, ctx.attrs<Attrs>().like.shape); },
      .kernels = kernels,
      .random = true};
}

// The same with the shape that `like` makes of the input's.
template <typename Attrs, auto kRead>
OpDef RandomLikeOp(absl::string_view type, const std::vector<KernelDef>& kernels) {
  OpDef op = RandomOp<Attrs, kRead>(type, kernels);
  op.inputs = {{"Input", kNoNeedBuffer | kAnyDType | kAnyLayout}};
  op.infer = [](InferContext& ctx) {
    return SetBatchSizeLikeShape(ctx, /*input_slot=*/0, /*output_slot=*/0, ctx.attrs<Attrs>().like,
                                 /*by_sequence=*/false);
  };
  return op;
}

}  // namespace interp::random
