#include "kernels/util/loops.h"

namespace interp {

std::array<int, kMaxRank> MemoryOrder(const Tensor& tensor) {
  const int rank = tensor.shape.rank();
  std::array<int, kMaxRank> order = {};
  for (int i = 0; i < rank; ++i) order[i] = i;
  if (tensor.layout == Layout::kChannelsLast && rank > 2) {
    for (int i = 1; i + 1 < rank; ++i) order[i] = i + 1;
    order[rank - 1] = 1;
  }
  return order;
}

LoopCursor::LoopCursor(const LoopNest& nest, int64_t index) : nest_(nest) {
  // Iteration 0 is 0 everywhere, also in a nest without iterations.
  for (int i = nest.size() - 1; i >= 0 && index != 0; --i) {
    const Loop& loop = nest[i];
    index_[i] = index % loop.size;
    index /= loop.size;
    x_ += index_[i] * loop.x_step;
    y_ += index_[i] * loop.y_step;
  }
}

}  // namespace interp
