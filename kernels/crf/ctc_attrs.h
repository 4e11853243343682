// Attributes of warpctc and of its gradient.
#pragma once

#include <cstdint>

#include "core/attr_reader.h"

namespace interp::crf {

struct WarpCtcAttrs {
  int32_t blank = 0;
};

inline WarpCtcAttrs ReadWarpCtc(AttrReader& reader) { return {reader.Int("blank", 0)}; }

struct WarpCtcGradAttrs {
  bool norm_by_times = false;
};

inline WarpCtcGradAttrs ReadWarpCtcGrad(AttrReader& reader) {
  return {reader.Bool("norm_by_times", false)};
}

}  // namespace interp::crf
