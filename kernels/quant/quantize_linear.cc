// quantize_linear: Y = X on the grid of whole numbers that Scale spans, per tensor (quant_axis -1)
// or per channel. In training the scale is observed: a moving average per tensor, the largest
// magnitude per channel.
// dequantize_linear: Y = X * Scale / (2^(bit_length - 1) - 1); X may be int8.
// With `only_observer`, Y = X. ZeroPoint is always 0 and not read.
#include "core/op_def.h"
#include "kernels/quant/quantize.h"
#include "kernels/quant/quantize_gradient.h"
#include "kernels/util/copy.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kInAccum = 3;
constexpr int kInState = 4;
constexpr int kY = 0;
constexpr int kOutState = 1;
constexpr int kOutAccum = 2;
constexpr int kOutScale = 3;

struct LinearAttrs {
  QuantGrid grid;
  int64_t axis = 0;  // -1: one scale for all
  bool is_test = true;
  bool only_observer = false;
  float rate = 0.9f;
};

LinearAttrs ReadLinearAttrs(AttrReader& reader) {
  LinearAttrs attrs;
  attrs.grid = ReadQuantGrid(reader, /*default_round_type=*/0);
  attrs.axis = reader.Int("quant_axis", 0);
  attrs.is_test = reader.Bool("is_test", true);
  attrs.only_observer = reader.Bool("only_observer", false);
  attrs.rate = reader.Float("moving_rate", 0.9f);
  if (attrs.axis < -1) reader.Fail("attribute 'quant_axis' is below -1");
  return attrs;
}

// The number of scales: one, or one per channel.
absl::StatusOr<int64_t> CountScales(const OpContext& ctx) {
  const int64_t axis = ctx.attrs<LinearAttrs>().axis;
  if (axis < 0) return 1;
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const int resolved, ResolveAxis(axis, x.rank(), "quant_axis"));
  return x[resolved];
}

absl::Status CheckScale(const OpContext& ctx, int64_t count) {
  const Tensor& scale = ctx.input(kScale);
  if (scale.numel() == count) return absl::OkStatus();
  return InvalidArgument("'Scale' has shape ", ToString(scale.shape), ", expected ", count,
                         " elements");
}

absl::Status InferQuantize(InferContext& ctx) {
  const LinearAttrs& attrs = ctx.attrs<LinearAttrs>();
  INTERP_ASSIGN_OR_RETURN(const int64_t count, CountScales(ctx));
  if (attrs.is_test) {
    INTERP_RETURN_IF_ERROR(CheckScale(ctx, count));
  } else if (attrs.axis < 0) {
    for (const int slot : {kInAccum, kInState}) {
      if (!ctx.has_input(slot) || ctx.input(slot).numel() != 1) {
        return InvalidArgument("training needs 'InAccum' and 'InState' of one element");
      }
    }
  }
  ctx.ShareShape(kX, kY);
  ctx.SetShape(kOutScale, {count});
  for (const int slot : {kOutState, kOutAccum}) ctx.SetShape(slot, {1});
  return absl::OkStatus();
}

void Store(Tensor* tensor, absl::Span<const float> values) {
  if (tensor == nullptr || values.empty()) return;
  std::memmove(tensor->mutable_raw_data(), values.data(), values.size() * sizeof(float));
}

struct ObserverState : KernelState {
  std::vector<float> scales;
};

// The scales of this run, observed from X.
const std::vector<float>& Observe(KernelContext& ctx, const ChannelView& view) {
  std::vector<float>& scales = ctx.state<ObserverState>().scales;
  scales.resize(view.channels);
  AbsMax(ctx.num_threads(), view, ctx.input(kX).data<float>(), scales.data());
  const LinearAttrs& attrs = ctx.attrs<LinearAttrs>();
  if (attrs.axis >= 0) return scales;
  const MovingScale next = NextScale(attrs.rate, *ctx.input(kInState).data<float>(),
                                     *ctx.input(kInAccum).data<float>(), scales[0]);
  scales[0] = next.scale;
  Store(ctx.optional_output(kOutState), {&next.state, 1});
  Store(ctx.optional_output(kOutAccum), {&next.accum, 1});
  return scales;
}

