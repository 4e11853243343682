// The sequences of a LoD in the order in which recurrent ops step through them
// (kernels/recurrent/step_order.h), on a GPU.
#pragma once

#include <cstdint>

#include "kernels/cuda/batched_product.h"
#include "kernels/cuda/number_lists.h"
#include "kernels/cuda/step_rows.h"
#include "kernels/recurrent/step_order.h"

namespace interp::cuda {

// What an instruction of a recurrence keeps.
struct RecurrenceState : ProductState {
  recurrent::StepOrderCache order;
};

class SortedSequences {
 public:
  // Those of `input`, which has one level of LoD, from their ends where `reverse`. `ctx` runs the
  // op; its state is a RecurrenceState and outlives the result. Enqueues what brings the numbers to
  // the GPU.
  static absl::StatusOr<SortedSequences> Make(KernelContext& ctx, const Tensor& input,
                                              bool reverse);

  const recurrent::StepOrder& order() const { return *order_; }
  StepRows rows() const;

  // sorted [order.rows(), width] = the rows of `states` [sequences, width] that have steps.
  absl::Status GatherStates(const KernelContext& ctx, const Tensor& states, void* sorted) const;
  // The other way; rows of empty sequences become 0.
  absl::Status ScatterStates(const KernelContext& ctx, const void* sorted, Tensor& states) const;

 private:
  SortedSequences(const recurrent::StepOrder& order, NumberLists numbers)
      : order_(&order), numbers_(std::move(numbers)) {}

  absl::Status MoveStates(const KernelContext& ctx, const Tensor& states, const void* from,
                          void* to, bool to_sorted) const;

  const recurrent::StepOrder* order_;
  NumberLists numbers_;  // first, sequences, starts, and 0, 1, 2 ... for as many rows
};

}  // namespace interp::cuda
