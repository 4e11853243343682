// Parts: how folds with few results and many elements keep a whole GPU busy. The elements of each
// result are cut into parts, which blocks fold side by side; a second launch folds the totals of
// the parts in their order. How many there are depends on the shape alone, so the bits are the same
// in every run. Included by `.cu` files alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/take_workspace.h"

namespace interp::cuda {

struct Parts {
  int64_t count = 1;  // of each result
  int64_t size = 0;   // elements of a result

  // What a row of threads or a block folds: elements [begin, end) of what has number `of`, a result
  // or a tile of them.
  struct Task {
    int64_t of;
    int64_t part;
    int64_t begin;
    int64_t end;
  };
  __device__ Task TaskAt(int64_t index) const {
    if (count == 1) return {index, 0, 0, size};
    const int64_t part = index % count;
    return {index / count, part, size * part / count, size * (part + 1) / count};
  }
};

// Neighbouring results that a tile of threads folds, a column each: those with neighbouring results
// read neighbours.
inline constexpr int kTileColumns = 32;
__host__ __device__ inline int64_t TilesOf(int64_t results) {
  return (results + kTileColumns - 1) / kTileColumns;
}

// Parts of at least `least` elements, where `blocks` blocks without parts are too few.
inline Parts CutIntoParts(int64_t size, int64_t blocks, int64_t least) {
  constexpr int64_t kBusyBlocks = 1024;
  const int64_t most = std::min(size / least, kBusyBlocks / std::max<int64_t>(blocks, 1));
  return {.count = std::max<int64_t>(most, 1), .size = size};
}

// Temporary memory for `results` totals of each part; none where there is one part.
template <typename Total>
absl::StatusOr<std::optional<Workspace>> TakeTotals(const Parts& parts, int64_t results,
                                                    TakeWorkspace take_workspace) {
  std::optional<Workspace> totals;
  if (parts.count == 1) return totals;
  INTERP_ASSIGN_OR_RETURN(
      totals, take_workspace(static_cast<size_t>(results * parts.count) * sizeof(Total)));
  return totals;
}
template <typename Total>
Total* DataOf(const std::optional<Workspace>& totals) {
  return totals.has_value() ? totals->template data<Total>() : nullptr;
}

// Kernels are given a target: `parts`, `totals`, which is null where results have one part, and how
// to fold: Total, Start(), Fold(a, b), and Finish(result, total), which writes the result.
//
// What the threads of a part have found for one result, by one of them.
template <typename Target>
__device__ void StoreTotal(const Target& target, int64_t result, int64_t part,
                           typename Target::Total total) {
  if (target.totals == nullptr) return target.Finish(result, total);
  target.totals[result * target.parts.count + part] = total;
}

template <typename Target>
__global__ void __launch_bounds__(kBlockThreads) FoldParts(const Target target, int64_t results) {
  using Total = typename Target::Total;
  for (int64_t result = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; result < results;
       result += int64_t{gridDim.x} * blockDim.y) {
    const Total* const totals = target.totals + result * target.parts.count;
    Total total = target.Start();
    for (int64_t part = threadIdx.x; part < target.parts.count; part += blockDim.x) {
      total = target.Fold(total, totals[part]);
    }
    total = FoldRow(total, [&target](Total a, Total b) { return target.Fold(a, b); });
    if (threadIdx.x == 0) target.Finish(result, total);
  }
}

// Behind the launch that has stored the totals. Nothing where results have one part.
template <typename Target>
absl::Status LaunchFoldParts(const Target& target, int64_t results, cudaStream_t stream) {
  if (target.parts.count == 1) return absl::OkStatus();
  return Launch(FoldParts<Target>, RowBlocks(results, target.parts.count),
                RowThreads(target.parts.count), /*shared_bytes=*/0, stream, target, results);
}

}  // namespace interp::cuda
