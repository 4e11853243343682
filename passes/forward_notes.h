// ForwardNotes: what the gradients of one block are to read of its forward part, as ops that note
// it there.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/program.h"

namespace interp {

// Positions hold until Finish, whatever is added. Thread-safety: none.
class ForwardNotes {
 public:
  explicit ForwardNotes(int32_t block) : block_(block) {}

  // Op `position` of the block may be one behind the last.
  void AddBefore(size_t position, Op op) { ops_.emplace_back(position, std::move(op)); }

  // Puts the ops into the block, those before one op in the order in which they were added.
  void Finish(Program& program);

 private:
  const int32_t block_;
  std::vector<std::pair<size_t, Op>> ops_;
};

}  // namespace interp
