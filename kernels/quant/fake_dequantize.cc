// fake_dequantize_max_abs: Out = X * Scale / max_range.
// fake_channel_wise_dequantize_max_abs: Out = X * Scales[0][channel] [* Scales[1]] / range, where
// the range is the product of the grids that `quant_bits` span. One scale: channels lie along
// `quant_axis` (weights); two: along `x_num_col_dims` (outputs of a quantised op).
#include "core/op_def.h"
#include "kernels/quant/quantize.h"
#include "kernels/quant/quantize_gradient.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kScales = 1;
constexpr int kOut = 0;

struct DequantizeAttrs {
  float max_range = 0;
  IntList quant_bits;
  int64_t quant_axis = 0;
  int64_t x_num_col_dims = 1;
};

DequantizeAttrs ReadDequantizeAttrs(AttrReader& reader) {
  DequantizeAttrs attrs;
  attrs.max_range = reader.Float("max_range", 0.0f);
  const std::vector<int64_t> bits = reader.Ints("quant_bits", {8});
  attrs.quant_bits.assign(bits.begin(), bits.end());
  for (const int64_t b : bits) {
    if (b < 1 || b > 32) reader.Fail(absl::StrCat("attribute 'quant_bits' has the entry ", b));
  }
  attrs.quant_axis = reader.Int("quant_axis", 0);
  attrs.x_num_col_dims = reader.Int("x_num_col_dims", 1);
  return attrs;
}

absl::Status InferMaxAbs(InferContext& ctx) {
  if (ctx.input(kScales).numel() != 1) {
    return InvalidArgument("'Scale' is ", DescribeType(ctx.input(kScales)),
                           ", expected one element");
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status MaxAbs(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const T range = static_cast<T>(ctx.attrs<DequantizeAttrs>().max_range);
  Dequantize<T, T>(ctx.num_threads(), ViewChannels(x, -1), x.data<T>(),
                   ctx.input(kScales).data<T>(), T{1}, range, ctx.output(kOut).mutable_data<T>());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fake_dequantize_max_abs",
    .inputs = {{"X"}, {"Scale"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<DequantizeAttrs, ReadDequantizeAttrs>,
    .infer = InferMaxAbs,
    .kernels = {{DType::kFloat32, MaxAbs<float>}, {DType::kFloat64, MaxAbs<double>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}},
    .gradient = QuantizeGradient(/*dequantizes=*/false),
});

absl::StatusOr<int> ChannelAxis(const OpContext& ctx) {
  const DequantizeAttrs& attrs = ctx.attrs<DequantizeAttrs>();
  const bool two = ctx.inputs(kScales).size() == 2;
  return ResolveAxis(two ? attrs.x_num_col_dims : attrs.quant_axis, ctx.input(kX).shape.rank(),
                     two ? "x_num_col_dims" : "quant_axis");
}

absl::Status InferChannelWise(InferContext& ctx) {
  const absl::Span<const Tensor* const> scales = ctx.inputs(kScales);
  if (scales.empty() || scales.size() > 2 ||
      scales.size() > ctx.attrs<DequantizeAttrs>().quant_bits.size()) {
    return InvalidArgument("'Scales' has ", scales.size(),
                           " arguments, expected one or two and as many 'quant_bits'");
  }
  INTERP_ASSIGN_OR_RETURN(const int axis, ChannelAxis(ctx));
  const Shape& x = ctx.input(kX).shape;
  for (size_t i = 0; i < scales.size(); ++i) {
    const int64_t expected = i == 0 ? x[axis] : 1;
    if (scales[i] == nullptr || scales[i]->numel() != expected) {
      return InvalidArgument("'Scales' argument ", i, " does not have ", expected, " elements");
    }
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status ChannelWise(KernelContext& ctx) {
  const absl::Span<const Tensor* const> scales = ctx.inputs(kScales);
  INTERP_ASSIGN_OR_RETURN(const int axis, ChannelAxis(ctx));
  double range = 1;
  for (size_t i = 0; i < scales.size(); ++i) {
    range *= static_cast<double>(BinsOf(ctx.attrs<DequantizeAttrs>().quant_bits[i]));
  }
  const T factor = scales.size() == 2 ? *scales[1]->data<T>() : T{1};
  const Tensor& x = ctx.input(kX);
  Dequantize<T, T>(ctx.num_threads(), ViewChannels(x, axis), x.data<T>(), scales[0]->data<T>(),
                   factor, static_cast<T>(range), ctx.output(kOut).mutable_data<T>());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fake_channel_wise_dequantize_max_abs",
    .inputs = {{"X"}, {"Scales", kVariadic}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<DequantizeAttrs, ReadDequantizeAttrs>,
    .infer = InferChannelWise,
    .kernels = {{DType::kFloat32, ChannelWise<float>}, {DType::kFloat64, ChannelWise<double>}},
    .layout = LayoutRule::kFollows,
    .inplace = {{kX, kOut}},
    .gradient = QuantizeGradient(/*dequantizes=*/false),
});

}  // namespace
}  // namespace interp
