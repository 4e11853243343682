// The attribute of lookup_table, lookup_table_v2 and their gradients.
#pragma once

#include "core/attr_reader.h"

namespace interp {

struct LookupAttrs {
  int64_t padding_idx = -1;  // -1: none
};

inline LookupAttrs ReadLookupAttrs(AttrReader& reader) { return {reader.Long("padding_idx", -1)}; }

}  // namespace interp
