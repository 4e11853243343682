// The attributes of tril_triu and its gradient.
#pragma once

#include "core/attr_reader.h"

namespace interp {

struct TrilTriuAttrs {
  int64_t diagonal = 0;
  bool lower = false;
};

inline TrilTriuAttrs ReadTrilTriuAttrs(AttrReader& reader) {
  return {reader.Int("diagonal", 0), reader.Bool("lower", false)};
}

}  // namespace interp
