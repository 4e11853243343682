// expand_v2, expand_as_v2: Out = X repeated along its dimensions of length 1 up to a given shape,
// which may have more dimensions in front.
// expand_as (Paddle 1): Out = X repeated as a whole along every dimension, to the shape of another
// tensor.
// expand, tile: Out = X repeated a given number of times along every dimension.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

// LoD describes rows, so it stays as long as these do.
void SetExpandedShape(InferContext& ctx, const Shape& shape) {
  const Tensor& x = ctx.input(kX);
  ctx.SetShape(kOut, shape);
  if (x.shape.rank() > 0 && x.shape[0] == shape[0]) ctx.output(kOut).lod = x.lod;
}

// Copies X to Out, which has as many dimensions or more; in each of them Out is a multiple of X.
absl::Status Repeat(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  const Strides from = StridesOf(x);
  const Strides to = StridesOf(out);
  const int added = out.shape.rank() - x.shape.rank();
  if (out.numel() == 0) return absl::OkStatus();
  CopyDims dims;
  for (int i = 0; i < out.shape.rank(); ++i) {
    const int64_t length = i < added ? 1 : x.shape[i - added];
    dims.push_back({out.shape[i] / length, 0, length * to[i]});
    if (i >= added) dims.push_back({length, from[i - added], to[i]});
  }
  return CopyStrided(ctx, dims, {x}, {out});
}

struct ExpandAttrs {
  IntList sizes;
};

template <const char* kName>
ExpandAttrs ReadExpandAttrs(AttrReader& reader) {
  return {ReadIntListAttr(reader, kName)};
}

constexpr char kShapeName[] = "shape";
constexpr char kTargetShapeName[] = "target_shape";
constexpr char kRepeatTimesName[] = "repeat_times";
constexpr char kExpandTimesName[] = "expand_times";

// The shape X expands to: -1 keeps a dimension of X.
absl::StatusOr<Shape> Expanded(const Shape& x, const IntList& wanted) {
  if (wanted.size() > kMaxRank || static_cast<int>(wanted.size()) < x.rank()) {
    return InvalidArgument("target shape has ", wanted.size(), " dims, expected ", x.rank(), " to ",
                           kMaxRank);
  }
  Shape shape(wanted);
  const int added = shape.rank() - x.rank();
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1 && i >= added) shape[i] = x[i - added];
    const int64_t length = i < added ? 1 : x[i - added];
    if (shape[i] < 0 || (length != 1 && shape[i] != length)) {
      return InvalidArgument("'X' of shape ", ToString(x), " does not expand to ",
                             ToString(Shape(wanted)));
    }
  }
  return shape;
}

// The shape of X repeated times[i] times along dimension i; the shorter of both gets 1s in front.
absl::StatusOr<Shape> Tiled(const Shape& x, const IntList& times) {
  if (times.size() > kMaxRank) {
    return InvalidArgument("repeats have ", times.size(), " entries, expected at most ", kMaxRank);
  }
  const int given = static_cast<int>(times.size());
  const int rank = std::max(x.rank(), given);
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    const int from_end = rank - i;
    const int64_t length = from_end <= x.rank() ? x.back(from_end) : 1;
    const int64_t repeats = from_end <= given ? times[given - from_end] : 1;
    if (repeats <= 0) return InvalidArgument("repeats have the entry ", repeats);
    INTERP_ASSIGN_OR_RETURN(const int64_t dim, CheckedProduct(length, repeats));
    shape.push_back(dim);
  }
  return shape;
}

constexpr int kTensorFlags = kOptional | kAnyDType | kValueInInfer;
constexpr IntSlots kSizes = {.name = "shape", .tensor = 1, .list = 2};

