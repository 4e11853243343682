// int8_fc: the product of rows of int8 and of weights that are, or are to be, quantised:
//   Out = activation(sums * InputScale * FilterScale / range + Bias)
// for the matrices that fc (matmul.cc) would multiply, with its attributes, of which
// in_num_col_dims may be -1, all dims but the last; Int8Attrs (int8_weights.h) has the others. With
// OutputScale, Out is that result on a grid, as int8; else it is float32. Made by the pass `int8`.
#include "kernels/conv/int8_conv.h"
#include "kernels/product/matmul.h"
#include "kernels/util/flops.h"

namespace interp::nn {
namespace {

constexpr int kInput = 0;
constexpr int kW = 1;
constexpr int kBias = 2;
constexpr int kInputScale = 3;
constexpr int kFilterScale = 4;
constexpr int kOutputScale = 5;
constexpr int kOut = 0;

struct Int8FcAttrs {
  MatmulAttrs matmul;
  Int8Attrs int8;
};

Int8FcAttrs ReadInt8FcAttrs(AttrReader& reader) { return {ReadFc(reader), ReadInt8Attrs(reader)}; }

// Rows are the pixels of one image.
ConvProblem AsConvolution(const Product& product) {
  ConvProblem problem;
  problem.batch = 1;
  problem.in_channels = product.k;
  problem.out_channels = product.n;
  problem.window.rank = 2;
  problem.window[0].in = problem.window[0].out = product.m;
  problem.window[1].in = problem.window[1].out = 1;
  return problem;
}

bool WeightsStay(const KernelContext& ctx) {
  return ctx.input_is_constant(kW) && AbsentOrConstant(ctx, kBias) &&
         AbsentOrConstant(ctx, kFilterScale);
}

bool ScalesStay(const KernelContext& ctx) {
  return ctx.input_is_constant(kInputScale) && AbsentOrConstant(ctx, kOutputScale);
}

absl::StatusOr<std::shared_ptr<const Int8Weights>> MakeWeights(const KernelContext& ctx) {
  const Tensor& w = ctx.input(kW);
  const ChannelView view = {.outer = w.shape[0], .channels = w.shape[1]};
  INTERP_ASSIGN_OR_RETURN(Int8Weights weights,
                          QuantizeWeights(ctx.attrs<Int8FcAttrs>().int8, view, DenseFilter(w),
                                          ctx.optional_input(kFilterScale)));
  weights.bias.assign(weights.factors.size(), 0);
  if (const Tensor* bias = ctx.optional_input(kBias)) weights.bias = ChannelValues(*bias);
  NeutralizeZeroFactors(weights);
  return std::make_shared<const Int8Weights>(std::move(weights));
}

template <typename Out>
absl::Status RunAs(const KernelContext& ctx, const Product& product) {
  const auto& attrs = ctx.attrs<Int8FcAttrs>();
  auto& state = ctx.state<Int8State>();
  const bool weights_stay = WeightsStay(ctx);
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const Int8Weights> weights,
                          WeightsOf(ctx, weights_stay, [&] { return MakeWeights(ctx); }));
  FillEpilogue(*weights, ctx.input(kInputScale), ctx.optional_input(kOutputScale), attrs.int8,
               state.epilogue);
  state.epilogue.activation = attrs.matmul.activation;
  const ConvProblem problem = AsConvolution(product);
  const Int8Conv::Case current = {problem, *weights, state.epilogue, weights_stay, ScalesStay(ctx)};
  return state.conv.Run(ctx, current, ctx.input(kInput).data<int8_t>(),
                        ctx.output(kOut).mutable_data<Out>());
}

absl::Status Run(KernelContext& ctx) {
  if (ctx.output(kOut).numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(
      const ResolvedProduct resolved,
      ResolveMatmul(ctx.attrs<Int8FcAttrs>().matmul, ctx.input(kInput).shape, ctx.input(kW).shape));
  if (ctx.output(kOut).dtype == DType::kInt8) return RunAs<int8_t>(ctx, resolved.product);
  return RunAs<float>(ctx, resolved.product);
}

absl::Status CheckVectors(const InferContext& ctx, int64_t columns) {
  const Tensor* const bias = ctx.optional_input(kBias);
  if (bias != nullptr && (bias->dtype != DType::kFloat32 || bias->numel() != columns)) {
    return InvalidArgument("input 'Bias' is ", DescribeType(*bias), ", expected float32[", columns,
                           "]");
  }
  const Tensor* const scale = ctx.optional_input(kFilterScale);
  if (scale != nullptr && scale->dtype != DType::kFloat32) {
    return InvalidArgument("input 'FilterScale' is ", DescribeType(*scale), ", expected float32");
  }
  INTERP_RETURN_IF_ERROR(CheckInt8Scale(ctx.optional_input(kInputScale), "InputScale"));
  return CheckInt8Scale(ctx.optional_input(kOutputScale), "OutputScale");
}

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<Int8FcAttrs>();
  const Tensor& input = ctx.input(kInput);
  const Tensor& w = ctx.input(kW);
  if (w.shape.rank() != 2 || (w.dtype != DType::kFloat32 && w.dtype != DType::kInt8)) {
    return InvalidArgument("input 'W' is ", DescribeType(w),
                           ", expected a matrix of float32 or int8");
  }
  INTERP_ASSIGN_OR_RETURN(const ResolvedProduct resolved,
                          ResolveMatmul(attrs.matmul, input.shape, w.shape));
  if (resolved.product.k < 1 || resolved.product.k > kLongestInt8Sum) {
    return InvalidArgument("input 'W' has shape ", ToString(w.shape), ", expected 1 to ",
                           kLongestInt8Sum, " rows: longer sums do not fit int32");
  }
  INTERP_RETURN_IF_ERROR(CheckVectors(ctx, w.shape[1]));
  ctx.output(kOut).shape = resolved.out;
  ctx.output(kOut).lod = attrs.matmul.keeps_lod ? input.lod : Lod();
  return absl::OkStatus();
}

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kOut, ctx.input(kOutputScale) == DType::kUndefined ? DType::kFloat32 : DType::kInt8);
}

int64_t Flops(const OpContext& ctx) {
  return ToFlops(2.0 * static_cast<double>(ctx.output(kOut).numel()) *
                 static_cast<double>(ctx.input(kW).shape[0]));
}

INTERP_REGISTER_OP(OpDef{
    .type = "int8_fc",
    .inputs = {{"Input"},
               {"W", kAnyDType},
               {"Bias", kOptional | kAnyDType},
               {"InputScale", kAnyDType},
               {"FilterScale", kOptional | kAnyDType},
               {"OutputScale", kOptional | kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Int8FcAttrs, ReadInt8FcAttrs>,
    .infer_dtype = InferDTypes,
    .infer = Infer,
    .kernels = {{DType::kInt8, Run}},
    .flops = Flops,
});

}  // namespace
}  // namespace interp::nn
