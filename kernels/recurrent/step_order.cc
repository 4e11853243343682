#include "kernels/recurrent/step_order.h"

#include <algorithm>
#include <numeric>

namespace interp::recurrent {

StepOrder MakeStepOrder(const std::vector<int64_t>& offsets, bool reverse) {
  const auto length = [&](int64_t sequence) { return offsets[sequence + 1] - offsets[sequence]; };
  StepOrder order;
  order.stride = reverse ? -1 : 1;
  order.sequences.resize(offsets.size() - 1);
  std::iota(order.sequences.begin(), order.sequences.end(), 0);
  std::stable_sort(order.sequences.begin(), order.sequences.end(),
                   [&](int64_t a, int64_t b) { return length(a) > length(b); });
  order.first.reserve(order.sequences.size());
  for (const int64_t sequence : order.sequences) {
    order.first.push_back(reverse ? offsets[sequence + 1] - 1 : offsets[sequence]);
  }
  order.starts = {0};
  auto live = static_cast<int64_t>(order.sequences.size());
  for (int64_t t = 0;; ++t) {
    while (live > 0 && length(order.sequences[live - 1]) <= t) --live;
    if (live == 0) return order;
    order.starts.push_back(order.starts.back() + live);
  }
}

absl::StatusOr<Offsets> GateSequences(const Tensor& input, int64_t gates) {
  const Shape& shape = input.shape;
  if (shape.rank() == 2 && shape[1] > 0 && shape[1] % gates == 0) {
    return OnlyLevelOffsets(input, "Input");
  }
  return InvalidArgument("input 'Input' has shape ", ToString(shape),
                         ", expected [rows, columns] with a multiple of ", gates, " columns");
}

const StepOrder& StepOrderCache::Get(const std::vector<int64_t>& offsets, bool reverse) {
  if (offsets_ != offsets) {
    order_ = MakeStepOrder(offsets, reverse);
    offsets_ = offsets;
  }
  return order_;
}

}  // namespace interp::recurrent
