// flatten, flatten2: Out = X as a matrix; dimensions before `axis` make the rows.
// flatten_contiguous_range: Out = X with dimensions `start_axis` to `stop_axis` merged into one.
#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kXShape = 1;

absl::Status Flatten(KernelContext& ctx) {
  return CopyUnlessShared(ctx, ctx.input(kX), ctx.output(kOut));
}

// LoD describes rows, so it stays as long as these do.
void SetFlatShape(InferContext& ctx, const Shape& shape) {
  const Tensor& x = ctx.input(kX);
  ctx.SetShape(kOut, shape);
  if (x.shape.rank() > 0 && x.shape[0] == shape[0]) ctx.output(kOut).lod = x.lod;
}

namespace matrix {

struct Attrs {
  int64_t axis = 1;
};

Attrs Read(AttrReader& reader) { return {reader.Long("axis", 1)}; }

absl::Status Infer(InferContext& ctx) {
  const int64_t axis = ctx.attrs<Attrs>().axis;
  const Shape& x = ctx.input(kX).shape;
  if (axis < 0 || axis > x.rank()) {
    return InvalidArgument("'axis' is ", axis, ", expected 0 to the rank ", x.rank());
  }
  const int split = static_cast<int>(axis);
  // A scalar makes a vector, as with Paddle.
  SetFlatShape(ctx, x.rank() == 0 ? Shape{1} : Shape{x.numel(0, split), x.numel(split, x.rank())});
  return absl::OkStatus();
}

absl::Status Infer2(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(Infer(ctx));
  return SetXShape(ctx, kXShape, ctx.input(kX));
}

OpDef Def(absl::string_view type, std::vector<SlotDef> outputs,
          absl::Status (*infer)(InferContext&), absl::string_view gradient_shape) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = std::move(outputs),
      .parse = ParseAttrs<Attrs, Read>,
      .infer = infer,
      .kernels = MoveKernels(Flatten),
      .view = {{kX, kOut}},
      .gradient = {.inputs = {gradient_shape, "Out@GRAD"}, .outputs = {"X@GRAD"}},
  };
}

INTERP_REGISTER_OP(Def("flatten", {{"Out"}}, Infer, "X"));
INTERP_REGISTER_OP(Def("flatten2", {{"Out"}, {"XShape", kOptional}}, Infer2, "XShape"));

}  // namespace matrix

namespace range {

struct Attrs {
  int64_t start_axis = 1;
  int64_t stop_axis = 1;
};

Attrs Read(AttrReader& reader) {
  return {reader.Long("start_axis", 1), reader.Long("stop_axis", 1)};
}

absl::StatusOr<Shape> Merged(const Shape& x, const Attrs& attrs) {
  if (x.rank() == 0) return Shape{1};
  INTERP_ASSIGN_OR_RETURN(const int start, ResolveAxis(attrs.start_axis, x.rank(), "start_axis"));
  INTERP_ASSIGN_OR_RETURN(const int stop, ResolveAxis(attrs.stop_axis, x.rank(), "stop_axis"));
  if (stop < start) {
    return InvalidArgument("'stop_axis' ", stop, " is before 'start_axis' ", start);
  }
  Shape shape;
  for (int i = 0; i < start; ++i) shape.push_back(x[i]);
  shape.push_back(x.numel(start, stop + 1));
  for (int i = stop + 1; i < x.rank(); ++i) shape.push_back(x[i]);
  return shape;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, Merged(ctx.input(kX).shape, ctx.attrs<Attrs>()));
  SetFlatShape(ctx, shape);
  return SetXShape(ctx, kXShape, ctx.input(kX));
}

INTERP_REGISTER_OP(OpDef{
    .type = "flatten_contiguous_range",
    .inputs = {{"X"}},
    .outputs = {{"Out"}, {"XShape", kOptional}},
    .parse = ParseAttrs<Attrs, Read>,
    .infer = Infer,
    .kernels = MoveKernels(Flatten),
    .view = {{kX, kOut}},
    .gradient = {.inputs = {"XShape", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace range
}  // namespace
}  // namespace interp
