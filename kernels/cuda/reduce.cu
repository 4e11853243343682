#include "kernels/cuda/divisor.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

constexpr int kMaxDims = 5;  // kept or reduced ones, after neighbours of one kind are merged
constexpr int kTileColumns = 32;
constexpr int kTileRows = 8;

// Dimensions of the input, last first, and how far their elements are apart.
struct Dims {
  int count;
  Divisor lengths[kMaxDims];
  int64_t strides[kMaxDims];
  int64_t size;

  __device__ int64_t OffsetOf(int64_t index) const {
    if (count == 1) return index * strides[0];
    auto left = static_cast<uint32_t>(index);
    int64_t offset = 0;
    for (int d = 0; d < count; ++d) offset += lengths[d].Split(left) * strides[d];
    return offset;
  }
};

struct Plan {
  ReduceOp op;
  Dims kept;
  Dims reduced;
};

template <typename T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, ComputeType<T>>;

template <typename A>
__device__ A Start(ReduceOp op) {
  if (op == ReduceOp::kProd) return A{1};
  if (op == ReduceOp::kMax) return Lowest<A>();
  if (op == ReduceOp::kMin) return Highest<A>();
  return A{0};
}

template <typename A>
__device__ A Fold(ReduceOp op, A a, A b) {
  if (op == ReduceOp::kProd) return WrapMul(a, b);
  if (op == ReduceOp::kMax) return b > a || b != b ? b : a;
  if (op == ReduceOp::kMin) return b < a || b != b ? b : a;
  return WrapAdd(a, b);
}

template <typename T>
__device__ T Finish(const Plan& plan, Accumulator<T> total) {
  using A = Accumulator<T>;
  if (plan.op == ReduceOp::kMean) total = total / static_cast<A>(plan.reduced.size);
  return FromCompute<T>(static_cast<ComputeType<T>>(total));
}

// The last dimension is reduced: the threads of a row read neighbours.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) ReduceRows(const Plan plan, const T* x, T* out) {
  using A = Accumulator<T>;
  const ReduceOp op = plan.op;
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < plan.kept.size;
       row += int64_t{gridDim.x} * blockDim.y) {
    const T* const first = x + plan.kept.OffsetOf(row);
    A total = Start<A>(op);
    for (int64_t i = threadIdx.x; i < plan.reduced.size; i += blockDim.x) {
      total = Fold(op, total, static_cast<A>(ToCompute(first[plan.reduced.OffsetOf(i)])));
    }
    total = FoldRow(total, [op](A a, A b) { return Fold(op, a, b); });
    if (threadIdx.x == 0) out[row] = Finish<T>(plan, total);
  }
}

// The last dimension is kept: threads with neighbouring outputs read neighbours. Each output is
// folded by the kTileRows threads of one column.
template <typename T>
__global__ void __launch_bounds__(kTileColumns* kTileRows)
    ReduceColumns(const Plan plan, const T* x, T* out) {
  using A = Accumulator<T>;
  INTERP_SHARED(A, totals, [kTileRows][kTileColumns]);
  const ReduceOp op = plan.op;
  const int64_t tiles = (plan.kept.size + kTileColumns - 1) / kTileColumns;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t column = tile * kTileColumns + threadIdx.x;
    A total = Start<A>(op);
    if (column < plan.kept.size) {
      const T* const first = x + plan.kept.OffsetOf(column);
      for (int64_t i = threadIdx.y; i < plan.reduced.size; i += kTileRows) {
        total = Fold(op, total, static_cast<A>(ToCompute(first[plan.reduced.OffsetOf(i)])));
      }
    }
    totals[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y == 0 && column < plan.kept.size) {
      for (int row = 1; row < kTileRows; ++row) {
        total = Fold(op, total, totals[row][threadIdx.x]);
      }
      out[column] = Finish<T>(plan, total);
    }
    __syncthreads();  // the next tile writes to `totals`
  }
}

// Splits the dimensions into kept and reduced ones, neighbours of one kind merged; whether the last
// one is kept.
absl::StatusOr<bool> MakePlan(absl::Span<const int64_t> dims, uint32_t reduced, Plan& plan) {
  plan.kept = plan.reduced = {.count = 0, .lengths = {}, .strides = {}, .size = 1};
  bool last_is_kept = false;
  bool first = true;
  int64_t stride = 1;
  for (auto d = static_cast<int>(dims.size()); d-- > 0;) {
    const bool is_reduced = (reduced >> d & 1) != 0;
    int64_t length = dims[d];
    while (d > 0 && ((reduced >> (d - 1) & 1) != 0) == is_reduced) length *= dims[--d];
    Dims& kind = is_reduced ? plan.reduced : plan.kept;
    kind.size *= length;
    if (length == 1) continue;
    if (kind.count == kMaxDims) {
      return Unimplemented("a reduction over more than ", kMaxDims, " groups of dimensions");
    }
    if (first) last_is_kept = !is_reduced;
    first = false;
    kind.strides[kind.count] = stride;
    if (length > 0 && length <= kMostElements) {
      kind.lengths[kind.count] = Divisor(static_cast<uint32_t>(length));
    }
    ++kind.count;
    stride *= length;
  }
  for (const Dims* kind : {&plan.kept, &plan.reduced}) {
    if (kind->count > 1 && kind->size > kMostElements) {
      return Unimplemented("a reduction of ", kind->size, " elements that are not neighbours");
    }
  }
  return last_is_kept;
}

}  // namespace

absl::Status Reduce(DType dtype, ReduceOp op, const void* x, absl::Span<const int64_t> dims,
                    uint32_t reduced, void* out, cudaStream_t stream) {
  Plan plan = {};
  plan.op = op;
  INTERP_ASSIGN_OR_RETURN(const bool columns, MakePlan(dims, reduced, plan));
  if (plan.kept.size == 0) return absl::OkStatus();
  if (op == ReduceOp::kMean && plan.reduced.size == 0 && !IsFloating(dtype)) {
    return InvalidArgument("the mean of no integers does not exist");
  }
  return WithNumbers("a reduction", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* const from = static_cast<const T*>(x);
    T* const to = static_cast<T*>(out);
    if (columns) {
      return Launch(ReduceColumns<T>, BlocksFor(plan.kept.size, kTileColumns),
                    dim3(kTileColumns, kTileRows), /*shared_bytes=*/0, stream, plan, from, to);
    }
    return Launch(ReduceRows<T>, RowBlocks(plan.kept.size, plan.reduced.size),
                  RowThreads(plan.reduced.size), /*shared_bytes=*/0, stream, plan, from, to);
  });
}

}  // namespace interp::cuda
