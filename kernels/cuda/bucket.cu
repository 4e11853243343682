#include <algorithm>

#include "kernels/cuda/array_batch.h"
#include "kernels/cuda/bucket.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    ScaleAll(const ArrayBatch batch, const double* weight) {
  const auto factor = static_cast<ComputeType<T>>(*weight);
  ForEachElement(batch.chunks, [&batch, factor](int array, int64_t i) {
    const ComputeType<T> value = ToCompute(static_cast<const T*>(batch.in[array])[i]);
    static_cast<T*>(batch.out[array])[i] = FromCompute<T>(value * factor);
  });
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) CopyAll(const ArrayBatch batch) {
  ForEachElement(batch.chunks, [&batch](int array, int64_t i) {
    static_cast<T*>(batch.out[array])[i] = static_cast<const T*>(batch.in[array])[i];
  });
}

template <typename T>
absl::Status ScaleAs(absl::Span<const ArrayUpdate> arrays, const double* weight,
                     cudaStream_t stream) {
  return ForEachBatch(arrays, 1, [&](const ArrayBatch& batch, unsigned blocks) {
    return Launch(ScaleAll<T>, blocks, kBlockThreads, /*shared_bytes=*/0, stream, batch, weight);
  });
}

template <typename T>
absl::Status CopyAs(absl::Span<const ArrayUpdate> arrays, cudaStream_t stream) {
  return ForEachBatch(arrays, sizeof(T), [&](const ArrayBatch& batch, unsigned blocks) {
    return Launch(CopyAll<T>, blocks, kBlockThreads,
                  /*shared_bytes=*/0, stream, batch);
  });
}

}  // namespace

absl::Status ScaleArrays(DType dtype, absl::Span<const ArrayUpdate> arrays, const double* weight,
                         cudaStream_t stream) {
  if (dtype == DType::kFloat64) return ScaleAs<double>(arrays, weight, stream);
  return WithFloats("scaling", dtype, [&](auto type) {
    return ScaleAs<typename decltype(type)::type>(arrays, weight, stream);
  });
}

absl::Status CopyArrays(absl::Span<const ArrayUpdate> arrays, cudaStream_t stream) {
  const auto in_words = [](const ArrayUpdate& array) {
    return array.size % 4 == 0 && AlignedTo(array.in, 4) && AlignedTo(array.out, 4);
  };
  if (std::all_of(arrays.begin(), arrays.end(), in_words)) return CopyAs<uint32_t>(arrays, stream);
  return CopyAs<uint8_t>(arrays, stream);
}

}  // namespace interp::cuda
