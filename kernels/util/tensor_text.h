// Tensors as text for people: what `print` shows and what a failed `assert` says.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace interp {

// "[1 2 3]": the first `most` values of a plain tensor, all of them when `most` is negative, with
// six digits.
std::string ValuesText(const Tensor& tensor, int64_t most);

// "{{0, 2, 5}}"; "{}" without LoD. As Paddle prints it: tools show "[[0,2,5]]".
std::string BracedLodText(const Lod& lod);

}  // namespace interp
