#include "kernels/cuda/batch_norm.h"
#include "kernels/cuda/channels.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

// The workspace: two numbers for each part of each channel, then the factors of the channels.
struct Scratch {
  float* parts;
  float* factors[3];

  Scratch(const ChannelShape& shape, float* workspace) : parts(workspace) {
    float* next = workspace + 2 * shape.channels * ChannelWalk::PartsOf(shape);
    for (float*& factor : factors) {
      factor = next;
      next += shape.channels;
    }
  }
};

// Means and sums of squares around them, of the parts of channels. Two passes over a part: one
// would lose digits where the mean is large.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    PartMoments(const ChannelWalk walk, const T* x, float* moments) {
  for (int64_t n = blockIdx.x; n < walk.shape.channels * walk.parts; n += gridDim.x) {
    const int64_t channel = n / walk.parts;
    const int part = static_cast<int>(n % walk.parts);
    const auto count = static_cast<float>(walk.Begin(part + 1) - walk.Begin(part));
    const float mean =
        SumPart(walk, channel, part, [x](int64_t at) { return ToCompute(x[at]); }) / count;
    const float squares = SumPart(walk, channel, part, [x, mean](int64_t at) {
      const float difference = ToCompute(x[at]) - mean;
      return difference * difference;
    });
    if (threadIdx.x != 0) continue;
    moments[2 * n] = mean;
    moments[2 * n + 1] = squares;
  }
}

struct Moments {
  float mean;
  float variance;
};

// The moments of a channel from those of its parts (Chan, Golub and LeVeque, "Algorithms for
// Computing the Sample Variance", 1983).
__device__ Moments JoinParts(const ChannelWalk& walk, int64_t channel, const float* moments) {
  const float* const parts = moments + 2 * channel * walk.parts;
  float mean = parts[0];
  float squares = parts[1];
  for (int part = 1; part < walk.parts; ++part) {
    const auto before = static_cast<float>(walk.Begin(part));
    const auto after = static_cast<float>(walk.Begin(part + 1));
    const float difference = parts[2 * part] - mean;
    mean += difference * ((after - before) / after);
    squares += parts[2 * part + 1] + difference * difference * (before * (after - before) / after);
  }
  return {mean, squares / static_cast<float>(walk.shape.per_channel())};
}

// Statistics of channels and the factors that y = x factor + shift has.
__global__ void __launch_bounds__(kBlockThreads)
    FinishStatistics(const ChannelWalk walk, const BatchNormArguments args, const Scratch scratch) {
  const bool passes = !args.running && walk.shape.per_channel() == 1;
  const float momentum = args.momentum_data != nullptr ? *args.momentum_data : args.momentum;
  for (int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; c < walk.shape.channels;
       c += int64_t{gridDim.x} * blockDim.x) {
    Moments used = {args.mean[c], args.variance[c]};
    Moments running = used;
    float inverse = 0;
    if (!args.running && !passes) {
      used = JoinParts(walk, c, scratch.parts);
      running.mean = running.mean * momentum + used.mean * (1.0f - momentum);
      running.variance = running.variance * momentum + used.variance * (1.0f - momentum);
    }
    inverse = 1.0f / sqrtf(used.variance + args.epsilon);
    const float scale = args.scale != nullptr ? args.scale[c] : 1.0f;
    const float bias = args.bias != nullptr ? args.bias[c] : 0.0f;
    scratch.factors[0][c] = passes ? 1.0f : scale * inverse;
    scratch.factors[1][c] = passes ? 0.0f : bias - used.mean * scale * inverse;
    const bool saves = !args.running && !passes;
    if (args.mean_out != nullptr) args.mean_out[c] = running.mean;
    if (args.variance_out != nullptr) args.variance_out[c] = running.variance;
    if (args.saved_mean != nullptr) args.saved_mean[c] = saves ? used.mean : 0.0f;
    if (args.saved_inverse != nullptr) args.saved_inverse[c] = saves ? inverse : 0.0f;
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    ScaleElements(const ChannelWalk walk, const Scratch scratch, bool relu, const T* x, T* y) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < walk.shape.size();
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t c = walk.ChannelOf(i);
    const float value = ToCompute(x[i]) * scratch.factors[0][c] + scratch.factors[1][c];
    y[i] = FromCompute<T>(relu && value < 0 ? 0.0f : value);
  }
}

// Sums of y_grad and of y_grad (x - mean), of the parts of channels.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    PartGradients(const ChannelWalk walk, const BatchNormGradientArguments args, float* sums) {
  const T* const x = static_cast<const T*>(args.x);
  const T* const grad = static_cast<const T*>(args.y_grad);
  for (int64_t n = blockIdx.x; n < walk.shape.channels * walk.parts; n += gridDim.x) {
    const int64_t channel = n / walk.parts;
    const int part = static_cast<int>(n % walk.parts);
    const float mean = args.mean[channel];
    const float plain =
        SumPart(walk, channel, part, [grad](int64_t at) { return ToCompute(grad[at]); });
    const float product = SumPart(walk, channel, part, [x, grad, mean](int64_t at) {
      return ToCompute(grad[at]) * (ToCompute(x[at]) - mean);
    });
    if (threadIdx.x != 0) continue;
    sums[2 * n] = plain;
    sums[2 * n + 1] = product;
  }
}

