#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce_grad.h"
#include "kernels/cuda/values.h"
#include "kernels/cuda/walk.h"

namespace interp::cuda {
namespace {

// Of one output: its gradient, divided by the number of extremes, or times the product of all
// elements, and times the product of those beside a single 0.
struct OutputNumbers {
  float whole;
  float rest;
};

bool FoldsOutputs(ReduceGradientOp op) {
  return op == ReduceGradientOp::kSharedExtremes || op == ReduceGradientOp::kProducts;
}

template <typename T>
struct ReduceGradientData {
  ReduceGradientOp op;
  float divisor;
  const T* x;
  const T* out;
  const T* out_grad;
  T* x_grad;
  OutputNumbers* outputs;  // where FoldsOutputs
};

// What the elements of an output are multiplied with, or how many are the extreme.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    FoldOutputs(const ReduceGradientData<T> data, const Walk<1> kept, const Walk<1> reduced) {
  const bool counts = data.op == ReduceGradientOp::kSharedExtremes;
  for (int64_t o = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; o < kept.size;
       o += int64_t{gridDim.x} * blockDim.y) {
    int64_t first[1];
    kept.Find(o, first);
    const float extreme = counts ? ToCompute(data.out[o]) : 0.0f;
    double product = 1;
    int found = 0;  // extremes, or zeros
    for (int64_t i = threadIdx.x; i < reduced.size; i += blockDim.x) {
      int64_t at[1];
      reduced.Find(i, at);
      const float x = ToCompute(data.x[first[0] + at[0]]);
      found += x == extreme ? 1 : 0;
      if (x != 0) product *= x;
    }
    found = SumRow(found);
    product = FoldRow(product, [](double a, double b) { return a * b; });
    if (threadIdx.x != 0) continue;
    const float grad = ToCompute(data.out_grad[o]);
    if (counts) {
      data.outputs[o].whole = grad / static_cast<float>(found > 0 ? found : 1);
    } else {
      const auto times_others = static_cast<float>(grad * product);
      data.outputs[o].whole = found == 0 ? times_others : 0.0f;
      data.outputs[o].rest = found == 1 ? times_others : 0.0f;
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    MapReduceGradient(const ReduceGradientData<T> data, const Walk<1> walk) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < walk.size;
       i += int64_t{gridDim.x} * blockDim.x) {
    int64_t at[1];
    walk.Find(i, at);
    float grad = ToCompute(data.out_grad[at[0]]);
    switch (data.op) {
      case ReduceGradientOp::kSpread:
        grad /= data.divisor;
        break;
      case ReduceGradientOp::kExtremes:
        grad = ToCompute(data.x[i]) == ToCompute(data.out[at[0]]) ? grad : 0.0f;
        break;
      case ReduceGradientOp::kSharedExtremes:
        grad =
            ToCompute(data.x[i]) == ToCompute(data.out[at[0]]) ? data.outputs[at[0]].whole : 0.0f;
        break;
      case ReduceGradientOp::kProducts: {
        const float x = ToCompute(data.x[i]);
        grad = x == 0 ? data.outputs[at[0]].rest : data.outputs[at[0]].whole / x;
        break;
      }
      case ReduceGradientOp::kSquares:
        grad = grad * 2.0f * ToCompute(data.x[i]);
        break;
    }
    data.x_grad[i] = FromCompute<T>(grad);
  }
}

}  // namespace

int64_t ReduceGradientWorkspace(ReduceGradientOp op, int64_t outputs) {
  return FoldsOutputs(op) ? outputs * 2 : 0;
}

absl::Status ReduceGradient(DType dtype, const ReduceGradientArguments& args, cudaStream_t stream) {
  Walk<1> walk;     // of x, with the offsets of outputs
  Walk<1> kept;     // of outputs, with the offsets of x
  Walk<1> reduced;  // of the elements of an output
  int64_t step = 1;
  int64_t x_step = 1;
  for (auto d = static_cast<int>(args.dims.size()); d-- > 0;) {
    const bool is_kept = (args.reduced >> d & 1) == 0;
    walk.Add(args.dims[d], {is_kept ? step : 0});
    (is_kept ? kept : reduced).Add(args.dims[d], {x_step});
    if (is_kept) step *= args.dims[d];
    x_step *= args.dims[d];
  }
  for (const Walk<1>* one : {&walk, &kept, &reduced}) {
    INTERP_RETURN_IF_ERROR(one->Check("the gradient of a reduction"));
  }
  if (walk.size == 0) return absl::OkStatus();
  return WithFloats("the gradient of a reduction", dtype, [&](auto type) -> absl::Status {
    using T = typename decltype(type)::type;
    const ReduceGradientData<T> data = {args.op,
                                        args.divisor,
                                        static_cast<const T*>(args.x),
                                        static_cast<const T*>(args.out),
                                        static_cast<const T*>(args.out_grad),
                                        static_cast<T*>(args.x_grad),
                                        reinterpret_cast<OutputNumbers*>(args.workspace)};
    if (FoldsOutputs(args.op)) {
      INTERP_RETURN_IF_ERROR(Launch(FoldOutputs<T>, RowBlocks(kept.size, reduced.size),
                                    RowThreads(reduced.size), /*shared_bytes=*/0, stream, data,
                                    kept, reduced));
    }
    return LaunchElements(MapReduceGradient<T>, walk.size, stream, data, walk);
  });
}

}  // namespace interp::cuda
