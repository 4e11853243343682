#include "kernels/cuda/sorted_sequences.h"

#include <numeric>
#include <vector>

#include "kernels/cuda/row.h"
#include "kernels/cuda/sequence_copy.h"
#include "kernels/util/data_mover.h"

namespace interp::cuda {
namespace {

// The order of SortedSequences::numbers_.
enum List : size_t { kFirst, kSequences, kStarts, kCounting };

}  // namespace

absl::StatusOr<SortedSequences> SortedSequences::Make(KernelContext& ctx, const Tensor& input,
                                                      bool reverse) {
  const recurrent::StepOrder& order = ctx.state<RecurrenceState>().order.Get(input.lod[0], reverse);
  std::vector<int64_t> counting(static_cast<size_t>(order.rows()) + 1);
  std::iota(counting.begin(), counting.end(), 0);
  INTERP_ASSIGN_OR_RETURN(NumberLists numbers, NumberLists::Make(ctx, {order.first, order.sequences,
                                                                       order.starts, counting}));
  return SortedSequences(order, std::move(numbers));
}

StepRows SortedSequences::rows() const {
  return {.first = numbers_.list(kFirst),
          .starts = numbers_.list(kStarts),
          .steps = order_->steps(),
          .stride = order_->stride};
}

absl::Status SortedSequences::MoveStates(const KernelContext& ctx, const Tensor& states,
                                         const void* from, void* to, bool to_sorted) const {
  return CopySequences({.from = from,
                        .to = to,
                        .to_packed = to_sorted,
                        .offsets = numbers_.list(kCounting),
                        .starts = numbers_.list(kSequences),
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
