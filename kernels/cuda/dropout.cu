#include "core/resource/distributions.h"
#include "kernels/cuda/dropout.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/twister.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

__device__ int64_t SeedOf(const DropoutArguments& args) {
  if (args.seed_data == nullptr) return args.seed;
  if (args.seed_dtype == DType::kInt32) return *static_cast<const int32_t*>(args.seed_data);
  return static_cast<int32_t>(*static_cast<const int64_t*>(args.seed_data));
}

template <typename T>
__device__ void Drop(const DropoutArguments& args, int64_t i, bool keep) {
  const float x = ToCompute(static_cast<const T*>(args.x)[i]);
  static_cast<T*>(args.out)[i] = FromCompute<T>(keep ? x / args.divisor : 0.0f);
  if (args.mask != nullptr) args.mask[i] = keep ? 1 : 0;
}

// Four elements have the words of one block of the stream. Does nothing where there is a seed.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    DropByStream(const DropoutArguments args, uint64_t dropped) {
  if (SeedOf(args) != 0) return;
  constexpr int64_t kWords = 4;
  const RandomStream random = args.random.OfRun();
  for (int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kWords; first < args.size;
       first += int64_t{gridDim.x} * blockDim.x * kWords) {
    const PhiloxBlock bits = random.Block(static_cast<uint64_t>(first / kWords));
    INTERP_UNROLL
    for (int k = 0; k < kWords; ++k) {
      if (first + k < args.size) Drop<T>(args, first + k, bits[k] >= dropped);
    }
  }
}

// One block: the numbers come one after the other. Does nothing without a seed.
template <typename T>
__global__ void __launch_bounds__(kTwisterThreads) DropByTwister(const DropoutArguments args) {
  const int64_t seed = SeedOf(args);
  if (seed == 0) return;
  ForEachWord(seed, args.size, [&args](int64_t i, uint64_t word) {
    Drop<T>(args, i, args.probability < 1 && CanonicalFloat(word) >= args.probability);
  });
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) ScaleMasked(const MaskedScaleArguments args) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.size;
       i += int64_t{gridDim.x} * blockDim.x) {
    const float x = ToCompute(static_cast<const T*>(args.x)[i]);
    const bool keeps = args.mask == nullptr || args.mask[i] != 0;
    static_cast<T*>(args.out)[i] = FromCompute<T>(keeps ? x * args.factor / args.divisor : 0.0f);
  }
}

}  // namespace

absl::Status Dropout(DType dtype, const DropoutArguments& args, cudaStream_t stream) {
  const bool known = args.seed_data == nullptr;
  if (!known && args.seed_dtype != DType::kInt32 && args.seed_dtype != DType::kInt64) {
    return InvalidArgument("a seed of ", Name(args.seed_dtype), ", expected int32 or int64");
  }
  if (args.size == 0) return absl::OkStatus();
  return WithFloats("dropout", dtype, [&](auto type) -> absl::Status {
    using T = typename decltype(type)::type;
    if (!known || args.seed == 0) {
      INTERP_RETURN_IF_ERROR(Launch(DropByStream<T>, BlocksFor(args.size, 4 * kBlockThreads),
                                    kBlockThreads, /*shared_bytes=*/0, stream, args,
                                    Threshold32(args.probability)));
    }
    if (known && args.seed == 0) return absl::OkStatus();
    return Launch(DropByTwister<T>, 1, kTwisterThreads, /*shared_bytes=*/0, stream, args);
  });
}

absl::Status MaskedScale(DType dtype, const MaskedScaleArguments& args, cudaStream_t stream) {
  return WithFloats("dropout", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(ScaleMasked<T>, args.size, stream, args);
  });
}

}  // namespace interp::cuda
