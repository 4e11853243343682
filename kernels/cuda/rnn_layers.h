// What the rows of rnn and rnn_grad share: where things lie, and their products.
#pragma once

#include <cstdint>

#include "kernels/cuda/elements.h"
#include "kernels/cuda/rnn.h"
#include "kernels/recurrent/rnn_shapes.h"

namespace interp::cuda {

// The parts of Reserve, see nn::ReserveSize.
struct KeptParts {
  Elements gates;
  Elements extra;  // null where the mode has none
  Elements outputs;
};

struct RnnLayers {
  // REQUIRES: `ctx` is that of rnn or rnn_grad, its shapes are checked.
  explicit RnnLayers(KernelContext& context);

  bool Lstm() const { return attrs.mode == nn::RnnMode::kLstm; }
  int64_t Features(int64_t layer) const { return layer == 0 ? sizes.input : sizes.width(); }
  size_t Bytes(int64_t elements) const { return static_cast<size_t>(elements) * SizeOf(dtype); }
  // The memory is written only where it is an output.
  Elements ElementsAt(const void* memory) const;
  KeptParts Kept(const void* reserve) const;
  // Of a layer and direction, `which` 0: of the input, 1: of the state.
  Elements Weight(int64_t layer, int64_t d, int64_t which) const;
  Elements Bias(int64_t layer, int64_t d, int64_t which) const;
  // Step `t`; rows of outputs are as wide as both directions.
  RecurrentStep Step(int64_t t) const;
  absl::Status Multiply(const LayerProduct& product, Elements x, Elements y, Elements out) const;

  KernelContext& ctx;
  const nn::RnnAttrs& attrs;
  const nn::RnnSizes sizes;
  const DType dtype;
};

// Rows take no dropout between layers: its mask is drawn on the host.
inline bool TakesRnn(const void* attrs) {
  return !nn::Masks(*static_cast<const nn::RnnAttrs*>(attrs));
}

}  // namespace interp::cuda
