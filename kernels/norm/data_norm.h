// data_norm: attributes, checks and the rule of slots, for both directions.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/attr_reader.h"
#include "core/shape.h"
#include "core/status.h"

namespace interp {

struct DataNormAttrs {
  int64_t slot_dim = -1;  // not positive: no slots
  bool scale_and_shift = false;
  float epsilon = 1e-4F;
};

inline DataNormAttrs ReadDataNormAttrs(AttrReader& reader) {
  return {reader.Int("slot_dim", -1), reader.Bool("enable_scale_and_shift", false),
          reader.Float("epsilon", 1e-4F)};
}

inline absl::Status CheckDataNormRows(const DataNormAttrs& attrs, const Shape& x) {
  if (x.rank() != 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected rank 2");
  }
  if (attrs.slot_dim > 0 && x[1] % attrs.slot_dim != 0) {
    return InvalidArgument("input 'X' has ", x[1], " columns, no multiple of 'slot_dim' ",
                           attrs.slot_dim);
  }
  return absl::OkStatus();
}

// Whether a slot whose first element is `first` shows nothing: it counts as zeros.
template <typename T>
bool ShowsNothing(T first) {
  return std::abs(first) < T(1e-7);
}

}  // namespace interp
