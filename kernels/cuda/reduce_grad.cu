#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce_grad.h"
#include "kernels/cuda/values.h"
#include "kernels/cuda/walk.h"

namespace interp::cuda {
namespace {

template <typename T>
struct ReduceGradientData {
  ReduceGradientOp op;
  float divisor;
  const T* x;
  const T* out;
  const T* out_grad;
  T* x_grad;
};

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
      case ReduceGradientOp::kSquares:
        grad = grad * 2.0f * ToCompute(data.x[i]);
        break;
    }
    data.x_grad[i] = FromCompute<T>(grad);
  }
}

}  // namespace

absl::Status ReduceGradient(DType dtype, const ReduceGradientArguments& args, cudaStream_t stream) {
  Walk<1> walk;
  int64_t step = 1;
  for (auto d = static_cast<int>(args.dims.size()); d-- > 0;) {
    const bool kept = (args.reduced >> d & 1) == 0;
    walk.Add(args.dims[d], {kept ? step : 0});
    if (kept) step *= args.dims[d];
  }
  INTERP_RETURN_IF_ERROR(walk.Check("the gradient of a reduction"));
  if (walk.size == 0) return absl::OkStatus();
  return WithFloats("the gradient of a reduction", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const ReduceGradientData<T> data = {args.op,
                                        args.divisor,
                                        static_cast<const T*>(args.x),
                                        static_cast<const T*>(args.out),
                                        static_cast<const T*>(args.out_grad),
                                        static_cast<T*>(args.x_grad)};
    return Launch(MapReduceGradient<T>, BlocksFor(walk.size, kBlockThreads), kBlockThreads,
                  /*shared_bytes=*/0, stream, data, walk);
  });
}

}  // namespace interp::cuda
