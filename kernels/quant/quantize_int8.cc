// quantize_int8: Out = X on the grid of whole numbers that a scale spans, as int8; OutScale = that
// scale: Scale or, without one, the largest magnitude of X. What the pass `int8` makes of the
// fake_quantize ops (fake_quantize.cc), which have the same numbers in float32.
#include <cmath>

#include "core/op_def.h"
#include "kernels/quant/quantize.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kScale = 1;
constexpr int kOut = 0;
constexpr int kOutScale = 1;

struct QuantizeInt8Attrs {
  QuantGrid grid;
};

QuantizeInt8Attrs ReadQuantizeInt8Attrs(AttrReader& reader) {
  const QuantGrid grid = ReadQuantGrid(reader, /*default_round_type=*/0);
  if (grid.bins > 127) reader.Fail("attribute 'bit_length' is above 8");
  return {grid};
}

absl::Status Infer(InferContext& ctx) {
  const Tensor* const scale = ctx.optional_input(kScale);
  if (scale != nullptr && scale->numel() != 1) {
    return InvalidArgument("'Scale' is ", DescribeType(*scale), ", expected one element");
  }
  ctx.ShareShape(kX, kOut);
  ctx.SetShape(kOutScale, {1});
  return absl::OkStatus();
}

void InferDTypes(DTypeContext& ctx) { ctx.Set(kOut, DType::kInt8); }

absl::Status Run(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const ChannelView all = {.inner = x.numel()};
  float scale = 0;
  if (const Tensor* given = ctx.optional_input(kScale)) {
    scale = *given->data<float>();
  } else {
    AbsMax(ctx.num_threads(), all, x.data<float>(), &scale);
  }
  if (Tensor* out_scale = ctx.optional_output(kOutScale)) {
    *out_scale->mutable_data<float>() = scale;
  }
  QuantizeToInt8(ctx.num_threads(), x.numel(), ctx.attrs<QuantizeInt8Attrs>().grid, x.data<float>(),
                 scale, ctx.output(kOut).mutable_data<int8_t>());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "quantize_int8",
    .inputs = {{"X"}, {"Scale", kOptional}},
    .outputs = {{"Out"}, {"OutScale", kOptional}},
    .parse = ParseAttrs<QuantizeInt8Attrs, ReadQuantizeInt8Attrs>,
    .infer_dtype = InferDTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run}},
    .layout = LayoutRule::kFollows,
    .precision = PrecisionRule::kFull,
});

}  // namespace
}  // namespace interp
