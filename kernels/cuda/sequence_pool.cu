#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequence_pool.h"
#include "kernels/cuda/sequences.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

template <typename T>
__device__ T Divisor(Pooling pooling, int64_t rows) {
  if (pooling == Pooling::kAverage) return static_cast<T>(rows);
  return pooling == Pooling::kSqrt ? static_cast<T>(sqrt(static_cast<T>(rows))) : T{1};
}

template <typename T>
struct Pooled {
  T value;
  int64_t row;  // of the largest element
};

// Column `x` of the rows [begin, end), which are not empty.
template <typename T>
__device__ Pooled<T> PoolColumn(Pooling pooling, const T* x, int64_t width, int64_t begin,
                                int64_t end) {
  if (pooling == Pooling::kLast) return {x[(end - 1) * width], end - 1};
  Pooled<T> pooled = {x[begin * width], begin};
  if (pooling == Pooling::kFirst) return pooled;
  for (int64_t row = begin + 1; row < end; ++row) {
    const T value = x[row * width];
    if (pooling != Pooling::kMax) {
      pooled.value += value;
    } else if (value > pooled.value) {
      pooled = {value, row};
    }
  }
  if (pooling != Pooling::kMax) pooled.value /= Divisor<T>(pooling, end - begin);
  return pooled;
}

// A thread for each element of the result: neighbours have neighbouring columns.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    PoolEachSequence(const PackedSequences s, const SequencePooling args) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < s.count * s.width;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t begin = s.offsets[i / s.width];
    const int64_t end = s.offsets[i / s.width + 1];
    Pooled<T> pooled = {static_cast<T>(args.pad_value), -1};
    if (begin < end) {
      pooled = PoolColumn(args.pooling, static_cast<const T*>(args.x) + i % s.width, s.width, begin,
                          end);
    }
    static_cast<T*>(args.out)[i] = pooled.value;
    if (args.max_index != nullptr) args.max_index[i] = static_cast<int32_t>(pooled.row);
  }
}

// A thread for each element of x_grad.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SpreadPoolGradient(const PackedSequences s, const SequencePoolingGradient args) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < s.rows * s.width;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t row = i / s.width;
    const int64_t sequence = SequenceOfRow(s.offsets, s.count, row);
    const int64_t at = sequence * s.width + i % s.width;
    const int64_t begin = s.offsets[sequence];
    const int64_t end = s.offsets[sequence + 1];
    const bool gets = args.pooling == Pooling::kMax     ? args.max_index[at] == row
                      : args.pooling == Pooling::kFirst ? row == begin
                      : args.pooling == Pooling::kLast  ? row == end - 1
                                                        : true;
    const T grad = static_cast<const T*>(args.out_grad)[at];
    static_cast<T*>(args.x_grad)[i] = gets ? grad / Divisor<T>(args.pooling, end - begin) : T{0};
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SumCopiesOfSequences(const PackedSequences s, const SequenceCopies args) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < s.rows * s.width;
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t sequence = SequenceOfRow(s.offsets, s.count, i / s.width);
    const int64_t first = s.offsets[sequence];
    const int64_t step = (s.offsets[sequence + 1] - first) * s.width;
    const T* grad = static_cast<const T*>(args.out_grad) + args.out_starts[sequence] * s.width + i -
                    first * s.width;
    T sum = 0;
    for (int64_t k = args.repeats[sequence]; k < args.repeats[sequence + 1]; ++k, grad += step) {
      sum += *grad;
    }
    static_cast<T*>(args.x_grad)[i] = sum;
  }
}

}  // namespace

absl::Status PoolSequences(DType dtype, const PackedSequences& sequences,
                           const SequencePooling& pooling, cudaStream_t stream) {
  const int64_t size = sequences.count * sequences.width;
  return WithWideFloats("pooling of sequences", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(PoolEachSequence<T>, size, stream, sequences, pooling);
  });
}

absl::Status PoolSequencesGradient(DType dtype, const PackedSequences& sequences,
                                   const SequencePoolingGradient& gradient, cudaStream_t stream) {
  const int64_t size = sequences.rows * sequences.width;
  return WithWideFloats("the gradient of pooling of sequences", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(SpreadPoolGradient<T>, size, stream, sequences, gradient);
  });
}

absl::Status SumSequenceCopies(DType dtype, const PackedSequences& sequences,
                               const SequenceCopies& copies, cudaStream_t stream) {
  const int64_t size = sequences.rows * sequences.width;
  return WithWideFloats("a sum of copies of sequences", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(SumCopiesOfSequences<T>, size, stream, sequences, copies);
  });
}

}  // namespace interp::cuda
