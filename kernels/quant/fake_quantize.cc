// fake_quantize_abs_max, fake_channel_wise_quantize_abs_max: Out = X on the grid of whole numbers
// that its own largest magnitude spans, per tensor or per channel; OutScale = that magnitude.
// fake_quantize_range_abs_max: the scale is the largest of the last `window_size` runs.
// fake_quantize_moving_average_abs_max: the scale is a moving average over runs.
// The _dequantize_ forms bring Out back to the range of X, so that only the rounding error stays.
// moving_average_abs_max_scale: only observes the scale; Out = X.
// Everything is float32.
#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "core/op_def.h"
#include "kernels/quant/quantize.h"
#include "kernels/quant/quantize_gradient.h"
#include "kernels/util/copy.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kOutScale = 1;

struct FakeQuantAttrs {
  QuantGrid grid;
  int64_t axis = -1;  // of the channels; -1: one scale for all
  bool is_test = false;
  float rate = 0.9f;
  int64_t window = 10000;
};

// Older programs name no round type and mean half away from zero.
FakeQuantAttrs ReadFakeQuantAttrs(AttrReader& reader) {
  FakeQuantAttrs attrs;
  attrs.grid = ReadQuantGrid(reader, /*default_round_type=*/1);
  attrs.grid.dequantize = absl::StrContains(reader.op().type, "_dequantize_");
  attrs.is_test = reader.Bool("is_test", false);
  attrs.rate = reader.Float("moving_rate", 0.9f);
  attrs.window = reader.Int("window_size", 10000);
  if (attrs.window < 1) reader.Fail("attribute 'window_size' is not positive");
  if (absl::StrContains(reader.op().type, "channel_wise")) {
    attrs.axis = reader.Int("quant_axis", 0);
    if (attrs.axis < 0) reader.Fail("attribute 'quant_axis' is negative");
  }
  return attrs;
}

void QuantizeX(KernelContext& ctx, const ChannelView& view, const float* scales) {
  Quantize(ctx.num_threads(), view, ctx.attrs<FakeQuantAttrs>().grid, ctx.input(kX).data<float>(),
           scales, ctx.output(kOut).mutable_data<float>());
}

float AbsMaxOfX(KernelContext& ctx) {
  float max = 0;
  AbsMax(ctx.num_threads(), ViewChannels(ctx.input(kX), -1), ctx.input(kX).data<float>(), &max);
  return max;
}

absl::Status RequireScalar(const Tensor& tensor, absl::string_view name) {
  if (tensor.numel() == 1) return absl::OkStatus();
  return InvalidArgument("'", name, "' has shape ", ToString(tensor.shape),
                         ", expected one element");
}

namespace abs_max {

absl::Status Infer(InferContext& ctx) {
  ctx.ShareShape(kX, kOut);
  const int64_t axis = ctx.attrs<FakeQuantAttrs>().axis;
  int64_t channels = 1;
  if (axis >= 0) {
    const Shape& x = ctx.input(kX).shape;
    INTERP_ASSIGN_OR_RETURN(const int resolved, ResolveAxis(axis, x.rank(), "quant_axis"));
    channels = x[resolved];
  }
  ctx.SetShape(kOutScale, {channels});
  return absl::OkStatus();
}

absl::Status Run(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const ChannelView view = ViewChannels(x, static_cast<int>(ctx.attrs<FakeQuantAttrs>().axis));
  float* const scales = ctx.output(kOutScale).mutable_data<float>();
  AbsMax(ctx.num_threads(), view, x.data<float>(), scales);
  QuantizeX(ctx, view, scales);
  return absl::OkStatus();
}

OpDef Def(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Out"}, {"OutScale"}},
      .parse = ParseAttrs<FakeQuantAttrs, ReadFakeQuantAttrs>,
      .infer = Infer,
      .kernels = {{DType::kFloat32, Run}},
      .layout = LayoutRule::kFollows,
      .inplace = {{kX, kOut}},
      .gradient = QuantizeGradient(absl::StrContains(type, "_dequantize_")),
  };
}

INTERP_REGISTER_OP(Def("fake_quantize_abs_max"));
INTERP_REGISTER_OP(Def("fake_quantize_dequantize_abs_max"));
INTERP_REGISTER_OP(Def("fake_channel_wise_quantize_dequantize_abs_max"));

// By the scales that training has left. Programs have no InScale: passes/quant/kept_scales.h adds
// it.
constexpr int kInScale = 1;