// Gradients of scale and bias, and the factors of x_grad = a y_grad + b (x - mean) + c.
__global__ void __launch_bounds__(kBlockThreads)
    FinishGradients(const ChannelWalk walk, const BatchNormGradientArguments args,
                    const Scratch scratch) {
  const bool passes = !args.running && walk.shape.per_channel() == 1;
  const auto count = static_cast<float>(walk.shape.per_channel());
  for (int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; c < walk.shape.channels;
       c += int64_t{gridDim.x} * blockDim.x) {
    float plain = 0;
    float product = 0;
    for (int part = 0; part < walk.parts && !passes; ++part) {
      plain += scratch.parts[2 * (c * walk.parts + part)];
      product += scratch.parts[2 * (c * walk.parts + part) + 1];
    }
    const float inverse =
        args.running ? 1.0f / sqrtf(args.variance[c] + args.epsilon) : args.variance[c];
    const float scale = args.scale != nullptr ? args.scale[c] : 1.0f;
    const float gradient = passes ? 1.0f : scale * inverse;
    const bool of_batch = !args.running && !passes;
    scratch.factors[0][c] = gradient;
    scratch.factors[1][c] = of_batch ? -gradient * inverse * inverse * product / count : 0.0f;
    scratch.factors[2][c] = of_batch ? -gradient * plain / count : 0.0f;
    if (args.scale_grad != nullptr) args.scale_grad[c] = passes ? 0.0f : product * inverse;
    if (args.bias_grad != nullptr) args.bias_grad[c] = plain;
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    ApplyGradients(const ChannelWalk walk, const BatchNormGradientArguments args,
                   const Scratch scratch) {
  const T* const x = static_cast<const T*>(args.x);
  const T* const grad = static_cast<const T*>(args.y_grad);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < walk.shape.size();
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t c = walk.ChannelOf(i);
    const float value = scratch.factors[0][c] * ToCompute(grad[i]) +
                        scratch.factors[1][c] * (ToCompute(x[i]) - args.mean[c]) +
                        scratch.factors[2][c];
    static_cast<T*>(args.x_grad)[i] = FromCompute<T>(value);
  }
}

absl::Status CheckShape(const ChannelShape& shape) {
  const bool fits = shape.size() <= kMostElements && shape.pixels <= kMostElements &&
                    shape.channels <= kMostElements;
  if (fits) return absl::OkStatus();
  return Unimplemented("batch_norm of ", shape.size(), " elements on a GPU, expected at most ",
                       kMostElements);
}

unsigned PartBlocks(const ChannelWalk& walk) {
  return BlocksFor(walk.shape.channels * walk.parts, 1);
}

}  // namespace

int64_t BatchNormWorkspace(const ChannelShape& shape) {
  return shape.channels * (2 * ChannelWalk::PartsOf(shape) + 3);
}

absl::Status BatchNorm(DType dtype, const BatchNormArguments& args, cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckShape(args.shape));
  if (args.shape.channels == 0) return absl::OkStatus();
  return WithFloats("batch_norm", dtype, [&](auto type) -> absl::Status {
    using T = typename decltype(type)::type;
    const ChannelWalk walk(args.shape);
    const Scratch scratch(args.shape, args.workspace);
    const T* const x = static_cast<const T*>(args.x);
    if (!args.running) {
      INTERP_RETURN_IF_ERROR(Launch(PartMoments<T>, PartBlocks(walk), kBlockThreads,
                                    /*shared_bytes=*/0, stream, walk, x, scratch.parts));
    }
    INTERP_RETURN_IF_ERROR(
        LaunchElements(FinishStatistics, args.shape.channels, stream, walk, args, scratch));
    if (args.shape.size() == 0) return absl::OkStatus();
    return LaunchElements(ScaleElements<T>, args.shape.size(), stream, walk, scratch, args.relu, x,
                          static_cast<T*>(args.y));
  });
}

absl::Status BatchNormGradient(DType dtype, const BatchNormGradientArguments& args,
                               cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckShape(args.shape));
  if (args.shape.channels == 0) return absl::OkStatus();
  return WithFloats("batch_norm_grad", dtype, [&](auto type) -> absl::Status {
    using T = typename decltype(type)::type;
    const ChannelWalk walk(args.shape);
    const Scratch scratch(args.shape, args.workspace);
    INTERP_RETURN_IF_ERROR(Launch(PartGradients<T>, PartBlocks(walk), kBlockThreads,
                                  /*shared_bytes=*/0, stream, walk, args, scratch.parts));
    INTERP_RETURN_IF_ERROR(
        LaunchElements(FinishGradients, args.shape.channels, stream, walk, args, scratch));
    if (args.x_grad == nullptr || args.shape.size() == 0) return absl::OkStatus();
    return LaunchElements(ApplyGradients<T>, args.shape.size(), stream, walk, args, scratch);
  });
}

}  // namespace interp::cuda
