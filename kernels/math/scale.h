// The attributes of scale.
#pragma once

#include "core/attr_reader.h"

namespace interp {

struct ScaleAttrs {
  float scale, bias;
  bool bias_after_scale;
  static ScaleAttrs Read(AttrReader& attrs) {
    return {attrs.Float("scale", 1.0f), attrs.Float("bias", 0.0f),
            attrs.Bool("bias_after_scale", true)};
  }
};

}  // namespace interp
