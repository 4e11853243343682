#include <cmath>

#include "kernels/cuda/divisor.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/sequences.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

constexpr int kMaxDims = 5;  // kept or reduced ones, after neighbours of one kind are merged
constexpr int kTileRows = 8;
// Elements of one result that are worth a block.
constexpr int64_t kRowPart = 8192;
constexpr int64_t kColumnPart = 1024;

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

// What is kept and what is reduced.
struct Plan {
  Dims kept;
  Dims reduced;
};

// As on the host. Memory takes longer than the sums.
template <typename T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

// How elements of T are folded: Start, then Fold with Map of each, then Finish.
template <typename T>
struct OpReducer {
  using Total = Accumulator<T>;
  ReduceOp op;

  __device__ Total Start() const {
    if (op == ReduceOp::kProd) return Total{1};
    if (op == ReduceOp::kMax) return Lowest<Total>();
    if (op == ReduceOp::kMin) return Highest<Total>();
    return Total{0};
  }
  __device__ Total Map(T x) const { return static_cast<Total>(ToCompute(x)); }
  __device__ Total Fold(Total a, Total b) const {
    if (op == ReduceOp::kProd) return WrapMul(a, b);
    if (op == ReduceOp::kMax) return b > a || b != b ? b : a;
    if (op == ReduceOp::kMin) return b < a || b != b ? b : a;
    return WrapAdd(a, b);
  }
  __device__ T Finish(Total total, int64_t count) const {
    if (op == ReduceOp::kMean) total = total / static_cast<Total>(count);
    return FromCompute<T>(static_cast<ComputeType<T>>(total));
  }
};

enum class NormKind : int8_t { kCount, kMagnitudes, kEuclidean, kSquares, kMax, kMin, kPowers };

// Norms, of which sums are taken in double as on the host.
template <typename T>
struct NormReducer {
  using Total = double;
  NormKind kind;
  T power = 1;
  double root = 1;

  __device__ double Start() const { return kind == NormKind::kMin ? Highest<double>() : 0.0; }
  __device__ double Map(T x) const {
    switch (kind) {
      case NormKind::kCount:
        return x != T{0} ? 1 : 0;
      case NormKind::kEuclidean:
      case NormKind::kSquares:
        return double{x} * x;
      case NormKind::kPowers:
        return pow(fabs(x), power);
      default:
        return fabs(x);
    }
  }
  __device__ double Fold(double a, double b) const {
    if (kind == NormKind::kMax) return b > a || b != b ? b : a;
    if (kind == NormKind::kMin) return b < a || b != b ? b : a;
    return a + b;
  }
  __device__ T Finish(double total, int64_t) const {
    if (kind == NormKind::kEuclidean) total = sqrt(total);
    if (kind == NormKind::kPowers) total = pow(total, root);
    return static_cast<T>(total);
  }
};

// Where totals go.
template <typename T, typename Reducer>
struct ReductionTarget {
  using Total = typename Reducer::Total;

  Reducer reducer;
  Parts parts;
  T* out;
  Total* totals;  // of parts; null: results have one

  __device__ Total Start() const { return reducer.Start(); }
  __device__ Total Fold(Total a, Total b) const { return reducer.Fold(a, b); }
  __device__ void Finish(int64_t result, Total total) const {
    out[result] = reducer.Finish(total, parts.size);
  }
};

// The last dimension is reduced: the threads of a row read neighbours.
template <typename T, typename Reducer>
__global__ void __launch_bounds__(kBlockThreads)
    ReduceRows(const Plan plan, const ReductionTarget<T, Reducer> target, const T* x) {
  using A = typename Reducer::Total;
  const Reducer& reducer = target.reducer;
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
       row < plan.kept.size * target.parts.count; row += int64_t{gridDim.x} * blockDim.y) {
    const Parts::Task task = target.parts.TaskAt(row);
    const T* const first = x + plan.kept.OffsetOf(task.of);
    A total = reducer.Start();
    for (int64_t i = task.begin + threadIdx.x; i < task.end; i += blockDim.x) {
      total = reducer.Fold(total, reducer.Map(first[plan.reduced.OffsetOf(i)]));
    }
    total = FoldRow(total, [&reducer](A a, A b) { return reducer.Fold(a, b); });
    if (threadIdx.x == 0) StoreTotal(target, task.of, task.part, total);
  }
}

