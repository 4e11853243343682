// fused_elementwise_add, _sub, _mul and _div, as Paddle's oneDNN passes fuse them:
//
//   Out = activation(scale_out (X / scale_x op Y / scale_y)) * fused_output_scale
//
// with dimensions of length 1 added at `fused_unsqueeze2_axes`.
#include <functional>

#include "core/op_def.h"
#include "kernels/nn/fused_activation.h"
#include "kernels/util/broadcast.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/view_shapes.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

struct Attrs {
  int axis = kTrailingAxis;
  FusedActivation activation;
  IntList unsqueezed;
  float factor_x = 1;
  float factor_y = 1;
  float factor = 1;         // of the result of op
  float output_factor = 1;  // of the result of the activation
};

// What an operand is multiplied by.
float ReadInverse(AttrReader& reader, absl::string_view name) {
  const float scale = reader.Float(name, 1);
  if (scale == 0) reader.Fail(absl::StrCat("attribute '", name, "' is 0"));
  return 1 / scale;
}

Attrs ReadAttrs(AttrReader& reader) {
  Attrs attrs;
  attrs.axis = reader.Int("axis", kTrailingAxis);
  attrs.activation = ReadActivation(reader, "fuse_activation");
  attrs.unsqueezed = ReadIntListAttr(reader, "fused_unsqueeze2_axes");
  attrs.factor_x = ReadInverse(reader, "scale_x");
  attrs.factor_y = ReadInverse(reader, "scale_y");
  attrs.factor = reader.Float("scale_out", 1);
  attrs.output_factor = reader.Float("fused_output_scale", 1);
  return attrs;
}

absl::StatusOr<Shape> BroadcastShape(const OpContext& ctx) {
  return BroadcastShapes(ctx.input(kX).shape, ctx.input(kY).shape, ctx.attrs<Attrs>().axis);
}

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  INTERP_ASSIGN_OR_RETURN(Shape shape, BroadcastShape(ctx));
  const bool keeps_rows = attrs.unsqueezed.empty();
  if (!keeps_rows) {
    INTERP_ASSIGN_OR_RETURN(shape, Unsqueezed(shape, attrs.unsqueezed));
  }
  ctx.SetShape(kOut, shape);
  if (keeps_rows) ShareLod(ctx.input(kX), ctx.output(kOut));
  return absl::OkStatus();
}

template <typename Op>
absl::Status FusedBinary(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  Tensor& out = ctx.output(kOut);
  if (out.numel() == 0) return absl::OkStatus();
  Tensor whole;  // Out without the dimensions that are added
  INTERP_ASSIGN_OR_RETURN(whole.shape, BroadcastShape(ctx));
  float* const values = out.mutable_data<float>();
  RunBroadcast(PlanBroadcast(x, y, whole, attrs.axis), ctx.num_threads(), x.data<float>(),
               y.data<float>(), values, [&attrs](float a, float b) {
                 return attrs.factor * Op()(a * attrs.factor_x, b * attrs.factor_y);
               });
  if (attrs.activation == FusedActivation() && attrs.output_factor == 1) return absl::OkStatus();
  ParallelFor(ctx.num_threads(), out.numel(), kElementwiseGrain,
              [&attrs, values](int64_t begin, int64_t end) {
                ApplyActivation(attrs.activation, values + begin, end - begin);
                for (int64_t i = begin; i < end; ++i) values[i] *= attrs.output_factor;
              });
  return absl::OkStatus();
}

template <typename Op>
OpDef FusedBinaryDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}, {"Y"}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<Attrs, ReadAttrs>,
      .infer = Infer,
      .kernels = {{DType::kFloat32, FusedBinary<Op>}},
  };
}

INTERP_REGISTER_OP(FusedBinaryDef<std::plus<float>>("fused_elementwise_add"));
INTERP_REGISTER_OP(FusedBinaryDef<std::minus<float>>("fused_elementwise_sub"));
INTERP_REGISTER_OP(FusedBinaryDef<std::multiplies<float>>("fused_elementwise_mul"));
INTERP_REGISTER_OP(FusedBinaryDef<std::divides<float>>("fused_elementwise_div"));

}  // namespace
}  // namespace interp::nn
