#include "passes/inserted_ops.h"

#include <algorithm>

namespace interp {

void InsertedOps::PutInto(Block& block) {
  if (ops_.empty()) return;
  std::stable_sort(ops_.begin(), ops_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Op> old = std::exchange(block.ops, {});
  block.ops.reserve(old.size() + ops_.size());
  auto next = ops_.begin();
  for (size_t i = 0; i <= old.size(); ++i) {
    for (; next != ops_.end() && next->first == i; ++next) {
      block.ops.push_back(std::move(next->second));
    }
    if (i < old.size()) block.ops.push_back(std::move(old[i]));
  }
  ops_.clear();
}

}  // namespace interp
