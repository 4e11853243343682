// Joining tensors along a new dimension and taking them apart again; shared by stack, unstack and
// unbind with their gradients, which are each other's.
#pragma once

#include "core/op_def.h"
#include "kernels/util/all_present.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/shape_args.h"

namespace interp::stacking {

constexpr int kX = 0;
constexpr int kOut = 0;

struct StackAttrs {
  int64_t axis = 0;
  int64_t num = 0;  // unstack: expected outputs; 0 when not given
};

inline StackAttrs ReadStackAttrs(AttrReader& reader) {
  return {reader.Long("axis", 0), reader.Long("num", 0)};
}

// Strides of `whole` along the dimensions it has besides `axis`, next to those of `part`.
inline CopyDims PartDims(const Tensor& part, const Strides& part_strides,
                         const Strides& whole_strides, int axis, bool part_is_source) {
  CopyDims dims;
  for (int i = 0; i < part.shape.rank(); ++i) {
    const int64_t whole = whole_strides[i < axis ? i : i + 1];
    dims.push_back(part_is_source ? CopyDim{part.shape[i], part_strides[i], whole}
                                  : CopyDim{part.shape[i], whole, part_strides[i]});
  }
  return dims;
}

// Infer and kernel of stack: arguments of slot 0 become one.
inline absl::Status InferStack(InferContext& ctx) {
  const absl::Span<const Tensor* const> inputs = ctx.inputs(kX);
  if (inputs.empty()) return InvalidArgument("'X' has no argument");
  INTERP_RETURN_IF_ERROR(CheckAllPresent(inputs, "X"));
  const Shape& part = inputs[0]->shape;
  if (part.rank() == kMaxRank) return InvalidArgument("'X' has rank ", kMaxRank, " already");
  INTERP_ASSIGN_OR_RETURN(const int axis,
                          ResolveAxis(ctx.attrs<StackAttrs>().axis, part.rank() + 1));
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (!(inputs[i]->shape == part)) {
      return InvalidArgument("'X' argument ", i, " has shape ", ToString(inputs[i]->shape),
                             ", expected that of argument 0, ", ToString(part));
    }
  }
  Shape shape;
  for (int i = 0; i <= part.rank(); ++i) {
    if (i == axis) shape.push_back(static_cast<int64_t>(inputs.size()));
    if (i < part.rank()) shape.push_back(part[i]);
  }
  ctx.output(kOut).shape = shape;
  ShareLod(*inputs[0], ctx.output(kOut));
  return absl::OkStatus();
}

inline absl::Status Stack(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const int axis,
                          ResolveAxis(ctx.attrs<StackAttrs>().axis, out.shape.rank()));
  const Strides to = StridesOf(out);
  int64_t offset = 0;
  for (const Tensor* x : ctx.inputs(kX)) {
    INTERP_RETURN_IF_ERROR(CopyStrided(
        ctx, PartDims(*x, StridesOf(*x), to, axis, /*part_is_source=*/true), {*x}, {out, offset}));
    offset += to[axis];
  }
  return absl::OkStatus();
}

// Infer and kernel of unstack: the argument of slot 0 becomes many, of which some may be unwanted.
inline absl::Status InferUnstack(InferContext& ctx) {
  const StackAttrs& attrs = ctx.attrs<StackAttrs>();
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(attrs.axis, x.shape.rank()));
  const absl::Span<Tensor* const> outputs = ctx.outputs(kOut);
  const int64_t expected = attrs.num > 0 ? attrs.num : static_cast<int64_t>(outputs.size());
  if (x.shape[axis] != expected || expected != static_cast<int64_t>(outputs.size())) {
    return InvalidArgument("'X' has length ", x.shape[axis], " along axis ", axis, ", expected ",
                           expected, " for ", outputs.size(), " outputs");
  }
  Shape part;
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (i != axis) part.push_back(x.shape[i]);
  }
  for (Tensor* out : outputs) {
    if (out == nullptr) continue;
    out->shape = part;
    out->lod.clear();
  }
  return absl::OkStatus();
}

inline absl::Status Unstack(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const int axis,
                          ResolveAxis(ctx.attrs<StackAttrs>().axis, x.shape.rank()));
  const Strides from = StridesOf(x);
  int64_t offset = 0;
  for (Tensor* out : ctx.outputs(kOut)) {
    if (out != nullptr) {
      INTERP_RETURN_IF_ERROR(
          CopyStrided(ctx, PartDims(*out, StridesOf(*out), from, axis, /*part_is_source=*/false),
                      {x, offset}, {*out}));
    }
    offset += from[axis];
  }
  return absl::OkStatus();
}

}  // namespace interp::stacking
