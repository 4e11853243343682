#include "passes/forward_notes.h"

#include <algorithm>

namespace interp {

void ForwardNotes::Finish(Program& program) {
  if (ops_.empty()) return;
  std::stable_sort(ops_.begin(), ops_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Op> old = std::exchange(program.blocks[block_].ops, {});
  std::vector<Op>& all = program.blocks[block_].ops;
  all.reserve(old.size() + ops_.size());
  auto next = ops_.begin();
  for (size_t i = 0; i <= old.size(); ++i) {
    for (; next != ops_.end() && next->first == i; ++next) all.push_back(std::move(next->second));
    if (i < old.size()) all.push_back(std::move(old[i]));
  }
  ops_.clear();
}

}  // namespace interp
