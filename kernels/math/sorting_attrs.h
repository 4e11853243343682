// Attributes of argsort, top_k and of their gradients.
#pragma once

#include <cstdint>

#include "core/op_def.h"

namespace interp {

struct ArgSortAttrs {
  int64_t axis = -1;
  bool descending = false;
};

struct TopKAttrs {
  int64_t k = 1;
  int64_t axis = -1;
  bool largest = true;
  bool sorted = true;
  bool partial_sort = false;  // whatever k is
};

// Of the gradients, which need no other.
struct SortedAxisAttrs {
  int64_t axis = -1;
};

}  // namespace interp
