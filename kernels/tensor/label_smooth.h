// Attributes of label_smooth and of its gradient.
#pragma once

#include "core/attr_reader.h"

namespace interp {

struct LabelSmoothAttrs {
  float epsilon = 0;
};

inline LabelSmoothAttrs ReadLabelSmoothAttrs(AttrReader& reader) {
  return {reader.Float("epsilon", 0.0f)};
}

}  // namespace interp
