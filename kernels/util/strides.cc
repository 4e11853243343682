#include "kernels/util/strides.h"

namespace interp {

Strides StridesOf(const Shape& shape, Layout layout) {
  Strides strides = {};
  const bool channels_last = layout == Layout::kChannelsLast && shape.rank() >= 3;
  int64_t step = channels_last ? shape[1] : 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (channels_last && i == 1) {
      strides[i] = 1;
      continue;
    }
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

std::vector<int64_t> DenseStrides(absl::Span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0; stride *= dims[i]) strides[i] = stride;
  return strides;
}

}  // namespace interp
