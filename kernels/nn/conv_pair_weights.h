// Weights that the kernel of a pair of convolutions packs for itself.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/packed_arrays.h"
#include "kernels/nn/conv_weights.h"

namespace interp::nn {

// An array of `floats` that pack(filter, data) writes, given the filter in dense O,I,kernel order,
// and one of the bias by output channel, zeros where there is none. `kept` keeps them where they
// never change, and clones share them under `key`.
template <typename Pack>
absl::StatusOr<std::shared_ptr<const PackedArrays>> PackedWith(
    KernelContext& ctx, const ConvAttrs& attrs, int64_t out_channels, uint64_t key, int64_t floats,
    std::shared_ptr<const PackedArrays>& kept, const Pack& pack) {
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const PackedArrays>> {
    auto packed = std::make_shared<PackedArrays>();
    INTERP_ASSIGN_OR_RETURN(Tensor filter,
                            NewPackedArray(static_cast<size_t>(floats) * sizeof(float)));
    INTERP_RETURN_IF_ERROR(CatchErrors([&] {
      FoldedWeights folded = FoldWeights(ctx, attrs);
      folded.bias.resize(static_cast<size_t>(out_channels));
      pack(folded.filter.data(), static_cast<float*>(filter.mutable_raw_data()));
      packed->arrays.push_back(std::move(filter));
      packed->arrays.push_back(Tensor::Of<float>({out_channels}, absl::MakeConstSpan(folded.bias)));
      return absl::OkStatus();
    }));
    return std::shared_ptr<const PackedArrays>(std::move(packed));
  };
  if (!WeightsAreConstant(ctx, attrs)) return make();
  if (kept == nullptr) {
    INTERP_ASSIGN_OR_RETURN(auto packed, SharedArrays(ctx, key, make));
    INTERP_RETURN_IF_ERROR(
        CheckArrays(*packed, {static_cast<size_t>(floats) * sizeof(float),
                              static_cast<size_t>(out_channels) * sizeof(float)}));
    kept = std::move(packed);
  }
  return kept;
}

}  // namespace interp::nn
