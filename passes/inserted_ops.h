// InsertedOps: ops for places of a block, all put there at once, so that positions hold until then.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/program.h"

namespace interp {

// Thread-safety: none.
class InsertedOps {
 public:
  // `position` may be one behind the last op. The result is valid until the next call.
  Op& AddBefore(size_t position, Op op) {
    return ops_.emplace_back(position, std::move(op)).second;
  }

  // Puts the ops into the block, those before one op in the order in which they were added, and
  // forgets them.
  void PutInto(Block& block);

 private:
  std::vector<std::pair<size_t, Op>> ops_;
};

}  // namespace interp
