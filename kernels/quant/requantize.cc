// The ops of programs quantised for oneDNN:
//   quantize     Output = Scale * Input + Shift as int8 or, with a Shift or without negative
//                inputs, uint8; with `bfloat16` as bfloat16
//   dequantize   Output = (Input - Shift) / Scale, of float32 too with `bfloat16`: ops without a
//                row for bfloat16 give that
//   requantize   Output = Scale_out / Scale_in * Input, and Shift_out - Scale_out / Scale_in *
//                Shift_in more, as uint8 then
// Results are rounded, ties to even, and clipped to the range of their dtype. What a layout of
// oneDNN's own would be (`output_format`) does not matter here.
//
// And those of programs quantised for Paddle-Mobile, which have the same names and other slots:
//   quantize     OutScale = the largest magnitude of X; Out = X on the grid of whole numbers from
//                -127 to 127 that it spans, ties away from zero, as float32
//   dequantize   Out = X * Scale / max_range
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/op_def.h"
#include "kernels/quant/requantize_attrs.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kOutput = 0;

// The nearest T; NaN becomes the smallest.
template <typename T>
T Round(float value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr auto kLowest = static_cast<float>(std::numeric_limits<T>::lowest());
    constexpr auto kHighest = static_cast<float>(std::numeric_limits<T>::max());
    value = value > kLowest ? value : kLowest;
    return static_cast<T>(std::nearbyint(value < kHighest ? value : kHighest));
  } else {
    return static_cast<T>(value);
  }
}

// Output = scale * Input + shift.
template <typename From, typename To>
void Rescale(KernelContext& ctx, float scale, float shift) {
  const From* const in = ctx.input(kInput).data<From>();
  To* const out = ctx.output(kOutput).mutable_data<To>();
  ParallelFor(ctx.num_threads(), ctx.input(kInput).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  out[i] = Round<To>(scale * static_cast<float>(in[i]) + shift);
                }
              });
}

absl::Status Infer(InferContext& ctx) {
  ctx.ShareShape(kInput, kOutput);
  return absl::OkStatus();
}

bool IsBound(const Slot* slot) { return slot != nullptr && !slot->args.empty(); }

// Whether the op has the slots of Paddle-Mobile. Fails without the outputs of its form.
bool ReadMobile(AttrReader& reader, absl::Span<const absl::string_view> mobile_outputs) {
  const bool mobile = IsBound(reader.op().FindInput("X"));
  if (mobile == IsBound(reader.op().FindInput("Input"))) {
    reader.Fail("one of the inputs 'Input' and 'X' is expected");
  }
  constexpr absl::string_view kOutputs[] = {"Output"};
  for (const absl::string_view name : mobile ? mobile_outputs : absl::MakeConstSpan(kOutputs)) {
    if (!IsBound(reader.op().FindOutput(name)))
      reader.Fail(absl::StrCat("has no output '", name, "'"));
  }
  return mobile;
}

float ReadScale(AttrReader& reader, absl::string_view name) {
  const float scale = reader.Float(name, 1.0f);
  if (scale == 0.0f) reader.Fail(absl::StrCat("attribute '", name, "' is 0"));
  return scale;
}

float ReadShift(AttrReader& reader, absl::string_view name) {
  const float shift = reader.Float(name, 0.0f);
  if (!(shift >= 0.0f && shift <= 255.0f)) {
    reader.Fail(absl::StrCat("attribute '", name, "' is ", shift, ", expected 0 to 255"));
  }
  return std::isfinite(shift) ? shift : 0.0f;
}

namespace quantize {

using Attrs = QuantizeAttrs;

Attrs Read(AttrReader& reader) {
  if (ReadMobile(reader, {"Out", "OutScale"})) {
    return {.dtype = DType::kFloat32,
            .mobile = true,
            .grid = ReadQuantGrid(reader, /*default_round_type=*/1)};
  }
  Attrs attrs = {ReadScale(reader, "Scale"), std::trunc(ReadShift(reader, "Shift"))};
  const bool with_shift = reader.Float("Shift", 0.0f) != 0.0f;
  const bool negative = reader.Bool("is_negative_input", false);
  if (negative && !with_shift) attrs.dtype = DType::kInt8;
  if (reader.Bool("bfloat16", false)) attrs.dtype = DType::kBFloat16;
  return attrs;
}

void InferDTypes(DTypeContext& ctx) { ctx.Set(kOutput, ctx.attrs<Attrs>().dtype); }

absl::Status InferQuantize(InferContext& ctx) {
  if (!ctx.attrs<Attrs>().mobile) return Infer(ctx);
  ctx.ShareShape(kMobileX, kMobileOut);
  ctx.SetShape(kMobileOutScale, {1});
  return absl::OkStatus();
}

absl::Status RunMobile(KernelContext& ctx) {
  const Tensor& x = ctx.input(kMobileX);
  const ChannelView all = {.inner = x.numel()};
  float scale = 0;
  AbsMax(ctx.num_threads(), all, x.data<float>(), &scale);
  *ctx.output(kMobileOutScale).mutable_data<float>() = scale;
  Quantize(ctx.num_threads(), all, ctx.attrs<Attrs>().grid, x.data<float>(), &scale,
           ctx.output(kMobileOut).mutable_data<float>());
  return absl::OkStatus();
}

absl::Status Run(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  if (attrs.mobile) return RunMobile(ctx);
  if (attrs.dtype == DType::kInt8) {
    Rescale<float, int8_t>(ctx, attrs.scale, attrs.shift);
  } else if (attrs.dtype == DType::kUInt8) {
    Rescale<float, uint8_t>(ctx, attrs.scale, attrs.shift);
  } else {
    Rescale<float, bfloat16>(ctx, attrs.scale, attrs.shift);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "quantize",
    .inputs = {{"Input", kOptional}, {"X", kOptional}},
    .outputs = {{"Output", kOptional}, {"Out", kOptional}, {"OutScale", kOptional}},
    .parse = ParseAttrs<Attrs, Read>,
    .infer_dtype = InferDTypes,
    .infer = InferQuantize,
    .kernels = {{DType::kFloat32, Run}},
    .layout = LayoutRule::kFollows,
});

}  // namespace quantize