absl::Status InferExpandV2(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const IntList wanted,
                          ReadIntList(ctx, kSizes, ctx.attrs<ExpandAttrs>().sizes));
  INTERP_ASSIGN_OR_RETURN(const Shape shape, Expanded(ctx.input(kX).shape, wanted));
  SetExpandedShape(ctx, shape);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "expand_v2",
    .inputs = {{"X"}, {"Shape", kTensorFlags}, {"expand_shapes_tensor", kTensorFlags | kVariadic}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<ExpandAttrs, ReadExpandAttrs<kShapeName>>,
    .infer = InferExpandV2,
    .kernels = MoveKernels(Repeat),
    .layout = LayoutRule::kFollows,
    .gradient = {.inputs = {"X", "Shape", "expand_shapes_tensor", "Out@GRAD"},
                 .outputs = {"X@GRAD"}},
});

constexpr int kY = 1;

// Y only fills in what `target_shape` leaves open.
absl::Status InferExpandAsV2(InferContext& ctx) {
  IntList wanted = ctx.attrs<ExpandAttrs>().sizes;
  if (const Tensor* y = ctx.optional_input(kY)) {
    if (wanted.empty()) wanted.assign(y->shape.begin(), y->shape.end());
    for (size_t i = 0; i < wanted.size() && static_cast<int>(i) < y->shape.rank(); ++i) {
      if (wanted[i] == -1) wanted[i] = y->shape[static_cast<int>(i)];
    }
  }
  INTERP_ASSIGN_OR_RETURN(const Shape shape, Expanded(ctx.input(kX).shape, wanted));
  ctx.SetShape(kOut, shape);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "expand_as_v2",
    .inputs = {{"X"}, {"Y", kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<ExpandAttrs, ReadExpandAttrs<kTargetShapeName>>,
    .infer = InferExpandAsV2,
    .kernels = MoveKernels(Repeat),
    .layout = LayoutRule::kFollows,
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

// Every dimension of the target is a multiple of that of X.
absl::Status InferExpandAs(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& target = ctx.input(kY).shape;
  bool fits = x.rank() == target.rank();
  for (int i = 0; fits && i < x.rank(); ++i) {
    fits = x[i] == 0 ? target[i] == 0 : target[i] % x[i] == 0;
  }
  if (!fits) {
    return InvalidArgument("input 'target_tensor' has shape ", ToString(target),
                           ", expected multiples of that of 'X', ", ToString(x));
  }
  SetExpandedShape(ctx, target);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "expand_as",
    .inputs = {{"X"}, {"target_tensor", kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"Out"}},
    .infer = InferExpandAs,
    .kernels = MoveKernels(Repeat),
    .layout = LayoutRule::kFollows,
    .gradient = {.inputs = {"X", "target_tensor", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

absl::Status InferTile(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const IntList times,
                          ReadIntList(ctx, kSizes, ctx.attrs<ExpandAttrs>().sizes));
  INTERP_ASSIGN_OR_RETURN(const Shape shape, Tiled(ctx.input(kX).shape, times));
  SetExpandedShape(ctx, shape);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "tile",
    .inputs = {{"X"},
               {"RepeatTimes", kTensorFlags, "repeat_times"},
               {"repeat_times_tensor", kTensorFlags | kVariadic, "repeat_times"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<ExpandAttrs, ReadExpandAttrs<kRepeatTimesName>>,
    .infer = InferTile,
    .kernels = MoveKernels(Repeat),
    .layout = LayoutRule::kFollows,
    .gradient = {.inputs = {"X", "RepeatTimes", "repeat_times_tensor", "Out@GRAD"},
                 .outputs = {"X@GRAD"}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "expand",
    .inputs = {{"X"},
               {"ExpandTimes", kTensorFlags},
               {"expand_times_tensor", kTensorFlags | kVariadic}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<ExpandAttrs, ReadExpandAttrs<kExpandTimesName>>,
    .infer = InferTile,
    .kernels = MoveKernels(Repeat),
    .layout = LayoutRule::kFollows,
    .gradient = {.inputs = {"X", "ExpandTimes", "expand_times_tensor", "Out@GRAD"},
                 .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