// The last dimension is kept: threads with neighbouring outputs read neighbours. Each output is
// folded by the kTileRows threads of one column.
template <typename T, typename Reducer>
__global__ void __launch_bounds__(kTileColumns* kTileRows)
    ReduceColumns(const Plan plan, const ReductionTarget<T, Reducer> target, const T* x) {
  using A = typename Reducer::Total;
  INTERP_SHARED(A, totals, [kTileRows][kTileColumns]);
  const Reducer& reducer = target.reducer;
  const int64_t tasks = TilesOf(plan.kept.size) * target.parts.count;
  for (int64_t index = blockIdx.x; index < tasks; index += gridDim.x) {
    const Parts::Task task = target.parts.TaskAt(index);
    const int64_t column = task.of * kTileColumns + threadIdx.x;
    A total = reducer.Start();
    if (column < plan.kept.size) {
      const T* const first = x + plan.kept.OffsetOf(column);
      for (int64_t i = task.begin + threadIdx.y; i < task.end; i += kTileRows) {
        total = reducer.Fold(total, reducer.Map(first[plan.reduced.OffsetOf(i)]));
      }
    }
    totals[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y == 0 && column < plan.kept.size) {
      for (int row = 1; row < kTileRows; ++row) {
        total = reducer.Fold(total, totals[row][threadIdx.x]);
      }
      StoreTotal(target, column, task.part, total);
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

// `last_is_kept` as MakePlan says.
template <typename T, typename Reducer>
absl::Status LaunchReduction(const Plan& plan, bool last_is_kept, const Reducer& reducer,
                             const void* x, void* out, TakeWorkspace take_workspace,
                             cudaStream_t stream) {
  using Total = typename Reducer::Total;
  const T* const from = static_cast<const T*>(x);
  const int64_t results = plan.kept.size;
  const Parts parts = last_is_kept
                          ? CutIntoParts(plan.reduced.size, TilesOf(plan.kept.size), kColumnPart)
                          : CutIntoParts(plan.reduced.size, results, kRowPart);
  INTERP_ASSIGN_OR_RETURN(const std::optional<Workspace> memory,
                          TakeTotals<Total>(parts, results, take_workspace));
  const ReductionTarget<T, Reducer> target = {reducer, parts, static_cast<T*>(out),
                                              DataOf<Total>(memory)};
  if (last_is_kept) {
    INTERP_RETURN_IF_ERROR(
        Launch(ReduceColumns<T, Reducer>,
               BlocksFor(TilesOf(plan.kept.size) * parts.count, /*work_per_block=*/1),
               dim3(kTileColumns, kTileRows), /*shared_bytes=*/0, stream, plan, target, from));
  } else {
    INTERP_RETURN_IF_ERROR(
        Launch(ReduceRows<T, Reducer>, RowBlocks(results * parts.count, plan.reduced.size),
               RowThreads(plan.reduced.size), /*shared_bytes=*/0, stream, plan, target, from));
  }
  return LaunchFoldParts(target, results, stream);
}

template <typename T>
NormReducer<T> NormReducerOf(const ReduceNorm& norm) {
  if (norm.squared) return {NormKind::kSquares};
  if (norm.order == 0) return {NormKind::kCount};
  if (norm.order == 1) return {NormKind::kMagnitudes};
  if (norm.order == 2) return {NormKind::kEuclidean};
  if (std::isinf(norm.order)) return {norm.order > 0 ? NormKind::kMax : NormKind::kMin};
  return {NormKind::kPowers, static_cast<T>(norm.order), 1.0 / norm.order};
}

}  // namespace

absl::Status Reduce(DType dtype, ReduceOp op, const void* x, absl::Span<const int64_t> dims,
                    uint32_t reduced, void* out, TakeWorkspace take_workspace,
                    cudaStream_t stream) {
  Plan plan = {};
  INTERP_ASSIGN_OR_RETURN(const bool last_is_kept, MakePlan(dims, reduced, plan));
  if (plan.kept.size == 0) return absl::OkStatus();
  if (op == ReduceOp::kMean && plan.reduced.size == 0 && !IsFloating(dtype)) {
    return InvalidArgument("the mean of no integers does not exist");
  }
  return WithNumbers("a reduction", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchReduction<T>(plan, last_is_kept, OpReducer<T>{op}, x, out, take_workspace, stream);
  });
}

absl::Status Reduce(DType dtype, const ReduceNorm& norm, const void* x,
                    absl::Span<const int64_t> dims, uint32_t reduced, void* out,
                    TakeWorkspace take_workspace, cudaStream_t stream) {
  Plan plan = {};
  INTERP_ASSIGN_OR_RETURN(const bool last_is_kept, MakePlan(dims, reduced, plan));
  if (plan.kept.size == 0) return absl::OkStatus();
  return WithWideFloats("a norm", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchReduction<T>(plan, last_is_kept, NormReducerOf<T>(norm), x, out, take_workspace,
                              stream);
  });
}

}  // namespace interp::cuda
