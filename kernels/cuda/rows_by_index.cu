#include <algorithm>

#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows_by_index.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

constexpr int kMostCoordinates = 9;  // the most dimensions that a tensor has

// A row of threads for each row of the output; all of them walk the list together.
template <typename T, typename Index>
__global__ void __launch_bounds__(kBlockThreads)
    UpdateEachRow(RowUpdate update, const RowsByIndex args) {
  using C = ComputeType<T>;
  const Index* const indices = static_cast<const Index*>(args.indices);
  const T* const old = static_cast<const T*>(args.old);
  T* const out = static_cast<T*>(args.out);
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < args.outer * args.rows;
       row += int64_t{gridDim.x} * blockDim.y) {
    const int64_t wanted = row % args.rows;
    const T* const updates =
        static_cast<const T*>(args.updates) + row / args.rows * args.count * args.columns;
    for (int64_t column = threadIdx.x; column < args.columns; column += blockDim.x) {
      const int64_t at = row * args.columns + column;
      C value = update == RowUpdate::kSum ? C{0} : ToCompute(old[at]);
      bool found = false;
      for (int64_t i = 0; i < args.count; ++i) {
        const int64_t index = indices[i];
        if (index != wanted || index == args.skipped_index) continue;
        if (!found && update == RowUpdate::kReplace) value = C{0};
        found = true;
        const C next =
            args.updates == nullptr ? C{0} : ToCompute(updates[i * args.columns + column]);
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

}  // namespace

absl::Status UpdateRows(DType dtype, RowUpdate update, const RowsByIndex& arguments,
                        cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckIndexType(arguments.index_dtype));
  if (arguments.outer * arguments.rows * arguments.columns == 0) return absl::OkStatus();
  return WithNumbers("an update of rows", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto kernel = arguments.index_dtype == DType::kInt32 ? UpdateEachRow<T, int32_t>
                                                               : UpdateEachRow<T, int64_t>;
    return Launch(kernel, RowBlocks(arguments.outer * arguments.rows, arguments.columns),
                  RowThreads(arguments.columns), /*shared_bytes=*/0, stream, update, arguments);
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
