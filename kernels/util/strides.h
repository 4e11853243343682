// Strides: how far neighbours along a dimension of a dense tensor lie apart, in elements.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/tensor.h"

namespace interp {

// Elements from one index to the next along every logical dimension of a dense tensor.
using Strides = std::array<int64_t, kMaxRank>;
Strides StridesOf(const Shape& shape, Layout layout);
inline Strides StridesOf(const Tensor& tensor) { return StridesOf(tensor.shape, tensor.layout); }

// The same for row-major dimensions that are no shape of a tensor and may be more than kMaxRank.
std::vector<int64_t> DenseStrides(absl::Span<const int64_t> dims);

}  // namespace interp