absl::Status InferByChannel(InferContext& ctx) {
  const Tensor* const given = ctx.optional_input(kInScale);
  if (given == nullptr && !ctx.has_output(kOutScale)) {
    return InvalidArgument("has neither 'InScale' nor 'OutScale', expected one of them");
  }
  INTERP_RETURN_IF_ERROR(Infer(ctx));
  if (given == nullptr) return absl::OkStatus();
  const Shape& x = ctx.input(kX).shape;
  const int64_t channels = x[static_cast<int>(ctx.attrs<FakeQuantAttrs>().axis)];
  if (given->numel() == channels) return absl::OkStatus();
  return InvalidArgument("'InScale' has shape ", ToString(given->shape), ", expected ", channels,
                         " elements, one a channel");
}

absl::Status RunByChannel(KernelContext& ctx) {
  const Tensor* const given = ctx.optional_input(kInScale);
  if (given == nullptr) return Run(ctx);
  QuantizeX(ctx, ViewChannels(ctx.input(kX), static_cast<int>(ctx.attrs<FakeQuantAttrs>().axis)),
            given->data<float>());
  if (Tensor* const scales = ctx.optional_output(kOutScale)) CopyUnlessShared(*given, *scales);
  return absl::OkStatus();
}

OpDef ByChannelDef() {
  OpDef def = Def("fake_channel_wise_quantize_abs_max");
  def.inputs.push_back({"InScale", kOptional});
  def.outputs[kOutScale].flags = kOptional;
  def.infer = InferByChannel;
  def.kernels = {{DType::kFloat32, RunByChannel}};
  return def;
}

INTERP_REGISTER_OP(ByChannelDef());

}  // namespace abs_max

namespace range {

constexpr int kInScale = 1;
constexpr int kIter = 2;
constexpr int kOutScales = 2;

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(RequireScalar(ctx.input(kInScale), "InScale"));
  ctx.ShareShape(kX, kOut);
  ctx.SetShape(kOutScale, {1});
  // A test leaves the ring as it is.
  const FakeQuantAttrs& attrs = ctx.attrs<FakeQuantAttrs>();
  if (!attrs.is_test) ctx.SetShape(kOutScales, {attrs.window});
  return absl::OkStatus();
}

// The largest scale of the window, which OutScales holds as a ring from run to run.
float WindowMax(float last, float current, int64_t iteration, absl::Span<float> window) {
  float& slot = window[iteration % static_cast<int64_t>(window.size())];
  const float removed = std::exchange(slot, current);
  if (last < current) return current;
  if (!(std::abs(removed - last) < 1e-6f)) return last;
  const size_t filled = std::min<size_t>(window.size(), iteration);
  float max = 0;
  for (const float scale : window.subspan(0, filled)) max = std::max(max, std::abs(scale));
  return max;
}

absl::Status Run(KernelContext& ctx) {
  const float last = *ctx.input(kInScale).data<float>();
  Tensor* const out_scale = ctx.optional_output(kOutScale);  // absent where it keeps its value
  const Tensor* const iter = ctx.optional_input(kIter);
  Tensor* const window = ctx.optional_output(kOutScales);
  const ChannelView view = ViewChannels(ctx.input(kX), -1);
  if (ctx.attrs<FakeQuantAttrs>().is_test) {
    QuantizeX(ctx, view, &last);
    if (out_scale != nullptr) *out_scale->mutable_data<float>() = last;
    return absl::OkStatus();
  }
  if (iter == nullptr || window == nullptr) {
    return InvalidArgument("training needs 'Iter' and 'OutScales'");
  }
  INTERP_RETURN_IF_ERROR(RequireScalar(*iter, "Iter"));
  if (iter->dtype != DType::kInt64 || *iter->data<int64_t>() < 0) {
    return InvalidArgument("'Iter' is ", DescribeType(*iter), ", expected int64, not negative");
  }
  const float scale = WindowMax(last, AbsMaxOfX(ctx), *iter->data<int64_t>(),
                                absl::MakeSpan(window->mutable_data<float>(), window->numel()));
  QuantizeX(ctx, view, &scale);
  *ctx.output(kOutScale).mutable_data<float>() = scale;
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fake_quantize_range_abs_max",
    .inputs = {{"X"}, {"InScale"}, {"Iter", kOptional | kAnyDType}},
    .outputs = {{"Out"}, {"OutScale", kOptional}, {"OutScales", kOptional | kKeepsValue}},
    .parse = ParseAttrs<FakeQuantAttrs, ReadFakeQuantAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run}},
    .layout = LayoutRule::kFollows,
    .host_only = true,
    .gradient = QuantizeGradient(/*dequantizes=*/false),
});

}  // namespace range

