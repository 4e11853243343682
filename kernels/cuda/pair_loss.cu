#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pair_loss.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

__device__ float Log(float x) { return logf(x); }
__device__ double Log(double x) { return log(x); }
template <typename T>
__device__ T Magnitude(T x) {
  return x < 0 ? -x : x;
}

template <typename Function>
__global__ void __launch_bounds__(kBlockThreads) ForEach(int64_t size, const Function function) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += int64_t{gridDim.x} * blockDim.x) {
    function(i);
  }
}

template <typename T>
struct LogLossOf {
  LogLossArguments args;

  __device__ void operator()(int64_t i) const {
    const auto small = static_cast<T>(args.epsilon);
    const T x = static_cast<const T*>(args.x)[i];
    const T label = static_cast<const T*>(args.label)[i];
    const T one{1};
    T result;
    if (args.grad == nullptr) {
      result = -(label * Log(x + small)) - (one - label) * Log(one - x + small);
    } else {
      const T slope = (one - label) / (one - x + small) - label / (x + small);
      result = static_cast<const T*>(args.grad)[i] * slope;
    }
    static_cast<T*>(args.out)[i] = result;
  }
};

template <typename T>
struct HuberLossOf {
  HuberLossArguments args;

  __device__ void operator()(int64_t i) const {
    const auto delta = static_cast<T>(args.delta);
    const T residual = static_cast<const T*>(args.y)[i] - static_cast<const T*>(args.x)[i];
    const T size = Magnitude(residual);
    static_cast<T*>(args.out)[i] =
        size <= delta ? T(0.5) * residual * residual : delta * (size - T(0.5) * delta);
    if (args.residual != nullptr) static_cast<T*>(args.residual)[i] = residual;
  }
};

template <typename T>
__device__ void StoreOpposites(T value, int64_t i, void* plus, void* minus) {
  if (plus != nullptr) static_cast<T*>(plus)[i] = value;
  if (minus != nullptr) static_cast<T*>(minus)[i] = -value;
}

template <typename T>
struct HuberLossGradOf {
  HuberLossGradArguments args;

  __device__ void operator()(int64_t i) const {
    const auto delta = static_cast<T>(args.delta);
    const T residual = static_cast<const T*>(args.residual)[i];
    const T bounded = residual < -delta ? -delta : delta < residual ? delta : residual;
    StoreOpposites(-static_cast<const T*>(args.grad)[i] * bounded, i, args.x_grad, args.y_grad);
  }
};

// A row for each row of threads.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) SmoothL1Rows(const SmoothL1Arguments args) {
  const auto sigma = static_cast<T>(args.sigma);
  const T sigma2 = sigma * sigma;
  const T* const x = static_cast<const T*>(args.x);
  const T* const y = static_cast<const T*>(args.y);
  const T* const inside = static_cast<const T*>(args.inside);
  const T* const outside = static_cast<const T*>(args.outside);
  T* const diff = static_cast<T*>(args.diff);
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < args.rows;
       row += int64_t{gridDim.x} * blockDim.y) {
    double sum = 0;
    for (int64_t column = threadIdx.x; column < args.width; column += blockDim.x) {
      const int64_t i = row * args.width + column;
      const T d = (x[i] - y[i]) * (inside != nullptr ? inside[i] : T{1});
      const T size = Magnitude(d);
      const T loss = size < T{1} / sigma2 ? T(0.5) * d * d * sigma2 : size - T(0.5) / sigma2;
      diff[i] = d;
      sum += loss * (outside != nullptr ? outside[i] : T{1});
    }
    sum = SumRow(sum);
    if (threadIdx.x == 0) static_cast<T*>(args.out)[row] = static_cast<T>(sum);
  }
}

template <typename T>
struct SmoothL1GradOf {
  SmoothL1GradArguments args;

  __device__ void operator()(int64_t i) const {
    const auto sigma = static_cast<T>(args.sigma);
    const T sigma2 = sigma * sigma;
    const T d = static_cast<const T*>(args.diff)[i];
    const T slope = Magnitude(d) < T{1} / sigma2 ? sigma2 * d : static_cast<T>((d > 0) - (d < 0));
    const T weight = args.inside == nullptr ? T{1}
                                            : static_cast<const T*>(args.inside)[i] *
                                                  static_cast<const T*>(args.outside)[i];
    StoreOpposites(static_cast<const T*>(args.grad)[i / args.width] * slope * weight, i,
                   args.x_grad, args.y_grad);
  }
};

// Calls function(Type<T>()) for the dtypes of the losses.
template <typename Function>
absl::Status WithWideFloats(DType dtype, Function function) {
  if (dtype == DType::kFloat32) return function(Type<float>());
  if (dtype == DType::kFloat64) return function(Type<double>());
  return Unimplemented("a loss of ", Name(dtype), " on a GPU");
}

template <template <typename> typename Function, typename Arguments>
absl::Status RunForEach(DType dtype, int64_t size, const Arguments& args, cudaStream_t stream) {
  if (size == 0) return absl::OkStatus();
  return WithWideFloats(dtype, [&](auto type) {
    using Of = Function<typename decltype(type)::type>;
    return LaunchElements(ForEach<Of>, size, stream, size, Of{args});
  });
}

}  // namespace

absl::Status LogLoss(DType dtype, const LogLossArguments& arguments, cudaStream_t stream) {
  return RunForEach<LogLossOf>(dtype, arguments.size, arguments, stream);
}

absl::Status HuberLoss(DType dtype, const HuberLossArguments& arguments, cudaStream_t stream) {
  return RunForEach<HuberLossOf>(dtype, arguments.size, arguments, stream);
}

absl::Status HuberLossGrad(DType dtype, const HuberLossGradArguments& arguments,
                           cudaStream_t stream) {
  return RunForEach<HuberLossGradOf>(dtype, arguments.size, arguments, stream);
}

absl::Status SmoothL1Loss(DType dtype, const SmoothL1Arguments& arguments, cudaStream_t stream) {
  if (arguments.rows == 0) return absl::OkStatus();
  return WithWideFloats(dtype, [&](auto type) {
    return Launch(SmoothL1Rows<typename decltype(type)::type>,
                  RowBlocks(arguments.rows, arguments.width), RowThreads(arguments.width),
                  /*shared_bytes=*/0, stream, arguments);
  });
}

absl::Status SmoothL1LossGrad(DType dtype, const SmoothL1GradArguments& arguments,
                              cudaStream_t stream) {
  return RunForEach<SmoothL1GradOf>(dtype, arguments.rows * arguments.width, arguments, stream);
}

}  // namespace interp::cuda
