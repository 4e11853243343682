#include "kernels/conv/conv_own_weights.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/constant_elements.h"
#include "kernels/nn/onednn.h"

namespace interp::nn {

absl::StatusOr<std::vector<float>> WriteFilter(const KernelContext& ctx, const ConvAttrs& attrs,
                                               FilterWriter write, float* to) {
  INTERP_ASSIGN_OR_RETURN(const ConstantElements filter,
                          ConstantElements::Of(ctx.input(attrs.slots.filter)));
  ChannelFold fold;
  INTERP_RETURN_IF_ERROR(CatchErrors([&] {
    const bool as_it_is = filter->layout == Layout::kPlain && filter->dtype == DType::kFloat32;
    const std::vector<float> dense = as_it_is ? std::vector<float>() : DenseFilter(*filter);
    fold = FoldOf(ctx, attrs);
    write(ScaledFilter{as_it_is ? filter->data<float>() : dense.data(), fold.factors}, to);
    return absl::OkStatus();
  }));
  return std::move(fold.bias);
}

absl::StatusOr<OwnWeights> ConstantWeights(KernelContext& ctx, const ConvAttrs& attrs,
                                           const ConvProblem& problem, uint64_t key, int64_t floats,
                                           FilterWriter write, KeptWeights& kept) {
  const bool bias = HasBias(ctx, attrs);
  if (kept == nullptr) {
    const size_t filter_bytes = static_cast<size_t>(floats) * sizeof(float);
    const auto make = [&]() -> absl::StatusOr<KeptWeights> {
      auto packed = std::make_shared<PackedArrays>();
      INTERP_ASSIGN_OR_RETURN(Tensor bytes, NewPackedArray(filter_bytes));
      INTERP_ASSIGN_OR_RETURN(
          const std::vector<float> values,
          WriteFilter(ctx, attrs, write, static_cast<float*>(bytes.mutable_raw_data())));
      packed->arrays.push_back(std::move(bytes));
      if (!values.empty()) {
        packed->arrays.push_back(
            Tensor::Of<float>({static_cast<int64_t>(values.size())}, absl::MakeConstSpan(values)));
      }
      return KeptWeights(std::move(packed));
    };
    INTERP_ASSIGN_OR_RETURN(auto arrays, SharedArrays(ctx, key, make));
    absl::InlinedVector<size_t, 2> sizes = {filter_bytes};
    if (bias) sizes.push_back(static_cast<size_t>(problem.out_channels) * sizeof(float));
    INTERP_RETURN_IF_ERROR(CheckArrays(*arrays, sizes));
    kept = std::move(arrays);
  }
  return OwnWeights{ElementsOf<float>(*kept, 0), bias ? ElementsOf<float>(*kept, 1) : nullptr};
}

absl::StatusOr<OwnWeights> MethodWeights(KernelContext& ctx, const ConvAttrs& attrs,
                                         const ConvProblem& problem, const ConvMethod& method,
                                         KeptWeights& kept) {
  return ConstantWeights(
      ctx, attrs, problem, method.key, method.filter_size(problem),
      [&](const ScaledFilter& filter, float* packed) { method.pack(problem, filter, packed); },
      kept);
}

absl::Status RunConvMethod(KernelContext& ctx, const ConvAttrs& attrs, const ConvProblem& problem,
                           const ConvMethod& method, KeptWeights& kept, const float* in,
                           float* out) {
  INTERP_ASSIGN_OR_RETURN(const OwnWeights weights,
                          MethodWeights(ctx, attrs, problem, method, kept));
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(method.work_bytes(problem, ctx.num_threads())));
  method.run(problem, EpilogueOf(ctx, attrs), weights.filter, weights.bias, in, out,
             ctx.num_threads(), work.data<float>());
  return absl::OkStatus();
}

}  // namespace interp::nn