absl::Status QuantizeLinear(KernelContext& ctx) {
  const LinearAttrs& attrs = ctx.attrs<LinearAttrs>();
  const Tensor& x = ctx.input(kX);
  const ChannelView view = ViewChannels(x, static_cast<int>(attrs.axis));
  absl::Span<const float> scales;
  if (attrs.is_test) {
    scales = absl::MakeConstSpan(ctx.input(kScale).data<float>(), ctx.input(kScale).numel());
  } else {
    scales = Observe(ctx, view);
  }
  if (attrs.only_observer) {
    CopyUnlessShared(x, ctx.output(kY));
  } else {
    Quantize(ctx.num_threads(), view, attrs.grid, x.data<float>(), scales.data(),
             ctx.output(kY).mutable_data<float>());
  }
  Store(ctx.optional_output(kOutScale), scales);
  return absl::OkStatus();
}

std::vector<SlotDef> LinearInputs(int x_flags) {
  return {{"X", x_flags},
          {"Scale"},
          {"ZeroPoint", kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout},
          {"InAccum", kOptional},
          {"InState", kOptional}};
}

std::vector<SlotDef> LinearOutputs() {
  return {{"Y"}, {"OutState", kOptional}, {"OutAccum", kOptional}, {"OutScale", kOptional}};
}

INTERP_REGISTER_OP(OpDef{
    .type = "quantize_linear",
    .inputs = LinearInputs(0),
    .outputs = LinearOutputs(),
    .parse = ParseAttrs<LinearAttrs, ReadLinearAttrs>,
    .infer = InferQuantize,
    .kernels = {{DType::kFloat32, QuantizeLinear}},
    .layout = LayoutRule::kFollows,
    .gradient = QuantizeGradient(/*dequantizes=*/false),
});

DType DequantizeDType(const DTypeContext& ctx) { return ctx.input(kScale); }

absl::Status InferDequantize(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int64_t count, CountScales(ctx));
  INTERP_RETURN_IF_ERROR(CheckScale(ctx, count));
  const DType x = ctx.input(kX).dtype;
  const DType y = ctx.output(kY).dtype;
  if (x != y && (x != DType::kInt8 || ctx.attrs<LinearAttrs>().only_observer)) {
    return InvalidArgument("'X' is ", DescribeType(ctx.input(kX)), ", expected ", Name(y),
                           " or int8");
  }
  ctx.ShareShape(kX, kY);
  ctx.SetShape(kOutScale, {count});
  for (const int slot : {kOutState, kOutAccum}) ctx.SetShape(slot, {1});
  return absl::OkStatus();
}

template <typename In, typename T>
void DequantizeAs(KernelContext& ctx) {
  const LinearAttrs& attrs = ctx.attrs<LinearAttrs>();
  const Tensor& x = ctx.input(kX);
  Dequantize<In, T>(ctx.num_threads(), ViewChannels(x, static_cast<int>(attrs.axis)), x.data<In>(),
                    ctx.input(kScale).data<T>(), T{1}, static_cast<T>(attrs.grid.bins),
                    ctx.output(kY).mutable_data<T>());
}

template <typename T>
absl::Status DequantizeLinear(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  if (ctx.attrs<LinearAttrs>().only_observer) {
    CopyUnlessShared(x, ctx.output(kY));
  } else if (x.dtype == DType::kInt8) {
    DequantizeAs<int8_t, T>(ctx);
  } else {
    DequantizeAs<T, T>(ctx);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "dequantize_linear",
    .inputs = LinearInputs(kAnyDType),
    .outputs = LinearOutputs(),
    .parse = ParseAttrs<LinearAttrs, ReadLinearAttrs>,
    .kernel_dtype = DequantizeDType,
    .infer = InferDequantize,
    .kernels = {{DType::kFloat32, DequantizeLinear<float>},
                {DType::kFloat64, DequantizeLinear<double>}},
    .layout = LayoutRule::kFollows,
    .gradient = QuantizeGradient(/*dequantizes=*/false),
});

}  // namespace
}  // namespace interp
