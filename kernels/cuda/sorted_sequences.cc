#include "kernels/cuda/sorted_sequences.h"

#include <vector>

#include "kernels/cuda/numbers.h"
#include "kernels/cuda/row.h"
#include "kernels/cuda/sequence_copy.h"
#include "kernels/util/data_mover.h"

namespace interp::cuda {

absl::StatusOr<SortedSequences> SortedSequences::Make(KernelContext& ctx, const Tensor& input,
                                                      bool reverse) {
  const recurrent::StepOrder& order = ctx.state<RecurrenceState>().order.Get(input.lod[0], reverse);
  std::vector<int64_t> numbers = order.first;
  numbers.insert(numbers.end(), order.sequences.begin(), order.sequences.end());
  numbers.insert(numbers.end(), order.starts.begin(), order.starts.end());
  for (int64_t i = 0; i <= order.rows(); ++i) numbers.push_back(i);
  INTERP_ASSIGN_OR_RETURN(Workspace memory, ctx.workspace(numbers.size() * sizeof(int64_t)));
  INTERP_RETURN_IF_ERROR(StoreNumbers(numbers, memory.data<int64_t>(), StreamOf(ctx)));
  return SortedSequences(order, std::move(memory));
}

StepRows SortedSequences::rows() const {
  const int64_t* const first = numbers_.data<int64_t>();
  return {.first = first,
          .starts = first + 2 * order_->sequences.size(),
          .steps = order_->steps(),
          .stride = order_->stride};
}

absl::Status SortedSequences::MoveStates(const KernelContext& ctx, const Tensor& states,
                                         const void* from, void* to, bool to_sorted) const {
  const int64_t* const numbers = numbers_.data<int64_t>();
  const auto sequences = static_cast<int64_t>(order_->sequences.size());
  return CopySequences({.from = from,
                        .to = to,
                        .to_packed = to_sorted,
                        .offsets = numbers + 2 * sequences + std::ssize(order_->starts),
                        .starts = numbers + sequences,
                        .count = order_->rows(),
                        .rows = order_->rows(),
                        .row_bytes = RowSize(states) * static_cast<int64_t>(SizeOf(states.dtype))},
                       StreamOf(ctx));
}

absl::Status SortedSequences::GatherStates(const KernelContext& ctx, const Tensor& states,
                                           void* sorted) const {
  return MoveStates(ctx, states, states.raw_data(), sorted, /*to_sorted=*/true);
}

absl::Status SortedSequences::ScatterStates(const KernelContext& ctx, const void* sorted,
                                            Tensor& states) const {
  if (states.numel() == 0) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(FillZero(ctx, states));
  return MoveStates(ctx, states, sorted, states.mutable_raw_data(), /*to_sorted=*/false);
}

}  // namespace interp::cuda
