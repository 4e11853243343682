#include <algorithm>
#include <optional>

#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows_by_index.h"
#include "kernels/cuda/sort.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

constexpr int kMostCoordinates = 9;  // the most dimensions that a tensor has

// Shorter ones are walked faster than they are sorted and searched.
constexpr int64_t kLongList = 128;

// A long list in order, equal numbers as they were; null: the list is walked as it is.
struct SortedList {
  const void* indices = nullptr;
  const int64_t* positions = nullptr;  // in the list
};

// The first of `count` sorted numbers that is not below `wanted`.
template <typename Index>
__device__ int64_t FirstNotBelow(const Index* sorted, int64_t count, int64_t wanted) {
  int64_t first = 0;
  for (int64_t left = count; left > 0;) {
    const int64_t half = left / 2;
    const bool below = sorted[first + half] < wanted;
    first = below ? first + half + 1 : first;
    left = below ? left - half - 1 : half;
  }
  return first;
}

// A row of threads for each row of the output; all of them walk the list, or the row's part of it,
// together.
template <typename T, typename Index>
__global__ void __launch_bounds__(kBlockThreads)
    UpdateEachRow(RowUpdate update, const RowsByIndex args, const SortedList sorted) {
  using C = ComputeType<T>;
  const bool walks_all = sorted.indices == nullptr;
  const Index* const indices = static_cast<const Index*>(walks_all ? args.indices : sorted.indices);
  const T* const old = static_cast<const T*>(args.old);
  T* const out = static_cast<T*>(args.out);
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < args.outer * args.rows;
       row += int64_t{gridDim.x} * blockDim.y) {
    const int64_t wanted = row % args.rows;
    const int64_t first = walks_all ? 0 : FirstNotBelow(indices, args.count, wanted);
    const T* const updates =
        static_cast<const T*>(args.updates) + row / args.rows * args.count * args.columns;
    for (int64_t column = threadIdx.x; column < args.columns; column += blockDim.x) {
      const int64_t at = row * args.columns + column;
      C value = update == RowUpdate::kSum ? C{0} : ToCompute(old[at]);
      bool found = false;
      for (int64_t i = first; i < args.count; ++i) {
        const int64_t index = indices[i];
        if (!walks_all && index != wanted) break;
        if (index != wanted || index == args.skipped_index) continue;
        if (!found && update == RowUpdate::kReplace) value = C{0};
        found = true;
        const int64_t at_list = walks_all ? i : sorted.positions[i];
        const C next =
            args.updates == nullptr ? C{0} : ToCompute(updates[at_list * args.columns + column]);
        value = update == RowUpdate::kLast ? next : WrapAdd(value, next);
      }
      out[at] = FromCompute<T>(value);
    }
  }
}

struct Lengths {
  int depth;
  int64_t values[kMostCoordinates];
};

template <typename Index>
__global__ void __launch_bounds__(kBlockThreads)
    NumberTuples(const Index* tuples, int64_t count, const Lengths lengths, int64_t* rows) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    int64_t row = 0;
    for (int d = 0; d < lengths.depth && row >= 0; ++d) {
      const int64_t value = tuples[i * lengths.depth + d];
      row = value >= 0 && value < lengths.values[d] ? row * lengths.values[d] + value : -1;
    }
    rows[i] = row;
  }
}

absl::Status CheckIndexType(DType dtype) {
  if (dtype == DType::kInt32 || dtype == DType::kInt64) return absl::OkStatus();
  return Unimplemented("indices of ", Name(dtype), " on a GPU");
}

absl::Status SortList(const RowsByIndex& arguments, void* indices, int64_t* positions,
                      TakeWorkspace take_workspace, cudaStream_t stream) {
  return Sort(arguments.index_dtype,
              {.x = arguments.indices,
               .lines = {.length = arguments.count},
               .keep = arguments.count,
               .values = indices,
               .indices = positions},
              take_workspace, stream);
}

}  // namespace

absl::Status UpdateRows(DType dtype, RowUpdate update, const RowsByIndex& arguments,
                        TakeWorkspace take_workspace, cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckIndexType(arguments.index_dtype));
  if (arguments.outer * arguments.rows * arguments.columns == 0) return absl::OkStatus();
  std::optional<Workspace> list;
  SortedList sorted;
  if (arguments.count >= kLongList) {
    const size_t bytes = static_cast<size_t>(arguments.count) * sizeof(int64_t);
    INTERP_ASSIGN_OR_RETURN(list, take_workspace(2 * bytes));
    int64_t* const positions = list->data<int64_t>();
    sorted = {.indices = positions + arguments.count, .positions = positions};
    INTERP_RETURN_IF_ERROR(
        SortList(arguments, positions + arguments.count, positions, take_workspace, stream));
  }
  return WithNumbers("an update of rows", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto kernel = arguments.index_dtype == DType::kInt32 ? UpdateEachRow<T, int32_t>
                                                               : UpdateEachRow<T, int64_t>;
    return Launch(kernel, RowBlocks(arguments.outer * arguments.rows, arguments.columns),
                  RowThreads(arguments.columns), /*shared_bytes=*/0, stream, update, arguments,
                  sorted);
  });
}

absl::Status RowsOfTuples(DType index_dtype, const void* tuples, int64_t count,
                          absl::Span<const int64_t> lengths, int64_t* rows, cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckIndexType(index_dtype));
  if (lengths.size() > kMostCoordinates) {
    return InvalidArgument("tuples of ", lengths.size(), " coordinates, expected at most ",
                           kMostCoordinates);
  }
  if (count == 0) return absl::OkStatus();
  Lengths known = {static_cast<int>(lengths.size()), {}};
  std::copy(lengths.begin(), lengths.end(), known.values);
  const unsigned blocks = BlocksFor(count, kBlockThreads);
  if (index_dtype == DType::kInt32) {
    return Launch(NumberTuples<int32_t>, blocks, kBlockThreads, /*shared_bytes=*/0, stream,
                  static_cast<const int32_t*>(tuples), count, known, rows);
  }
  return Launch(NumberTuples<int64_t>, blocks, kBlockThreads, /*shared_bytes=*/0, stream,
                static_cast<const int64_t*>(tuples), count, known, rows);
}

}  // namespace interp::cuda
