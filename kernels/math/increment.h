// The attribute of increment.
#pragma once

#include "core/attr_reader.h"

namespace interp {

struct IncrementAttrs {
  float step;
  static IncrementAttrs Read(AttrReader& attrs) { return {attrs.Float("step", 1.0f)}; }
};

}  // namespace interp
