#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequence_pool.h"
#include "kernels/cuda/sequences.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

// A row of threads for each sequence.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SoftmaxOfEach(const PackedSequences s, const T* x, T* out) {
  for (int64_t sequence = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; sequence < s.count;
       sequence += int64_t{gridDim.x} * blockDim.y) {
    const int64_t first = s.offsets[sequence] + threadIdx.x;
    const int64_t end = s.offsets[sequence + 1];
    T greatest = Lowest<T>();
    for (int64_t i = first; i < end; i += blockDim.x) {
      greatest = x[i] > greatest || x[i] != x[i] ? x[i] : greatest;
    }
    greatest = MaxRow(greatest);
    T sum = 0;
    for (int64_t i = first; i < end; i += blockDim.x) sum += exp(x[i] - greatest);
    sum = SumRow(sum);
    for (int64_t i = first; i < end; i += blockDim.x) out[i] = exp(x[i] - greatest) / sum;
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SoftmaxGradientOfEach(const PackedSequences s, const T* out, const T* out_grad, T* x_grad) {
  for (int64_t sequence = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; sequence < s.count;
       sequence += int64_t{gridDim.x} * blockDim.y) {
    const int64_t first = s.offsets[sequence] + threadIdx.x;
    const int64_t end = s.offsets[sequence + 1];
    T sum = 0;
    for (int64_t i = first; i < end; i += blockDim.x) sum += out[i] * out_grad[i];
    sum = SumRow(sum);
    for (int64_t i = first; i < end; i += blockDim.x) x_grad[i] = out[i] * (out_grad[i] - sum);
  }
}

}  // namespace

absl::Status SoftmaxOfSequences(DType dtype, const PackedSequences& sequences, int64_t longest,
                                const void* x, void* out, cudaStream_t stream) {
  if (sequences.rows == 0) return absl::OkStatus();
  return WithWideFloats("softmax of sequences", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return Launch(SoftmaxOfEach<T>, RowBlocks(sequences.count, longest), RowThreads(longest),
                  /*shared_bytes=*/0, stream, sequences, static_cast<const T*>(x),
                  static_cast<T*>(out));
  });
}

absl::Status SoftmaxOfSequencesGradient(DType dtype, const PackedSequences& sequences,
                                        int64_t longest, const void* out, const void* out_grad,
                                        void* x_grad, cudaStream_t stream) {
  if (sequences.rows == 0) return absl::OkStatus();
  return WithWideFloats("softmax of sequences", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return Launch(SoftmaxGradientOfEach<T>, RowBlocks(sequences.count, longest),
                  RowThreads(longest), /*shared_bytes=*/0, stream, sequences,
                  static_cast<const T*>(out), static_cast<const T*>(out_grad),
                  static_cast<T*>(x_grad));
  });
}

}  // namespace interp::cuda
