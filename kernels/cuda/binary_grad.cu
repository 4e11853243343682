#include <algorithm>

#include "kernels/cuda/binary_grad.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/values.h"
#include "kernels/cuda/walk.h"

namespace interp::cuda {
namespace {

constexpr int kTileRows = 16;
// Terms of one sum that are worth a block.
constexpr int64_t kRowPart = 8192;
constexpr int64_t kColumnPart = 1024;

// Operands of the walks.
constexpr int kGrad = 0;
constexpr int kOther = 1;

struct GradientPlan {
  BinaryGradientOp op;
  bool by_y;
  Walk<2> kept;     // what self has; element i is element i of self
  Walk<2> reduced;  // what is summed
};

template <typename T>
struct GradientData {
  const T* self;   // null: not read
  const T* other;  // null: not read
  const T* grad;
  T* out;
};

__device__ float ByX(BinaryGradientOp op, float x, float y, float grad) {
  switch (op) {
    case BinaryGradientOp::kMul:
      return grad * y;
    case BinaryGradientOp::kDiv:
      return grad / y;
    case BinaryGradientOp::kMax:
      return x > y ? grad : 0.0f;
    case BinaryGradientOp::kMin:
      return x < y ? grad : 0.0f;
    case BinaryGradientOp::kFMax:
      return x >= y || y != y ? grad : 0.0f;
    case BinaryGradientOp::kFMin:
      return x <= y || y != y ? grad : 0.0f;
    case BinaryGradientOp::kPow:
      return y == 0 ? 0.0f : grad * y * powf(x, y - 1.0f);
    default:
      return grad;
  }
}

__device__ float ByY(BinaryGradientOp op, float x, float y, float grad) {
  switch (op) {
    case BinaryGradientOp::kSub:
      return -grad;
    case BinaryGradientOp::kMul:
      return grad * x;
    case BinaryGradientOp::kDiv:
      return -grad * (x / y) / y;
    case BinaryGradientOp::kMax:
      return x <= y ? grad : 0.0f;
    case BinaryGradientOp::kMin:
      return x >= y ? grad : 0.0f;
    case BinaryGradientOp::kFMax:
      return x >= y || y != y ? 0.0f : grad;
    case BinaryGradientOp::kFMin:
      return x <= y || y != y ? 0.0f : grad;
    case BinaryGradientOp::kPow:
      return x == 0 && y > 0 ? 0.0f : grad * logf(x) * powf(x, y);
    default:
      return grad;
  }
}

// Element `index` of what is summed; `kept` are the offsets of the element of self.
template <typename T>
__device__ float ProductAt(const GradientPlan& plan, const GradientData<T>& data, float self,
                           const int64_t (&kept)[2], int64_t index) {
  int64_t reduced[2];
  plan.reduced.Find(index, reduced);
  const float grad = ToCompute(data.grad[kept[kGrad] + reduced[kGrad]]);
  const float other =
      data.other != nullptr ? ToCompute(data.other[kept[kOther] + reduced[kOther]]) : 0.0f;
  return plan.by_y ? ByY(plan.op, other, self, grad) : ByX(plan.op, self, other, grad);
}

template <typename T>
__device__ float SelfAt(const GradientData<T>& data, int64_t index) {
  return data.self != nullptr ? ToCompute(data.self[index]) : 0.0f;
}

// Nothing is summed.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    MapProducts(const GradientPlan plan, const GradientData<T> data) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < plan.kept.size;
       i += int64_t{gridDim.x} * blockDim.x) {
    int64_t kept[2];
    plan.kept.Find(i, kept);
    data.out[i] = FromCompute<T>(ProductAt(plan, data, SelfAt(data, i), kept, 0));
  }
}

// Where sums go.
template <typename T>
struct GradientSums {
  using Total = double;

  Parts parts;
  T* out;
  double* totals;  // of parts; null: sums have one

  __device__ double Start() const { return 0; }
  __device__ double Fold(double a, double b) const { return a + b; }
  __device__ void Finish(int64_t i, double total) const {
    out[i] = FromCompute<T>(static_cast<float>(total));
  }
};

// The last dimension is summed: the threads of a row read neighbours.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SumProductRows(const GradientPlan plan, const GradientData<T> data,
                   const GradientSums<T> sums) {
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
       row < plan.kept.size * sums.parts.count; row += int64_t{gridDim.x} * blockDim.y) {
    const Parts::Task task = sums.parts.TaskAt(row);
    int64_t kept[2];
    plan.kept.Find(task.of, kept);
    const float self = SelfAt(data, task.of);
    double total = 0;
    for (int64_t i = task.begin + threadIdx.x; i < task.end; i += blockDim.x) {
      total += ProductAt(plan, data, self, kept, i);
    }
    total = SumRow(total);
    if (threadIdx.x == 0) StoreTotal(sums, task.of, task.part, total);
  }
}

