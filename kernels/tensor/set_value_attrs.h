// The attributes of set_value, for its kernel of any place.
#pragma once

#include <complex>
#include <cstddef>
#include <vector>

#include "core/op_def.h"
#include "kernels/tensor/set_value_part.h"

namespace interp::set_value {

// Positions of input slots.
inline constexpr int kInput = 0;
inline constexpr int kValueTensor = 1;
inline constexpr PartSlots kPartSlots = {.starts = 2, .ends = 3, .steps = 4};

struct SetValueAttrs {
  PartAttrs part;
  // The value where there is no ValueTensor; one of the lists, the others are empty.
  Shape shape;
  std::vector<double> floats;
  std::vector<int64_t> integers;
  std::vector<std::complex<double>> complexes;

  size_t count() const { return floats.size() + integers.size() + complexes.size(); }
};

// The listed value as elements of `dtype`.
std::vector<std::byte> ValuesAs(DType dtype, const SetValueAttrs& attrs);

}  // namespace interp::set_value
