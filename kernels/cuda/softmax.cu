#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/softmax.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

// Clipped where the host clips, and Paddle's kernels for CPUs do.
__device__ float Shifted(float x, float greatest) {
  const float shifted = x - greatest;
  return shifted < -64.0f ? -64.0f : shifted;
}

__device__ float Normalised(float x, float greatest, float sum, float log_sum, bool logarithm) {
  const float shifted = Shifted(x, greatest);
  return logarithm ? shifted - log_sum : expf(shifted) / sum;
}

// A row of neighbours for each row of threads.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SoftmaxRows(const T* x, LineShape shape, bool logarithm, T* y) {
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < shape.outer;
       row += int64_t{gridDim.x} * blockDim.y) {
    const T* const in = x + row * shape.length;
    T* const out = y + row * shape.length;
    float greatest = Lowest<float>();
    for (int64_t i = threadIdx.x; i < shape.length; i += blockDim.x) {
      const float value = ToCompute(in[i]);
      greatest = value > greatest || value != value ? value : greatest;
    }
    greatest = MaxRow(greatest);
    float sum = 0;
    for (int64_t i = threadIdx.x; i < shape.length; i += blockDim.x) {
      sum += expf(Shifted(ToCompute(in[i]), greatest));
    }
    sum = SumRow(sum);
    const float log_sum = logf(sum);
    for (int64_t i = threadIdx.x; i < shape.length; i += blockDim.x) {
      out[i] = FromCompute<T>(Normalised(ToCompute(in[i]), greatest, sum, log_sum, logarithm));
    }
  }
}

// A column for each thread: neighbours have neighbouring columns.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SoftmaxColumns(const T* x, LineShape shape, bool logarithm, T* y) {
  const int64_t columns = shape.outer * shape.inner;
  for (int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; column < columns;
       column += int64_t{gridDim.x} * blockDim.x) {
    const int64_t first = column / shape.inner * shape.length * shape.inner + column % shape.inner;
    const T* const in = x + first;
    T* const out = y + first;
    float greatest = Lowest<float>();
    for (int64_t i = 0; i < shape.length; ++i) {
      const float value = ToCompute(in[i * shape.inner]);
      greatest = value > greatest || value != value ? value : greatest;
    }
    float sum = 0;
    for (int64_t i = 0; i < shape.length; ++i) {
      sum += expf(Shifted(ToCompute(in[i * shape.inner]), greatest));
    }
    const float log_sum = logf(sum);
    for (int64_t i = 0; i < shape.length; ++i) {
      const float value = ToCompute(in[i * shape.inner]);
      out[i * shape.inner] = FromCompute<T>(Normalised(value, greatest, sum, log_sum, logarithm));
    }
  }
}

}  // namespace

absl::Status Softmax(DType dtype, bool logarithm, const void* x, const LineShape& shape, void* y,
                     cudaStream_t stream) {
  if (shape.outer * shape.length * shape.inner == 0) return absl::OkStatus();
  return WithFloats("softmax", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* const in = static_cast<const T*>(x);
    T* const out = static_cast<T*>(y);
    if (shape.inner == 1) {
      return Launch(SoftmaxRows<T>, RowBlocks(shape.outer, shape.length), RowThreads(shape.length),
                    /*shared_bytes=*/0, stream, in, shape, logarithm, out);
    }
    return LaunchElements(SoftmaxColumns<T>, shape.outer * shape.inner, stream, in, shape,
                          logarithm, out);
  });
}

}  // namespace interp::cuda