namespace moving_average {

constexpr int kInScale = 1;
constexpr int kInAccum = 2;
constexpr int kInState = 3;
constexpr int kOutState = 2;
constexpr int kOutAccum = 3;

absl::Status Infer(InferContext& ctx) {
  if (const Tensor* scale = ctx.optional_input(kInScale)) {
    INTERP_RETURN_IF_ERROR(RequireScalar(*scale, "InScale"));
  }
  if (!ctx.attrs<FakeQuantAttrs>().is_test) {
    if (!ctx.has_input(kInAccum) || !ctx.has_input(kInState)) {
      return InvalidArgument("training needs 'InAccum' and 'InState'");
    }
    INTERP_RETURN_IF_ERROR(RequireScalar(ctx.input(kInAccum), "InAccum"));
    INTERP_RETURN_IF_ERROR(RequireScalar(ctx.input(kInState), "InState"));
  }
  if (ctx.has_output(kOut)) ctx.ShareShape(kX, kOut);
  for (const int slot : {kOutScale, kOutState, kOutAccum}) ctx.SetShape(slot, {1});
  return absl::OkStatus();
}

void SetScalar(Tensor* tensor, float value) {
  if (tensor != nullptr) *tensor->mutable_data<float>() = value;
}

float ValueOrZero(const Tensor* tensor) {
  return tensor == nullptr || tensor->numel() != 1 ? 0 : *tensor->data<float>();
}

// The scale to use in this run; in training the average moves on and is written out.
float UpdateScale(KernelContext& ctx) {
  const FakeQuantAttrs& attrs = ctx.attrs<FakeQuantAttrs>();
  MovingScale next = {.state = ValueOrZero(ctx.optional_input(kInState)),
                      .accum = ValueOrZero(ctx.optional_input(kInAccum)),
                      .scale = ValueOrZero(ctx.optional_input(kInScale))};
  if (!attrs.is_test) next = NextScale(attrs.rate, next.state, next.accum, AbsMaxOfX(ctx));
  SetScalar(ctx.optional_output(kOutScale), next.scale);
  SetScalar(ctx.optional_output(kOutState), next.state);
  SetScalar(ctx.optional_output(kOutAccum), next.accum);
  return next.scale;
}

absl::Status RunQuantize(KernelContext& ctx) {
  const float scale = UpdateScale(ctx);
  QuantizeX(ctx, ViewChannels(ctx.input(kX), -1), &scale);
  return absl::OkStatus();
}

absl::Status RunObserve(KernelContext& ctx) {
  UpdateScale(ctx);
  if (Tensor* out = ctx.optional_output(kOut)) CopyUnlessShared(ctx.input(kX), *out);
  return absl::OkStatus();
}

OpDef Def(absl::string_view type, int in_scale_flags, int out_flags, KernelFn run) {
  const bool grid = type == "fake_quantize_moving_average_abs_max";
  return OpDef{
      .type = type,
      .inputs = {{"X"},
                 {"InScale", in_scale_flags},
                 {"InAccum", kOptional},
                 {"InState", kOptional}},
      .outputs = {{"Out", out_flags},
                  {"OutScale", kOptional},
                  {"OutState", kOptional},
                  {"OutAccum", kOptional}},
      .parse = ParseAttrs<FakeQuantAttrs, ReadFakeQuantAttrs>,
      .infer = Infer,
      .kernels = {{DType::kFloat32, run}},
      .layout = LayoutRule::kFollows,
      .inplace = {{kX, kOut}},
      .gradient = QuantizeGradient(/*dequantizes=*/!grid),
  };
}

INTERP_REGISTER_OP(Def("fake_quantize_moving_average_abs_max", 0, 0, RunQuantize));
INTERP_REGISTER_OP(Def("fake_quantize_dequantize_moving_average_abs_max", 0, 0, RunQuantize));
INTERP_REGISTER_OP(Def("moving_average_abs_max_scale", kOptional, kOptional, RunObserve));

}  // namespace moving_average
}  // namespace
}  // namespace interp
