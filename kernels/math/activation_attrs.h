// Attributes of activations, with Paddle's defaults: what the functions and their gradients share.
#pragma once

#include "core/attr_reader.h"

namespace interp {

struct Relu6Attrs {
  float threshold;
  static Relu6Attrs Read(AttrReader& attrs) { return {attrs.Float("threshold", 6.0f)}; }
};

struct LeakyReluAttrs {
  float alpha;
  static LeakyReluAttrs Read(AttrReader& attrs) { return {attrs.Float("alpha", 0.02f)}; }
};

struct BReluAttrs {
  float low, high;
  static BReluAttrs Read(AttrReader& attrs) {
    return {attrs.Float("t_min", 0.0f), attrs.Float("t_max", 24.0f)};
  }
};

struct HardSigmoidAttrs {
  float slope, offset;
  static HardSigmoidAttrs Read(AttrReader& attrs) {
    return {attrs.Float("slope", 0.2f), attrs.Float("offset", 0.5f)};
  }
};

struct HardShrinkAttrs {
  float threshold;
  static HardShrinkAttrs Read(AttrReader& attrs) { return {attrs.Float("threshold", 0.5f)}; }
};

struct SoftShrinkAttrs {
  float lambda;
  static SoftShrinkAttrs Read(AttrReader& attrs) { return {attrs.Float("lambda", 0.5f)}; }
};

struct ThresholdedReluAttrs {
  float threshold, value;
  static ThresholdedReluAttrs Read(AttrReader& attrs) {
    return {attrs.Float("threshold", 1.0f), attrs.Float("value", 0.0f)};
  }
};

struct STanhAttrs {
  float a, b;
  static STanhAttrs Read(AttrReader& attrs) {
    return {attrs.Float("scale_a", 0.67f), attrs.Float("scale_b", 1.7159f)};
  }
};

struct EluAttrs {
  float alpha;
  static EluAttrs Read(AttrReader& attrs) { return {attrs.Float("alpha", 1.0f)}; }
};

struct SeluAttrs {
  float alpha, scale;
  static SeluAttrs Read(AttrReader& attrs) {
    return {attrs.Float("alpha", 1.6732632423543772f), attrs.Float("scale", 1.0507009873554805f)};
  }
};

struct CeluAttrs {
  float alpha;
  static CeluAttrs Read(AttrReader& attrs) {
    const float alpha = attrs.Float("alpha", 1.0f);
    if (alpha == 0.0f) attrs.Fail("attribute 'alpha' is 0, expected another value");
    return {alpha};
  }
};

// Programs of Paddle 2.x have no beta, older ones may.
struct SwishAttrs {
  float beta;
  static SwishAttrs Read(AttrReader& attrs) { return {attrs.Float("beta", 1.0f)}; }
};

struct SoftplusAttrs {
  float beta, threshold;
  static SoftplusAttrs Read(AttrReader& attrs) {
    return {attrs.Float("beta", 1.0f), attrs.Float("threshold", 20.0f)};
  }
};

struct SoftReluAttrs {
  float threshold;
  static SoftReluAttrs Read(AttrReader& attrs) { return {attrs.Float("threshold", 40.0f)}; }
};

struct MishAttrs {
  float threshold;
  static MishAttrs Read(AttrReader& attrs) { return {attrs.Float("threshold", 20.0f)}; }
};

struct GeluAttrs {
  bool approximate;
  static GeluAttrs Read(AttrReader& attrs) { return {attrs.Bool("approximate", false)}; }
};

struct LogitAttrs {
  float eps;
  static LogitAttrs Read(AttrReader& attrs) { return {attrs.Float("eps", 1e-6f)}; }
};

}  // namespace interp
