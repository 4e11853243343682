// The activation that a fused convolution or matrix product applies to its result.
//
// Formulas by name, with a = alpha and b = beta:
//   ""            x
//   relu          max(x, 0)
//   relu6         min(max(x, 0), a)               a = 6 by default (attribute threshold of relu6)
//   leaky_relu    x < 0 ? a x : x                 a = 0.02
//   hard_sigmoid  min(max(a x + b, 0), 1)         a = slope, b = offset; 0.2, 0.5
//   hard_swish    x min(max(a x + b, 0), 1)       a = 1/6, b = 1/2
//   sigmoid       1 / (1 + e^-x)
//   swish         x sigmoid(a x)                  a = 1
//   clip         min(max(x, a), b)                 a = b = 0
//   tanh, mish, abs, sqrt, gelu (by erf), gelu_tanh (by tanh)
#pragma once

#include <cstdint>

#include "core/attr_reader.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace interp::nn {

enum class ActivationKind : int8_t {
  kNone,
  kRelu,
  kRelu6,
  kLeakyRelu,
  kHardSigmoid,
  kHardSwish,
  kSigmoid,
  kSwish,
  kTanh,
  kMish,
  kGelu,
  kGeluTanh,
  kAbs,
  kSqrt,
  kClip,
};

struct FusedActivation {
  ActivationKind kind = ActivationKind::kNone;
  float alpha = 0;
  float beta = 0;
  bool operator==(const FusedActivation&) const = default;
};

// Reads the name from attribute `name_attr`, and fuse_alpha and fuse_beta; an absent or zero alpha
// takes the default above (with its beta when that is absent too).
FusedActivation ReadActivation(AttrReader& reader, absl::string_view name_attr);

// True when oneDNN can apply the activation after a primitive.
bool IsPostOp(const FusedActivation& activation);
// True when a post-op keeps NaN as ApplyActivation does: oneDNN's clip makes a number of it.
bool KeepsNanAsPostOp(const FusedActivation& activation);
// True when a post-op keeps NaN and takes no longer than ApplyActivation on memory in the cache.
bool PaysAsPostOp(const FusedActivation& activation);
// Adds the activation to `ops`, and that its result is multiplied by `scale`.
// REQUIRES: IsPostOp(activation). May throw.
void AppendActivation(const FusedActivation& activation, dnnl::post_ops& ops, float scale = 1);

// Applies the activation to data[0, n).
void ApplyActivation(const FusedActivation& activation, float* data, int64_t n);
void ApplyActivation(const FusedActivation& activation, double* data, int64_t n);

}  // namespace interp::nn
