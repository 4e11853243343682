// multi_gru: layers of fusion_gru in both directions, whose states stand side by side, as Paddle's
// oneDNN passes fuse them. WeightX, WeightH and Bias have two elements for each layer, forward and
// backward. The scales of the int8 form are not read.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/op_def.h"
#include "kernels/product/product.h"
#include "kernels/recurrent/gru_attrs.h"
#include "kernels/recurrent/gru_layer.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/all_present.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/shape_args.h"

namespace interp::recurrent {
namespace {

constexpr int kX = 0;
constexpr int kWeightX = 1;
constexpr int kWeightH = 2;
constexpr int kBias = 3;
constexpr int kHidden = 0;
constexpr int kDirections = 2;

absl::Status CheckCount(const InferContext& ctx, int slot, absl::string_view name, size_t count) {
  INTERP_RETURN_IF_ERROR(CheckAllPresent(ctx.inputs(slot), name));
  if (ctx.inputs(slot).size() == count) return absl::OkStatus();
  return InvalidArgument("there are ", ctx.inputs(slot).size(), " inputs '", name, "', expected ",
                         count, ": two for each of 'layers'");
}

struct MultiGruAttrs {
  GruAttrs cell;
  int64_t layers = 1;
};

MultiGruAttrs ReadAttrs(AttrReader& reader) {
  const MultiGruAttrs attrs = {ReadGru(reader), reader.Int("layers", 1)};
  if (attrs.layers < 1) {
    reader.Fail(absl::StrCat("attribute 'layers' is ", attrs.layers, ", expected 1 or more"));
  }
  return attrs;
}

// InvalidArgument unless both directions of a layer over rows of `width` elements have the size of
// `weight`, that of the state of the first.
absl::Status CheckLayer(const InferContext& ctx, int64_t layer, int64_t width,
                        const Shape& weight) {
  if (weight.rank() != 2 || weight[0] < 1 || weight[1] != 3 * weight[0]) {
    return InvalidArgument("input 'WeightH' has shape ", ToString(weight), ", expected [D,3 D]");
  }
  for (int64_t i = layer * kDirections; i < (layer + 1) * kDirections; ++i) {
    INTERP_RETURN_IF_ERROR(CheckInputShape(*ctx.inputs(kWeightH)[i], "WeightH", weight));
    INTERP_RETURN_IF_ERROR(
        CheckInputShape(*ctx.inputs(kWeightX)[i], "WeightX", {width, weight[1]}));
    if (ctx.inputs(kBias).empty()) continue;
    INTERP_RETURN_IF_ERROR(CheckInputShape(*ctx.inputs(kBias)[i], "Bias", {1, weight[1]}));
  }
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  if (x.shape.rank() != 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape), ", expected a matrix");
  }
  INTERP_RETURN_IF_ERROR(OnlyLevelOffsets(x, "X").status());
  const int64_t layers = ctx.attrs<MultiGruAttrs>().layers;
  const size_t count = static_cast<size_t>(layers * kDirections);
  INTERP_RETURN_IF_ERROR(CheckCount(ctx, kWeightX, "WeightX", count));
  INTERP_RETURN_IF_ERROR(CheckCount(ctx, kWeightH, "WeightH", count));
  if (!ctx.inputs(kBias).empty()) INTERP_RETURN_IF_ERROR(CheckCount(ctx, kBias, "Bias", count));
  int64_t width = x.shape[1];
  for (int64_t layer = 0; layer < layers; ++layer) {
    const Shape& weight = ctx.inputs(kWeightH)[layer * kDirections]->shape;
    INTERP_RETURN_IF_ERROR(CheckLayer(ctx, layer, width, weight));
    width = kDirections * weight[0];
  }
  ctx.SetShape(kHidden, {x.shape[0], width});
  ctx.output(kHidden).lod = x.lod;
  return absl::OkStatus();
}

absl::StatusOr<Workspace> Floats(const KernelContext& ctx, int64_t rows, int64_t width) {
  INTERP_ASSIGN_OR_RETURN(const int64_t bytes,
                          CheckedProduct(rows, width * static_cast<int64_t>(sizeof(float))));
  return ctx.workspace(static_cast<size_t>(bytes));
}

// Runs direction `i` over `x`, [rows, width], and puts its states into `out`, whose rows are
// kDirections times as wide.
absl::Status RunDirection(KernelContext& ctx, int64_t i, const float* x, int64_t width,
                          float* out) {
  const GruAttrs& attrs = ctx.attrs<MultiGruAttrs>().cell;
  const Tensor& weight = *ctx.inputs(kWeightH)[i];
  const int64_t size = weight.shape[0];
  const int64_t rows = ctx.input(kX).shape[0];
  INTERP_ASSIGN_OR_RETURN(const Workspace input, Floats(ctx, rows, 4 * size));
  nn::Product product = nn::ProductOf(rows, 3 * size, width);
  INTERP_RETURN_IF_ERROR(
      nn::RunProduct<float>(ctx, product, x, ctx.inputs(kWeightX)[i]->data<float>(),
                            /*y_constant=*/false, /*bias=*/nullptr, input.data<float>()));
  const auto parts = GruCell<float>::Parts(size);
  INTERP_ASSIGN_OR_RETURN(const Workspace packed, Floats(ctx, 1, PackedSizeOf<float>(parts)));
  PackParts(parts, weight.data<float>(), packed.data<float>());
  GruCell<float> cell = {size, attrs.gate, attrs.candidate, attrs.origin_mode};
  cell.SetWeights(packed.data<float>());
  const StepOrder order = MakeStepOrder(ctx.input(kX).lod[0], /*reverse=*/i % kDirections == 1);
  GruRun<float> run = {order, cell};
  run.input = input.data<float>();
  if (!ctx.inputs(kBias).empty()) run.bias = ctx.inputs(kBias)[i]->data<float>();
  run.hidden = input.data<float>() + rows * 3 * size;
  INTERP_ASSIGN_OR_RETURN(const Workspace memory, StartGru(ctx, /*h0=*/nullptr, run));
  run.Run(ctx.num_threads());
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(run.hidden + row * size, size, out + row * kDirections * size);
  }
  return absl::OkStatus();
}

absl::Status MultiGru(KernelContext& ctx) {
  const int64_t layers = ctx.attrs<MultiGruAttrs>().layers;
  const int64_t rows = ctx.input(kX).shape[0];
  const float* x = ctx.input(kX).data<float>();
  int64_t width = ctx.input(kX).shape[1];
  std::optional<Workspace> before;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const int64_t size = ctx.inputs(kWeightH)[layer * kDirections]->shape[0];
    const bool last = layer + 1 == layers;
    INTERP_ASSIGN_OR_RETURN(Workspace states, Floats(ctx, last ? 0 : rows, kDirections * size));
    float* const out = last ? ctx.output(kHidden).mutable_data<float>() : states.data<float>();
    for (int64_t direction = 0; direction < kDirections; ++direction) {
      INTERP_RETURN_IF_ERROR(
          RunDirection(ctx, layer * kDirections + direction, x, width, out + direction * size));
    }
    before = std::move(states);
    x = out;
    width = kDirections * size;
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "multi_gru",
    .inputs = {{"X"},
               {"WeightX", kVariadic},
               {"WeightH", kVariadic},
               {"Bias", kVariadic | kOptional},
               {"Scale_weights", kVariadic | kOptional | kNoNeedBuffer}},
    .outputs = {{"Hidden"}},
    .parse = ParseAttrs<MultiGruAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, MultiGru}},
});

}  // namespace
}  // namespace interp::recurrent