namespace dequantize {

using Attrs = DequantizeAttrs;

Attrs Read(AttrReader& reader) {
  if (ReadMobile(reader, {"Out"})) {
    const float max_range = reader.Float("max_range", 0.0f);
    if (!(max_range > 0.0f)) reader.Fail("attribute 'max_range' is not above 0");
    return {.mobile = true, .max_range = max_range};
  }
  return {.scale = 1.0f / ReadScale(reader, "Scale"),
          .shift = ReadShift(reader, "Shift"),
          .bfloat16 = reader.Bool("bfloat16", false)};
}

void InferDTypes(DTypeContext& ctx) { ctx.Set(kOutput, DType::kFloat32); }

absl::Status InferDequantize(InferContext& ctx) {
  if (!ctx.attrs<Attrs>().mobile) return Infer(ctx);
  const Tensor* const scale = ctx.optional_input(kMobileScale);
  if (scale == nullptr || scale->numel() != 1) {
    return InvalidArgument("input 'Scale' is ", scale == nullptr ? "absent" : DescribeType(*scale),
                           ", expected one element");
  }
  ctx.ShareShape(kMobileX, kMobileOut);
  return absl::OkStatus();
}

absl::Status RunMobile(KernelContext& ctx) {
  const Tensor& x = ctx.input(kMobileX);
  Dequantize<float, float>(ctx.num_threads(), ViewChannels(x, -1), x.data<float>(),
                           ctx.input(kMobileScale).data<float>(), 1.0f,
                           ctx.attrs<Attrs>().max_range,
                           ctx.output(kMobileOut).mutable_data<float>());
  return absl::OkStatus();
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  Rescale<T, float>(ctx, attrs.scale, -attrs.shift * attrs.scale);
  return absl::OkStatus();
}

absl::Status RunFloat32(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  if (attrs.mobile) return RunMobile(ctx);
  if (attrs.bfloat16) return Run<float>(ctx);
  return InvalidArgument("input 'Input' is ", DescribeType(ctx.input(kInput)),
                         ", expected int8, uint8 or bfloat16");
}

INTERP_REGISTER_OP(OpDef{
    .type = "dequantize",
    .inputs = {{"Input", kOptional}, {"X", kOptional}, {"Scale", kOptional}},
    .outputs = {{"Output", kOptional}, {"Out", kOptional}},
    .parse = ParseAttrs<Attrs, Read>,
    .infer_dtype = InferDTypes,
    .infer = InferDequantize,
    .kernels = {{DType::kFloat32, RunFloat32},
                {DType::kInt8, Run<int8_t>},
                {DType::kUInt8, Run<uint8_t>},
                {DType::kBFloat16, Run<bfloat16>}},
    .layout = LayoutRule::kFollows,
});

}  // namespace dequantize

namespace requantize {

struct Attrs {
  float scale = 1;
  float shift = 0;
  bool with_shift = false;
  bool shifted_input = false;
};

Attrs Read(AttrReader& reader) {
  Attrs attrs;
  attrs.scale = ReadScale(reader, "Scale_out") / ReadScale(reader, "Scale_in");
  const float shift_in = ReadShift(reader, "Shift_in");
  const float shift_out = ReadShift(reader, "Shift_out");
  attrs.shifted_input = shift_in != 0.0f;
  attrs.with_shift = attrs.shifted_input || shift_out != 0.0f;
  // A whole number of uint8, ties away from zero.
  const float shift = std::round(shift_out - attrs.scale * shift_in);
  if (attrs.with_shift) attrs.shift = std::clamp(std::isnan(shift) ? 0.0f : shift, 0.0f, 255.0f);
  return attrs;
}

void InferDTypes(DTypeContext& ctx) {
  if (ctx.attrs<Attrs>().with_shift) ctx.Set(kOutput, DType::kUInt8);
}

absl::Status InferRequantize(InferContext& ctx) {
  if (ctx.attrs<Attrs>().shifted_input && ctx.input(kInput).dtype != DType::kUInt8) {
    return InvalidArgument("input 'Input' is ", DescribeType(ctx.input(kInput)),
                           ", expected uint8 for a 'Shift_in'");
  }
  return Infer(ctx);
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  if (attrs.with_shift) {
    Rescale<T, uint8_t>(ctx, attrs.scale, attrs.shift);
  } else {
    Rescale<T, T>(ctx, attrs.scale, 0.0f);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "requantize",
    .inputs = {{"Input"}},
    .outputs = {{"Output"}},
    .parse = ParseAttrs<Attrs, Read>,
    .infer_dtype = InferDTypes,
    .infer = InferRequantize,
    .kernels = {{DType::kInt8, Run<int8_t>},
                {DType::kUInt8, Run<uint8_t>},
                {DType::kBFloat16, Run<bfloat16>}},
    .layout = LayoutRule::kFollows,
});

}  // namespace requantize
}  // namespace
}  // namespace interp
