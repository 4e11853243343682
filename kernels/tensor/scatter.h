// The attribute of scatter.
#pragma once

#include "core/attr_reader.h"

namespace interp {

struct ScatterAttrs {
  bool overwrite = true;
};

inline ScatterAttrs ReadScatterAttrs(AttrReader& reader) {
  return {reader.Bool("overwrite", true)};
}

}  // namespace interp
