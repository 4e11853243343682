#include "core/resource/distributions.h"
#include "kernels/cuda/dropout.h"
#include "kernels/cuda/launch.h"
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
  for (int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kWords; first < args.size;
       first += int64_t{gridDim.x} * blockDim.x * kWords) {
    const PhiloxBlock bits = args.random.Block(static_cast<uint64_t>(first / kWords));
    INTERP_UNROLL
    for (int k = 0; k < kWords; ++k) {
      if (first + k < args.size) Drop<T>(args, first + k, bits[k] >= dropped);
    }
  }
}

// std::mt19937_64 (Nishimura, "Tables of 64-bit Mersenne twisters", 2000).
constexpr int kState = 312;
constexpr int kHalf = kState / 2;
constexpr int kTwisterThreads = 160;

__device__ void SeedTwister(uint64_t seed, uint64_t* state) {
  state[0] = seed;
  for (int i = 1; i < kState; ++i) {
    const uint64_t last = state[i - 1];
    state[i] = 6364136223846793005ull * (last ^ (last >> 62)) + static_cast<uint64_t>(i);
  }
}

// The new word `i`; one half of the state at a time, as words need new ones of the other half.
__device__ uint64_t Twist(const uint64_t* state, int i) {
  constexpr uint64_t kUpper = 0xFFFFFFFF80000000ull;
  const uint64_t mixed = (state[i] & kUpper) | (state[(i + 1) % kState] & ~kUpper);
  return state[(i + kHalf) % kState] ^ (mixed >> 1) ^
         ((mixed & 1) != 0 ? 0xB5026F5AA96619E9ull : 0);
}

// As std::uniform_real_distribution<float> makes of 64 bits.
__device__ float UniformOf(uint64_t word) {
  word ^= (word >> 29) & 0x5555555555555555ull;
  word ^= (word << 17) & 0x71D67FFFEDA60000ull;
  word ^= (word << 37) & 0xFFF7EEE000000000ull;
  word ^= word >> 43;
  const float unit = static_cast<float>(word) * 0x1p-64f;
  return unit < 1.0f ? unit : 0x1.fffffep-1f;
}

// One block: the numbers come one after the other. Does nothing without a seed.
template <typename T>
__global__ void __launch_bounds__(kTwisterThreads) DropByTwister(const DropoutArguments args) {
  INTERP_SHARED(uint64_t, state, [kState]);
  const int64_t seed = SeedOf(args);
  if (seed == 0) return;
  const int t = threadIdx.x;
  if (t == 0) SeedTwister(static_cast<uint64_t>(seed), state);
  __syncthreads();
  for (int64_t first = 0; first < args.size; first += kState) {
    for (int begin = 0; begin < kState; begin += kHalf) {
      const uint64_t word = t < kHalf ? Twist(state, begin + t) : 0;
      __syncthreads();  // all have read what is written now
      if (t < kHalf) state[begin + t] = word;
      __syncthreads();
      if (t < kHalf && first + begin + t < args.size) {
        Drop<T>(args, first + begin + t,
                args.probability < 1 && UniformOf(word) >= args.probability);
      }
    }
  }
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
  if (args.size == 0) return absl::OkStatus();
  return WithFloats("dropout", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return Launch(ScaleMasked<T>, BlocksFor(args.size, kBlockThreads), kBlockThreads,
                  /*shared_bytes=*/0, stream, args);
  });
}

}  // namespace interp::cuda
