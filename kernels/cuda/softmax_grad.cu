#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/softmax_grad.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

// What is summed, and the gradient of one element from the sum.
__device__ float Term(bool logarithm, float out, float grad) {
  return logarithm ? grad : grad * out;
}
__device__ float Element(bool logarithm, float out, float grad, float sum) {
  return logarithm ? grad - expf(out) * sum : (grad - sum) * out;
}

template <typename T>
struct SoftmaxGradientData {
  bool logarithm;
  LineShape shape;
  const T* out;
  const T* out_grad;
  T* x_grad;
};

// A row of neighbours for each row of threads.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SoftmaxGradientRows(const SoftmaxGradientData<T> data) {
  const int64_t length = data.shape.length;
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < data.shape.outer;
       row += int64_t{gridDim.x} * blockDim.y) {
    const T* const out = data.out + row * length;
    const T* const grad = data.out_grad + row * length;
    float sum = 0;
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x) {
      sum += Term(data.logarithm, ToCompute(out[i]), ToCompute(grad[i]));
    }
    sum = SumRow(sum);
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x) {
      data.x_grad[row * length + i] =
          FromCompute<T>(Element(data.logarithm, ToCompute(out[i]), ToCompute(grad[i]), sum));
    }
  }
}

// A column for each thread: neighbours have neighbouring columns.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SoftmaxGradientColumns(const SoftmaxGradientData<T> data) {
  const LineShape& shape = data.shape;
  const int64_t columns = shape.outer * shape.inner;
  for (int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; column < columns;
       column += int64_t{gridDim.x} * blockDim.x) {
    const int64_t first = column / shape.inner * shape.length * shape.inner + column % shape.inner;
    const int64_t end = first + shape.length * shape.inner;
    float sum = 0;
    for (int64_t at = first; at < end; at += shape.inner) {
      sum += Term(data.logarithm, ToCompute(data.out[at]), ToCompute(data.out_grad[at]));
    }
    for (int64_t at = first; at < end; at += shape.inner) {
      data.x_grad[at] = FromCompute<T>(
          Element(data.logarithm, ToCompute(data.out[at]), ToCompute(data.out_grad[at]), sum));
    }
  }
}

}  // namespace

absl::Status SoftmaxGradient(DType dtype, bool logarithm, const void* out, const void* out_grad,
                             const LineShape& shape, void* x_grad, cudaStream_t stream) {
  if (shape.outer * shape.length * shape.inner == 0) return absl::OkStatus();
  return WithFloats("the gradient of softmax", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const SoftmaxGradientData<T> data = {logarithm, shape, static_cast<const T*>(out),
                                         static_cast<const T*>(out_grad), static_cast<T*>(x_grad)};
    if (shape.inner == 1) {
      return Launch(SoftmaxGradientRows<T>, RowBlocks(shape.outer, shape.length),
                    RowThreads(shape.length), /*shared_bytes=*/0, stream, data);
    }
    return LaunchElements(SoftmaxGradientColumns<T>, shape.outer * shape.inner, stream, data);
  });
}

}  // namespace interp::cuda