// The last dimension is kept: threads with neighbouring outputs read neighbours.
template <typename T>
__global__ void __launch_bounds__(kTileColumns* kTileRows)
    SumProductColumns(const GradientPlan plan, const GradientData<T> data,
                      const GradientSums<T> sums) {
  INTERP_SHARED(double, totals, [kTileRows][kTileColumns]);
  const int64_t tasks = TilesOf(plan.kept.size) * sums.parts.count;
  for (int64_t index = blockIdx.x; index < tasks; index += gridDim.x) {
    const Parts::Task task = sums.parts.TaskAt(index);
    const int64_t column = task.of * kTileColumns + threadIdx.x;
    double total = 0;
    if (column < plan.kept.size) {
      int64_t kept[2];
      plan.kept.Find(column, kept);
      const float self = SelfAt(data, column);
      for (int64_t i = task.begin + threadIdx.y; i < task.end; i += kTileRows) {
        total += ProductAt(plan, data, self, kept, i);
      }
    }
    totals[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y == 0 && column < plan.kept.size) {
      for (int row = 1; row < kTileRows; ++row) total += totals[row][threadIdx.x];
      StoreTotal(sums, column, task.part, total);
    }
    __syncthreads();  // the next tile writes to `totals`
  }
}

// `columns`: the last dimension is kept.
template <typename T>
absl::Status SumProducts(const GradientPlan& plan, bool columns, const GradientData<T>& data,
                         TakeWorkspace take_workspace, cudaStream_t stream) {
  const int64_t outputs = plan.kept.size;
  const Parts parts = columns
                          ? CutIntoParts(plan.reduced.size, TilesOf(plan.kept.size), kColumnPart)
                          : CutIntoParts(plan.reduced.size, outputs, kRowPart);
  INTERP_ASSIGN_OR_RETURN(const std::optional<Workspace> memory,
                          TakeTotals<double>(parts, outputs, take_workspace));
  const GradientSums<T> sums = {parts, data.out, DataOf<double>(memory)};
  if (columns) {
    INTERP_RETURN_IF_ERROR(
        Launch(SumProductColumns<T>,
               BlocksFor(TilesOf(plan.kept.size) * parts.count, /*work_per_block=*/1),
               dim3(kTileColumns, kTileRows), /*shared_bytes=*/0, stream, plan, data, sums));
  } else {
    INTERP_RETURN_IF_ERROR(
        Launch(SumProductRows<T>, RowBlocks(outputs * parts.count, plan.reduced.size),
               RowThreads(plan.reduced.size), /*shared_bytes=*/0, stream, plan, data, sums));
  }
  return LaunchFoldParts(sums, outputs, stream);
}

bool Fits(absl::Span<const int64_t> dims, absl::Span<const int64_t> out_dims) {
  bool fits = dims.size() == out_dims.size();
  for (size_t d = 0; fits && d < dims.size(); ++d) fits = dims[d] == out_dims[d] || dims[d] == 1;
  return fits;
}

// Splits the dimensions into those that self has and those that it repeats; whether the last one is
// kept.
absl::StatusOr<bool> PlanGradient(const BinaryGradientArguments& args, GradientPlan& plan) {
  if (!Fits(args.self_dims, args.out_dims) || !Fits(args.other_dims, args.out_dims)) {
    return InvalidArgument("an operand does not fit the gradient of an element-wise op's result");
  }
  bool last_is_kept = true;
  bool first = true;
  int64_t grad_step = 1;
  int64_t other_step = 1;
  for (auto d = static_cast<int>(args.out_dims.size()); d-- > 0;) {
    const int64_t length = args.out_dims[d];
    if (length == 1) continue;
    const bool kept = args.self_dims[d] == length;
    const bool repeats_other = args.other_dims[d] == 1;
    if (first) last_is_kept = kept;
    first = false;
    (kept ? plan.kept : plan.reduced).Add(length, {grad_step, repeats_other ? 0 : other_step});
    grad_step *= length;
    if (!repeats_other) other_step *= length;
  }
  INTERP_RETURN_IF_ERROR(plan.kept.Check("the gradient of an element-wise op"));
  INTERP_RETURN_IF_ERROR(plan.reduced.Check("the gradient of an element-wise op"));
  return last_is_kept;
}

}  // namespace

bool TakesOther(BinaryGradientOp op) {
  return op != BinaryGradientOp::kAdd && op != BinaryGradientOp::kSub;
}

bool TakesSelf(BinaryGradientOp op, bool by_y) {
  if (op == BinaryGradientOp::kDiv) return by_y;
  return TakesOther(op) && op != BinaryGradientOp::kMul;
}

absl::Status BinaryGradient(DType dtype, const BinaryGradientArguments& args,
                            TakeWorkspace take_workspace, cudaStream_t stream) {
  GradientPlan plan = {.op = args.op, .by_y = args.by_y, .kept = {}, .reduced = {}};
  INTERP_ASSIGN_OR_RETURN(const bool columns, PlanGradient(args, plan));
  const int64_t outputs = plan.kept.size;
  if (outputs == 0) return absl::OkStatus();
  const bool passes =
      args.op == BinaryGradientOp::kAdd || (args.op == BinaryGradientOp::kSub && !args.by_y);
  if (plan.reduced.size == 1 && passes && args.self_grad == args.out_grad) return absl::OkStatus();
  return WithFloats("the gradient of an element-wise op", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const GradientData<T> data = {
        .self = TakesSelf(args.op, args.by_y) ? static_cast<const T*>(args.self) : nullptr,
        .other = TakesOther(args.op) ? static_cast<const T*>(args.other) : nullptr,
        .grad = static_cast<const T*>(args.out_grad),
        .out = static_cast<T*>(args.self_grad)};
    if (plan.reduced.size == 1) {
      return LaunchElements(MapProducts<T>, outputs, stream, plan, data);
    }
    return SumProducts(plan, columns, data, take_workspace, stream);
  });
}

}  // namespace interp::cuda
