// Transposed convolutions: attributes and shapes, for both directions.
#pragma once

#include <vector>

#include "kernels/conv/conv_problem.h"

namespace interp::nn {

struct TransposeAttrs {
  ConvAttrs conv;
  std::vector<int64_t> output_size;
  std::vector<int64_t> output_padding;
};

TransposeAttrs ReadTranspose2d(AttrReader& reader);
TransposeAttrs ReadTranspose3d(AttrReader& reader);

// The convolution this op transposes: window.axes[i].in is the output here, .out the input.
// in_channels and out_channels are those of Input and Output.
// `wanted` is the output's size; empty: what the attributes say. Errors name the slots.
absl::StatusOr<ConvProblem> ResolveTranspose(const TransposeAttrs& attrs, const Shape& input,
                                             const Shape& filter, absl::Span<const int64_t> wanted);

// The shape of Output.
Shape TransposeOutputShape(const ConvProblem& problem, bool channels_last_dims);

}  // namespace interp::nn
