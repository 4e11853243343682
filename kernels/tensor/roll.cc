// roll: Out = X shifted by `shifts` along the dimensions `axis`; what falls out at the end comes in
// at the front. Without `axis`, X is shifted as one long vector. roll_grad shifts Out@GRAD back.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr IntSlots kShifts = {.name = "shifts", .tensor = 1};

struct RollAttrs {
  IntList shifts;
  IntList axis;
  bool back = false;  // the gradient shifts the other way
};

template <bool kBack>
RollAttrs ReadRollAttrs(AttrReader& reader) {
  // Before Paddle 2.0 `axis` is `dims`.
  return {ReadIntListAttr(reader, "shifts"),
          ReadIntListAttr(reader, reader.Has("axis") ? "axis" : "dims"), kBack};
}

// How far each dimension moves, in [0, length).
absl::StatusOr<Shape> FindShifts(const OpContext& ctx, const Shape& shape) {
  const RollAttrs& attrs = ctx.attrs<RollAttrs>();
  INTERP_ASSIGN_OR_RETURN(const IntList shifts, ReadIntList(ctx, kShifts, attrs.shifts));
  const IntList flat_axis = {0};
  const IntList& axes = attrs.axis.empty() ? flat_axis : attrs.axis;
  if (shifts.size() != axes.size()) {
    return InvalidArgument("'shifts' has ", shifts.size(), " entries for ", axes.size(), " axes");
  }
  Shape moved;
  moved.resize(shape.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(axes[i], shape.rank()));
    const int64_t length = std::max<int64_t>(shape[axis], 1);
    moved[axis] = ((moved[axis] + shifts[i] % length) % length + length) % length;
  }
  for (int i = 0; attrs.back && i < shape.rank(); ++i) {
    if (moved[i] != 0) moved[i] = shape[i] - moved[i];
  }
  return moved;
}

// The dimensions to roll: those of X, or a single one when it is taken as a vector.
Shape RolledShape(const OpContext& ctx) {
  const Shape& shape = ctx.input(kX).shape;
  return ctx.attrs<RollAttrs>().axis.empty() ? Shape{shape.numel()} : shape;
}

absl::Status InferRoll(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(FindShifts(ctx, RolledShape(ctx)).status());
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

// The LoD is that of X itself.
absl::Status InferRollGrad(InferContext& ctx) {
  constexpr int kRolled = 2;
  INTERP_RETURN_IF_ERROR(InferRoll(ctx));
  if (const Tensor* x = ctx.optional_input(kRolled)) ShareLod(*x, ctx.output(kOut));
  return absl::OkStatus();
}

// Copies the boxes of dimensions `d` and up: each moved dimension falls into the part that moves
// back and the part that comes in at the front.
absl::Status CopyParts(KernelContext& ctx, const Shape& shape, const Shape& moved,
                       const Strides& strides, int d, int64_t source, int64_t target,
                       CopyDims& dims) {
  if (d == shape.rank()) {
    return CopyStrided(ctx, dims, {ctx.input(kX), source}, {ctx.output(kOut), target});
  }
  const int64_t stays = shape[d] - moved[d];
  dims.push_back({stays, strides[d], strides[d]});
  INTERP_RETURN_IF_ERROR(
      CopyParts(ctx, shape, moved, strides, d + 1, source, target + moved[d] * strides[d], dims));
  if (moved[d] > 0) {
    dims.back().size = moved[d];
    INTERP_RETURN_IF_ERROR(
        CopyParts(ctx, shape, moved, strides, d + 1, source + stays * strides[d], target, dims));
  }
  dims.pop_back();
  return absl::OkStatus();
}

absl::Status Roll(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Shape shape = RolledShape(ctx);
  INTERP_ASSIGN_OR_RETURN(const Shape moved, FindShifts(ctx, shape));
  const bool flat = ctx.attrs<RollAttrs>().axis.empty();
  const Strides strides = StridesOf(shape, flat ? Layout::kPlain : x.layout);
  CopyDims dims;
  return CopyParts(ctx, shape, moved, strides, 0, 0, 0, dims);
}

// Plain: as a vector, X has the logical order.
INTERP_REGISTER_OP(OpDef{
    .type = "roll",
    .inputs = {{"X"}, {"ShiftsTensor", kOptional | kAnyDType | kValueInInfer}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<RollAttrs, ReadRollAttrs<false>>,
    .infer = InferRoll,
    .kernels = MoveKernels(Roll),
    .gradient = {.inputs = {"X", "ShiftsTensor", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "roll_grad",
    .inputs = {{"Out@GRAD"},
               {"ShiftsTensor", kOptional | kAnyDType | kValueInInfer},
               {"X", kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<RollAttrs, ReadRollAttrs<true>>,
    .infer = InferRollGrad,
    .kernels = MoveKernels(Roll),
});

}  // namespace
}  // namespace interp
