// A convolution: the attributes of the conv family and the numbers of one concrete case.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "core/attr_reader.h"
#include "core/op_def.h"
#include "kernels/conv/image.h"
#include "kernels/conv/window.h"
#include "kernels/nn/fused_activation.h"

namespace interp::nn {

// Positions of the inputs that are folded into a convolution. The defaults are those of
// fused_conv2d, whose first inputs all convolutions have.
struct ConvSlots {
  int filter = 1;
  int bias = 2;
  int batch_norm = 4;    // scale, bias, mean and variance: all four or none
  int pre_affine = 8;    // factor and summand of all sums before the residual is added
  int post_affine = 10;  // the same of all results behind the activation
};

struct ConvAttrs {
  WindowAttrs window;
  int64_t groups = 1;
  bool channels_last_dims = false;  // data_format NHWC or NDHWC
  bool fuse_residual = false;       // ResidualData is added before the activation
  bool batch_norm = false;          // its slots are bound
  float epsilon = 1e-5F;            // of that batch norm
  bool pre_affine = false;          // one of its slots is bound
  bool post_affine = false;         // one of its slots is bound
  bool gives_float32 = false;       // in bfloat16, see forced_float32.h
  FusedActivation activation;
  ConvSlots slots;
};

ConvAttrs ReadConv2dAttrs(AttrReader& reader);
ConvAttrs ReadConv3dAttrs(AttrReader& reader);

// Inputs of the conv family, by position.
inline constexpr int kConvInput = 0;
inline constexpr int kConvFilter = 1;
inline constexpr int kConvBias = 2;
inline constexpr int kConvResidual = 3;
inline constexpr int kConvOutput = 0;

// Sizes of one case. A 2-D convolution has window.rank 2.
struct ConvProblem {
  int64_t batch = 0;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t groups = 1;
  Window window;

  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  bool depthwise() const { return groups > 1 && groups == in_channels; }
  // A multiplication and an addition count as two; taps that see padding alone do not.
  double flops() const;
};

// y = scale * x + shift, the same numbers for all elements.
struct ScalarAffine {
  float scale = 1;
  float shift = 0;
  bool is_identity() const { return scale == 1 && shift == 0; }
};

// Applies it to data[0, n).
inline void ApplyAffine(ScalarAffine affine, float* data, int64_t n) {
  if (affine.is_identity()) return;
  for (int64_t i = 0; i < n; ++i) data[i] = affine.scale * data[i] + affine.shift;
}

// A filter in dense O,I,kernel order whose output channels are to be multiplied by factors, as a
// batch norm behind the convolution asks.
struct ScaledFilter {
  const float* data = nullptr;
  absl::Span<const double> factors = {};  // by output channel; empty: none

  float Scaled(float element, int64_t out_channel) const {
    return factors.empty() ? element : static_cast<float>(element * factors[out_channel]);
  }
};

// What happens to the sums before they are stored: + bias, + residual, activation, affine.
struct ConvEpilogue {
  bool bias = false;
  bool residual = false;
  FusedActivation activation = {};
  ScalarAffine affine = {};
};

// What `pixels` pixels of the result hold before sums are added to them: the residual, which they
// hold already, and the bias; null: none.
inline void BeginSums(const ConvEpilogue& epilogue, const float* bias, int64_t pixels,
                      int64_t channels, float* out) {
  for (int64_t i = 0; i < pixels; ++i, out += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      out[c] = (epilogue.residual ? out[c] : 0.0F) + (epilogue.bias ? bias[c] : 0.0F);
    }
  }
}

// Checks Input and Filter against each other and the attributes. Errors name the slot.
absl::StatusOr<ConvProblem> ResolveConv(const ConvAttrs& attrs, const Shape& input,
                                        const Shape& filter);

// The shape of Output.
Shape ConvOutputShape(const ConvProblem& problem, bool channels_last_dims);

// Checks the inputs of `attrs.slots` but the filter. Errors name the slot of fused_conv2d.
absl::Status CheckFoldedInputs(const InferContext& ctx, const ConvAttrs& attrs, int64_t channels);

// OpDef::infer of the conv family.
absl::Status InferConv(InferContext& ctx);

// OpDef::flops of the conv family, the convolution alone. Each element of `out` meets one filter of
// `filter`; for a transposed convolution `out` is its input.
int64_t ConvFlops(const Tensor& out, const Tensor& filter);

}  // namespace interp::nn
