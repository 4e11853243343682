// What a convolution by a method of our own multiplies with: its filter in that method's order,
// made of what the instruction is given, and its bias.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/packed_arrays.h"
#include "kernels/conv/conv_methods.h"
#include "kernels/conv/conv_weights.h"

namespace interp::nn {

struct OwnWeights {
  const float* filter = nullptr;
  const float* bias = nullptr;  // null: none
};

// What constant weights became, null until made. It lives as long as what points into it.
using KeptWeights = std::shared_ptr<const PackedArrays>;

using FilterWriter = absl::FunctionRef<void(const ScaledFilter& filter, float* to)>;

// Calls write(filter, to) with the filter that the instruction is given, the batch norm folded in,
// and returns the bias by output channel; empty: none. Error: ResourceExhausted.
absl::StatusOr<std::vector<float>> WriteFilter(const KernelContext& ctx, const ConvAttrs& attrs,
                                               FilterWriter write, float* to);

// Weights that never change: `floats` floats that write(filter, to) makes, and the bias, shared by
// all that ask for `key` of the instruction and kept in `kept`. Errors: as those of WriteFilter,
// DataLoss for shared arrays of other sizes. REQUIRES: WeightsAreConstant(ctx, attrs).
absl::StatusOr<OwnWeights> ConstantWeights(KernelContext& ctx, const ConvAttrs& attrs,
                                           const ConvProblem& problem, uint64_t key, int64_t floats,
                                           FilterWriter write, KeptWeights& kept);

// The same of a method.
absl::StatusOr<OwnWeights> MethodWeights(KernelContext& ctx, const ConvAttrs& attrs,
                                         const ConvProblem& problem, const ConvMethod& method,
                                         KeptWeights& kept);

// Computes `out`, as ConvMethod::run does, with the weights above and the epilogue of `attrs`.
absl::Status RunConvMethod(KernelContext& ctx, const ConvAttrs& attrs, const ConvProblem& problem,
                           const ConvMethod& method, KeptWeights& kept, const float* in,
                           float* out);

}  // namespace interp::nn
