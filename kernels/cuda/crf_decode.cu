#include <algorithm>
#include <limits>

#include "kernels/cuda/crf_decode.h"
#include "kernels/cuda/integers.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

struct RowRange {
  int64_t first;
  int64_t length;
};
__device__ RowRange RowsOf(const CrfDecoding& d, int64_t sequence) {
  if (d.offsets != nullptr) {
    return {d.offsets[sequence], d.offsets[sequence + 1] - d.offsets[sequence]};
  }
  const int64_t length = IntegerAt(d.lengths, d.length_dtype, sequence);
  return {sequence * d.steps, length < 0 ? 0 : std::min(length, d.steps)};
}

// The first of the greatest scores that are above the lowest number; else tag 0.
template <typename T>
struct BestTag {
  T score = std::numeric_limits<T>::lowest();
  int32_t tag = 0;

  __device__ void Offer(T other, int64_t of) {
    if (!(other > score)) return;
    score = other;
    tag = static_cast<int32_t>(of);
  }
};

// One thread goes back from the best last tag.
template <typename T>
__device__ void TracePath(const CrfDecoding& d, const RowRange& rows, const T* last) {
  const T* const stop = static_cast<const T*>(d.transition) + d.tags;
  BestTag<T> best;
  for (int64_t j = 0; j < d.tags; ++j) best.Offer(last[j] + stop[j], j);
  int32_t tag = best.tag;
  for (int64_t row = rows.first + rows.length - 1; row >= rows.first; --row) {
    d.path[row] = d.label == nullptr ? tag : IntegerAt(d.label, d.label_dtype, row) == tag;
    if (row > rows.first) tag = d.from[row * d.tags + tag];
  }
}

// A sequence for each block, a tag for each thread.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) DecodeSequences(const CrfDecoding d) {
  const T* const start = static_cast<const T*>(d.transition);
  const T* const transition = start + 2 * d.tags;
  for (int64_t s = blockIdx.x; s < d.sequences; s += gridDim.x) {
    const RowRange rows = RowsOf(d, s);
    if (d.offsets == nullptr) {
      for (int64_t i = rows.length + threadIdx.x; i < d.steps; i += blockDim.x) {
        d.path[rows.first + i] = 0;
      }
    }
    if (rows.length == 0) continue;
    T* const scores = static_cast<T*>(d.scores) + s * 2 * d.tags;  // two rows, in turns
    const T* emission = static_cast<const T*>(d.emission) + rows.first * d.tags;
    for (int64_t j = threadIdx.x; j < d.tags; j += blockDim.x) scores[j] = emission[j] + start[j];
    __syncthreads();
    for (int64_t t = 1; t < rows.length; ++t) {
      emission += d.tags;
      const T* const before = scores + (t - 1) % 2 * d.tags;
      for (int64_t j = threadIdx.x; j < d.tags; j += blockDim.x) {
        BestTag<T> best;
        for (int64_t i = 0; i < d.tags; ++i) best.Offer(before[i] + transition[i * d.tags + j], i);
        scores[t % 2 * d.tags + j] = best.score + emission[j];
        d.from[(rows.first + t) * d.tags + j] = best.tag;
      }
      __syncthreads();
    }
    if (threadIdx.x == 0) TracePath<T>(d, rows, scores + (rows.length - 1) % 2 * d.tags);
  }
}

}  // namespace

absl::Status DecodeCrf(DType dtype, const CrfDecoding& decoding, cudaStream_t stream) {
  if (decoding.offsets == nullptr) {
    INTERP_RETURN_IF_ERROR(CheckIntegers("lengths of sequences", decoding.length_dtype));
  }
  if (decoding.label != nullptr) {
    INTERP_RETURN_IF_ERROR(CheckIntegers("labels", decoding.label_dtype));
  }
  if (decoding.sequences == 0) return absl::OkStatus();
  constexpr int64_t kWarp = 32;
  const int64_t threads =
      std::min<int64_t>((decoding.tags + kWarp - 1) / kWarp * kWarp, kBlockThreads);
  return WithWideFloats("crf_decoding", dtype, [&](auto type) {
    return Launch(DecodeSequences<typename decltype(type)::type>,
                  BlocksFor(decoding.sequences, /*work_per_block=*/1),
                  static_cast<unsigned>(threads), /*shared_bytes=*/0, stream, decoding);
  });
}

}  // namespace interp::cuda
