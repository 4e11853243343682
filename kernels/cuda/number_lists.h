// Offsets and other numbers of the host that a row needs on the GPU.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "core/op_def.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/row.h"
#include "kernels/sequence/lod.h"

namespace interp::cuda {

// Several lists of numbers on the GPU, one after the other, for work that is enqueued while the
// object lives. Thread-safety: none.
class NumberLists {
 public:
  // ResourceExhausted without memory for them.
  static absl::StatusOr<NumberLists> Make(const KernelContext& ctx,
                                          std::initializer_list<Offsets> lists) {
    std::vector<int64_t> all;
    std::vector<int64_t> begins;
    for (const Offsets list : lists) {
      begins.push_back(std::ssize(all));
      all.insert(all.end(), list.begin(), list.end());
    }
    INTERP_ASSIGN_OR_RETURN(Workspace memory, ctx.workspace(all.size() * sizeof(int64_t)));
    INTERP_RETURN_IF_ERROR(StoreNumbers(all, memory.data<int64_t>(), StreamOf(ctx)));
    return NumberLists(std::move(memory), std::move(begins));
  }

  // Memory of the device.
  const int64_t* list(size_t i) const { return memory_.data<int64_t>() + begins_[i]; }

 private:
  NumberLists(Workspace memory, std::vector<int64_t> begins)
      : memory_(std::move(memory)), begins_(std::move(begins)) {}

  Workspace memory_;
  std::vector<int64_t> begins_;
};

}  // namespace interp::cuda
