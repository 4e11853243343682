#include <algorithm>
#include <limits>

#include "kernels/cuda/array_batch.h"
#include "kernels/cuda/floats_access.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/loss_scaling.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

// What the workspace holds where all arrays are finite: every byte of it is the same.
constexpr int kNoArray = 0x7F7F7F7F;

// The lowest number of an array that is not finite.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    FindInfinite(const ArrayBatch batch, int* first_infinite) {
  int found = kNoArray;
  ForEachElement(batch.chunks, [&batch, &found](int array, int64_t i) {
    const float value = ToCompute(static_cast<const T*>(batch.in[array])[i]);
    const bool finite = fabsf(value) <= std::numeric_limits<float>::max();
    const int number = batch.first + array;
    if (!finite && number < found) found = number;
  });
  if (found != kNoArray) atomicMin(first_infinite, found);
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    Unscale(const ArrayBatch batch, const Floats scale, const int* first_infinite) {
  const float factor = 1.0f / LoadFloat(scale.data, scale.dtype, 0);
  const int infinite = *first_infinite;
  ForEachElement(batch.chunks, [&batch, factor, infinite](int array, int64_t i) {
    float value = ToCompute(static_cast<const T*>(batch.in[array])[i]);
    const int number = batch.first + array;
    if (number <= infinite) value = ToCompute(FromCompute<T>(value * factor));
    if (number >= infinite) value *= 0.0f;
    static_cast<T*>(batch.out[array])[i] = FromCompute<T>(value);
  });
}

// One thread.
__global__ void TellFound(const int* first_infinite, bool* found) {
  *found = *first_infinite != kNoArray;
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    CopyOrZero(const ArrayBatch batch, const bool* found) {
  const bool zero = *found;
  ForEachElement(batch.chunks, [&batch, zero](int array, int64_t i) {
    T* const out = static_cast<T*>(batch.out[array]);
    const T* const in = static_cast<const T*>(batch.in[array]);
    if (zero || in != out) out[i] = zero ? T{0} : in[i];
  });
}

// One thread.
__global__ void NextScale(const LossScaleArguments args) {
  float scale = LoadFloat(args.scale.in, args.scale.dtype, 0);
  int32_t good = *args.good_in;
  int32_t bad = *args.bad_in;
  const bool stops = args.stop != nullptr ? *args.stop : args.stops;
  if (!stops && *args.found) {
    good = 0;
    if (++bad == args.shrink_after) {
      bad = 0;
      scale = fmaxf(1.0f, scale * args.shrink);
    }
  } else if (!stops) {
    bad = 0;
    if (++good == args.grow_after) {
      good = 0;
      if (isfinite(scale * args.grow)) scale *= args.grow;
    }
  }
  StoreFloat(scale, args.scale.dtype, args.scale.out, 0);
  *args.good_out = good;
  *args.bad_out = bad;
}

template <typename T>
absl::Status CopyOrZeroAll(const bool* found, absl::Span<const ArrayUpdate> arrays,
                           cudaStream_t stream) {
  return ForEachBatch(arrays, sizeof(T), [&](const ArrayBatch& batch, unsigned blocks) {
    return Launch(CopyOrZero<T>, blocks, kBlockThreads,
                  /*shared_bytes=*/0, stream, batch, found);
  });
}

}  // namespace

absl::Status CheckFiniteAndUnscale(DType dtype, absl::Span<const ArrayUpdate> arrays,
                                   const Floats& scale, void* workspace, bool* found,
                                   cudaStream_t stream) {
  int* const first_infinite = static_cast<int*>(workspace);
  INTERP_RETURN_IF_ERROR(
      ToStatus(cudaMemsetAsync(first_infinite, kNoArray & 0xFF, sizeof(int), stream),
               "cannot set the memory of check_finite_and_unscale"));
  INTERP_RETURN_IF_ERROR(
      WithFloats("check_finite_and_unscale", dtype, [&](auto type) -> absl::Status {
        using T = typename decltype(type)::type;
        INTERP_RETURN_IF_ERROR(
            ForEachBatch(arrays, 1, [&](const ArrayBatch& batch, unsigned blocks) {
              return Launch(FindInfinite<T>, blocks, kBlockThreads,
                            /*shared_bytes=*/0, stream, batch, first_infinite);
            }));
        return ForEachBatch(arrays, 1, [&](const ArrayBatch& batch, unsigned blocks) {
          return Launch(Unscale<T>, blocks, kBlockThreads,
                        /*shared_bytes=*/0, stream, batch, scale, first_infinite);
        });
      }));
  return Launch(TellFound, 1, 1, /*shared_bytes=*/0, stream, first_infinite, found);
}

absl::Status ZeroWhere(const bool* found, absl::Span<const ArrayUpdate> arrays,
                       cudaStream_t stream) {
  const auto in_words = [](const ArrayUpdate& array) {
    return array.size % 4 == 0 && AlignedTo(array.in, 4) && AlignedTo(array.out, 4);
  };
  if (std::all_of(arrays.begin(), arrays.end(), in_words)) {
    return CopyOrZeroAll<uint32_t>(found, arrays, stream);
  }
  return CopyOrZeroAll<uint8_t>(found, arrays, stream);
}

absl::Status UpdateLossScale(const LossScaleArguments& args, cudaStream_t stream) {
  if (!IsFloating(args.scale.dtype)) {
    return InvalidArgument("a loss scale of ", Name(args.scale.dtype), ", expected a float");
  }
  return Launch(NextScale, 1, 1, /*shared_bytes=*/0, stream, args);
}

}  // namespace interp::cuda
