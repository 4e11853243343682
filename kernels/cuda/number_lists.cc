#include "kernels/cuda/number_lists.h"

#include "absl/strings/str_cat.h"
#include "core/device/cuda/cuda_device.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/row.h"

namespace interp::cuda {

absl::Status StoreNumbers(const KernelContext& ctx, absl::Span<const int64_t> numbers,
                          int64_t* to) {
  // A copy costs the host about as much as this many launches.
  constexpr int64_t kMostLaunches = 2;
  const bool captured = IsCaptured(ctx.stream());
  if (captured && std::ssize(numbers) > kMostCapturedNumbers) {
    return absl::FailedPreconditionError(
        absl::StrCat(numbers.size(), " numbers of the host cannot be captured in a graph, which ",
                     "holds at most ", kMostCapturedNumbers, " of one work"));
  }
  if (captured || std::ssize(numbers) <= kMostLaunches * kNumbersPerLaunch) {
    return StoreByValue(numbers, to, StreamOf(ctx));
  }
  return UploadNow(ctx.stream(), to, numbers.data(), numbers.size() * sizeof(int64_t));
}

absl::StatusOr<NumberLists> NumberLists::Make(
    const KernelContext& ctx, std::initializer_list<absl::Span<const int64_t>> lists) {
  std::vector<int64_t> all;
  std::vector<int64_t> begins;
  for (const absl::Span<const int64_t> list : lists) {
    begins.push_back(std::ssize(all));
    all.insert(all.end(), list.begin(), list.end());
  }
  INTERP_ASSIGN_OR_RETURN(Workspace memory, ctx.workspace(all.size() * sizeof(int64_t)));
  INTERP_RETURN_IF_ERROR(StoreNumbers(ctx, all, memory.data<int64_t>()));
  return NumberLists(std::move(memory), std::move(begins));
}

}  // namespace interp::cuda
