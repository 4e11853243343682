// The attributes of addmm: Out = beta Input + alpha X Y.
#pragma once

#include <array>
#include <cstdint>

#include "core/attr_reader.h"
#include "core/tensor.h"

namespace interp::linalg {

struct AddmmAttrs {
  float alpha = 1;
  float beta = 1;
};

AddmmAttrs ReadAddmmAttrs(AttrReader& reader);

// How many elements of Input lie from one row and one column of the result to the next; 0 where it
// is repeated. REQUIRES: Input broadcasts to a matrix.
std::array<int64_t, 2> AddmmInputSteps(const Tensor& input);

}  // namespace interp::linalg
