// Two convolutions in one op, of which the second alone reads the first: their inputs, attributes
// and sizes. See pointwise_depthwise.cc.
#pragma once

#include <vector>

#include "core/op_def.h"
#include "kernels/conv/conv_problem.h"

namespace interp::nn {

// What each would have as a fused_conv2d, with slots of the pair.
struct PairAttrs {
  ConvAttrs pointwise;
  ConvAttrs depthwise;
};

// Inputs and attributes of the depthwise one have the prefixes "Depthwise" and "depthwise_".
// Errors: a residual, different formats.
PairAttrs ReadPairAttrs(AttrReader& reader);

std::vector<SlotDef> PairInputs();

struct PairProblem {
  ConvProblem pointwise;
  ConvProblem depthwise;
};

// Errors: as ResolveConv; a first one that is not of 1 x 1 with stride 1 and without padding, a
// second one that has not one output for each of its channels.
absl::StatusOr<PairProblem> ResolvePair(const OpContext& ctx, const PairAttrs& attrs);

}  // namespace interp::nn
