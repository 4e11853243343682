// What the gradients of convolutions and of transposed convolutions share: the gradients of one
// convolution, by Winograd's method or oneDNN for float32, by oneDNN for bfloat16 and by plain
// loops for the rest.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/conv/conv_grad_onednn.h"
#include "kernels/conv/conv_onednn.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/conv/conv_winograd.h"

namespace interp::nn {

// What a gradient op keeps between runs, of one problem. Made when first wanted.
struct PreparedConvGrad {
  absl::StatusOr<std::unique_ptr<OnednnConvDataGrad>> data;
  absl::StatusOr<std::unique_ptr<OnednnConvFilterGrad>> filter;
  absl::StatusOr<std::unique_ptr<OnednnConv>> forward;
};
struct ConvGradState : KernelState {
  ShapeCache<PreparedConvGrad> prepared;
  WinogradFilter mirrored;  // of the gradient by the input, by Winograd's method
  std::string by_input;     // what the last run computed with
  std::string by_filter;

  std::string algorithm() const override {
    const char* const between = by_input.empty() || by_filter.empty() ? "" : ", ";
    return absl::StrCat(by_input, between, by_filter);
  }
};

// A convolution and how its images lie.
struct ConvGradCase {
  ConvProblem problem;
  bool channels_last_dims = false;
};

// The gradient by the input. `filter` has O,I,kernel dims in any layout. Uses the state of the
// instruction, which is a ConvGradState.
template <typename T>
absl::Status ConvDataGrad(KernelContext& ctx, const ConvGradCase& conv, const Tensor& filter,
                          const Tensor& out_grad, Tensor& in_grad);

// The gradient by the filter.
template <typename T>
absl::Status ConvFilterGrad(KernelContext& ctx, const ConvGradCase& conv, const Tensor& in,
                            const Tensor& out_grad, Tensor& filter_grad);

// The convolution itself: it is the gradient of a transposed one by its input.
template <typename T>
absl::Status ConvForward(KernelContext& ctx, const ConvGradCase& conv, const Tensor& filter,
                         const Tensor& in, Tensor& out);

// Makes the primitives of the gradients that a gradient op of a convolution has outputs for.
template <typename T>
absl::Status PrepareConvGrad(KernelContext& ctx, const ConvProblem& problem);

extern template absl::Status PrepareConvGrad<float>(KernelContext&, const ConvProblem&);
extern template absl::Status PrepareConvGrad<bfloat16>(KernelContext&, const ConvProblem&);
extern template absl::Status ConvForward<float>(KernelContext&, const ConvGradCase&, const Tensor&,
                                                const Tensor&, Tensor&);
extern template absl::Status ConvForward<double>(KernelContext&, const ConvGradCase&, const Tensor&,
                                                 const Tensor&, Tensor&);
extern template absl::Status ConvDataGrad<float>(KernelContext&, const ConvGradCase&, const Tensor&,
                                                 const Tensor&, Tensor&);
extern template absl::Status ConvDataGrad<double>(KernelContext&, const ConvGradCase&,
                                                  const Tensor&, const Tensor&, Tensor&);
extern template absl::Status ConvFilterGrad<float>(KernelContext&, const ConvGradCase&,
                                                   const Tensor&, const Tensor&, Tensor&);
extern template absl::Status ConvFilterGrad<double>(KernelContext&, const ConvGradCase&,
                                                    const Tensor&, const Tensor&, Tensor&);
// The gradients also for bfloat16. Where oneDNN has nothing for it they are computed in float32.
extern template absl::Status ConvDataGrad<bfloat16>(KernelContext&, const ConvGradCase&,
                                                    const Tensor&, const Tensor&, Tensor&);
extern template absl::Status ConvFilterGrad<bfloat16>(KernelContext&, const ConvGradCase&,
                                                      const Tensor&, const Tensor&, Tensor&);

// Sums of all pixels of `image` by channel: the gradient of a bias.
template <typename T>
void ConvBiasGrad(const Tensor& image, bool channels_last_dims, Tensor& bias_grad, int num_threads);

extern template void ConvBiasGrad<float>(const Tensor&, bool, Tensor&, int);
extern template void ConvBiasGrad<double>(const Tensor&, bool, Tensor&, int);
extern template void ConvBiasGrad<bfloat16>(const Tensor&, bool, Tensor&, int);

// Slots of the gradient ops, of which kConvInput, kConvFilter and kConvBias are the first.
inline constexpr int kConvOutGrad = 3;
inline constexpr int kConvInputGrad = 0;
inline constexpr int kConvFilterGrad = 1;
inline constexpr int kConvBiasGrad = 2;

// The definition of a gradient op, to which a kernel of its own belongs.
OpDef ConvGradDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&),
                  absl::Status (*infer)(InferContext&));

// Checks Output@GRAD and Bias of an op whose output has the shape `out` and `channels` channels,
// and gives its outputs their shapes.
absl::Status InferConvGrad(InferContext& ctx, const Shape& out, int64_t channels);

// The products of the forward op, of `image`, once for each of the gradients that are wanted.
int64_t ConvGradFlops(const OpContext& ctx, const Tensor& image);

}  // namespace interp::nn
