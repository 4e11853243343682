// Compiled without contraction into fused multiply-adds: numbers are rounded as often as the
// host's.
#include <type_traits>
#include <utility>

#include "core/resource/distributions.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/sequences.h"
#include "kernels/cuda/twister.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

// Element `i` from a number in [0, 1).
template <typename T>
__device__ void Store(const UniformArguments& args, int64_t i, ComputeType<T> unit) {
  using C = ComputeType<T>;
  const bool on_diagonal = args.diag_num == 1 ? i == 0
                                              : args.diag_num > 1 && i % args.diag_stride == 0 &&
                                                    i / args.diag_stride < args.diag_num;
  const C min = args.min;
  const C value = unit * (static_cast<C>(args.max) - min) + min;
  static_cast<T*>(args.out)[i] = FromCompute<T>(on_diagonal ? C{args.diag_val} : value);
}

// Elements of one block of the stream: four have a word each, or two have two.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) UniformByStream(const UniformArguments args) {
  constexpr bool kWide = std::is_same_v<T, double>;
  constexpr int kElements = kWide ? 2 : 4;
  const RandomStream random = args.random.OfRun();
  for (int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kElements;
       first < args.size; first += int64_t{gridDim.x} * blockDim.x * kElements) {
    const PhiloxBlock bits = random.Block(static_cast<uint64_t>(first / kElements));
    INTERP_UNROLL
    for (int k = 0; k < kElements; ++k) {
      if (first + k >= args.size) continue;
      if constexpr (kWide) {
        Store<T>(args, first + k, UnitDouble(Bits64(bits, k)));
      } else {
        Store<T>(args, first + k, UnitFloat(bits[k]));
      }
    }
  }
}

// One block: the numbers come one after the other.
template <typename T>
__global__ void __launch_bounds__(kTwisterThreads) UniformByTwister(const UniformArguments args) {
  ForEachWord(args.seed, args.size, [&args](int64_t i, uint64_t number) {
    if constexpr (std::is_same_v<T, double>) {
      Store<T>(args, i, CanonicalDouble(number));
    } else {
      Store<T>(args, i, CanonicalFloat(number));
    }
  });
}

// A block of the stream makes two pairs of floats, or one of doubles.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) NormalByStream(const NormalArguments args) {
  constexpr bool kWide = std::is_same_v<T, double>;
  constexpr int kPairs = kWide ? 1 : 2;
  T* const out = static_cast<T*>(args.out);
  const T mean = args.mean;
  const T deviation = args.deviation;
  const RandomStream random = args.random.OfRun();
  for (int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 2 * kPairs;
       first < args.size; first += int64_t{gridDim.x} * blockDim.x * 2 * kPairs) {
    const PhiloxBlock bits = random.Block(static_cast<uint64_t>(first / (2 * kPairs)));
    INTERP_UNROLL
    for (int pair = 0; pair < kPairs; ++pair) {
      const int64_t i = first + 2 * pair;
      if (i >= args.size) continue;
      std::pair<T, T> normal;
      if constexpr (kWide) {
        normal = NormalPair<T>(Bits64(bits, 0), Bits64(bits, 1));
      } else {
        normal = NormalPair<T>(bits[2 * pair], bits[2 * pair + 1]);
      }
      out[i] = mean + deviation * normal.first;
      if (i + 1 < args.size) out[i + 1] = mean + deviation * normal.second;
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kTwisterThreads) NormalByTwister(const NormalArguments args) {
  ForEachNormal<T>(args.seed, args.size, [&args](int64_t i, T normal) {
    static_cast<T*>(args.out)[i] = normal * args.deviation + args.mean;
  });
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) IntegersByStream(const IntegersArguments args) {
  const RandomStream random = args.random.OfRun();
  for (int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 2; first < args.size;
       first += int64_t{gridDim.x} * blockDim.x * 2) {
    const PhiloxBlock bits = random.Block(static_cast<uint64_t>(first / 2));
    INTERP_UNROLL
    for (int k = 0; k < 2; ++k) {
      if (first + k >= args.size) continue;
      const uint64_t above = Below(Bits64(bits, k), args.range);
      static_cast<T*>(args.out)[first + k] = static_cast<T>(args.low + static_cast<int64_t>(above));
    }
  }
}

__global__ void Seed(const RandomNumbers random, int32_t* out) {
  *out = static_cast<int32_t>(random.OfRun().Word(0) | 1u);
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    Count(int64_t start, int64_t step, T* out, int64_t size) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = static_cast<T>(WrapAdd(start, WrapMul(i, step)));
  }
}

// Calls function(Type<T>()) for integers that ops make.
template <typename Function>
absl::Status WithIntegers(absl::string_view what, DType dtype, Function function) {
  if (dtype == DType::kInt32) return function(Type<int32_t>());
  if (dtype == DType::kInt64) return function(Type<int64_t>());
  return Unimplemented(what, " of ", Name(dtype), " on a GPU");
}

template <typename T>
absl::Status Draw(const UniformArguments& args, cudaStream_t stream) {
  if (args.seed != 0) {
    return Launch(UniformByTwister<T>, 1, kTwisterThreads, /*shared_bytes=*/0, stream, args);
  }
  constexpr int kElements = std::is_same_v<T, double> ? 2 : 4;
  return Launch(UniformByStream<T>, BlocksFor(args.size, kElements * kBlockThreads), kBlockThreads,
                /*shared_bytes=*/0, stream, args);
}

}  // namespace

absl::Status DrawUniform(DType dtype, const UniformArguments& arguments, cudaStream_t stream) {
  if (arguments.size == 0) return absl::OkStatus();
  if (dtype == DType::kFloat64) return Draw<double>(arguments, stream);
  return WithFloats("uniform random numbers", dtype, [&](auto type) {
    return Draw<typename decltype(type)::type>(arguments, stream);
  });
}

absl::Status DrawNormal(DType dtype, const NormalArguments& arguments, cudaStream_t stream) {
  if (arguments.size == 0) return absl::OkStatus();
  return WithWideFloats("normal random numbers", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (arguments.seed != 0) {
      return Launch(NormalByTwister<T>, 1, kTwisterThreads, /*shared_bytes=*/0, stream, arguments);
    }
    constexpr int kElements = sizeof(T) == sizeof(double) ? 2 : 4;
    return Launch(NormalByStream<T>, BlocksFor(arguments.size, kElements * kBlockThreads),
                  kBlockThreads, /*shared_bytes=*/0, stream, arguments);
  });
}

absl::Status DrawIntegers(DType dtype, const IntegersArguments& arguments, cudaStream_t stream) {
  if (arguments.size == 0) return absl::OkStatus();
  return WithIntegers("random integers", dtype, [&](auto type) {
    return Launch(IntegersByStream<typename decltype(type)::type>,
                  BlocksFor(arguments.size, 2 * kBlockThreads), kBlockThreads, /*shared_bytes=*/0,
                  stream, arguments);
  });
}

absl::Status DrawSeed(const RandomNumbers& random, int32_t* out, cudaStream_t stream) {
  return Launch(Seed, /*grid=*/1, /*block=*/1, /*shared_bytes=*/0, stream, random, out);
}

absl::Status FillRange(DType dtype, int64_t start, int64_t step, void* out, int64_t size,
                       cudaStream_t stream) {
  return WithIntegers("a range", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return LaunchElements(Count<T>, size, stream, start, step, static_cast<T*>(out), size);
  });
}

}  // namespace interp::cuda
