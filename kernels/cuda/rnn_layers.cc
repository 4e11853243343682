#include "kernels/cuda/rnn_layers.h"

namespace interp::cuda {

RnnLayers::RnnLayers(KernelContext& context)
    : ctx(context),
      attrs(context.attrs<nn::RnnAttrs>()),
      sizes(nn::RnnSizesOf(context)),
      dtype(context.input(nn::kRnnInput).dtype) {}

Elements RnnLayers::ElementsAt(const void* memory) const { return ElementsOf(dtype, memory); }

KeptParts RnnLayers::Kept(const void* reserve) const {
  KeptParts parts;
  parts.gates = ElementsAt(reserve);
  parts.outputs = parts.gates + sizes.gates_part();
  if (nn::HasExtra(attrs.mode)) {
    parts.extra = parts.outputs;
    parts.outputs = parts.extra + sizes.extra_part();
  }
  return parts;
}

Elements RnnLayers::Weight(int64_t layer, int64_t d, int64_t which) const {
  const int64_t index = 2 * (layer * sizes.directions + d) + which;
  return ElementsAt(ctx.inputs(nn::kRnnWeightList)[index]->raw_data());
}

Elements RnnLayers::Bias(int64_t layer, int64_t d, int64_t which) const {
  const int64_t index = 2 * ((sizes.layers + layer) * sizes.directions + d) + which;
  return ElementsAt(ctx.inputs(nn::kRnnWeightList)[index]->raw_data());
}

RecurrentStep RnnLayers::Step(int64_t t) const {
  RecurrentStep step = {.cell = static_cast<RecurrentCell>(attrs.mode),
                        .batch = sizes.batch,
                        .hidden = sizes.hidden,
                        .width = sizes.width(),
                        .step = t};
  if (const Tensor* const lengths = ctx.optional_input(nn::kRnnSequenceLength)) {
    step.lengths = {lengths->raw_data(), lengths->dtype};
  }
  return step;
}

absl::Status RnnLayers::Multiply(const LayerProduct& product, Elements x, Elements y,
                                 Elements out) const {
  return cuda::Multiply(ctx, dtype, product, x, y, out);
}

}  // namespace interp::cuda
