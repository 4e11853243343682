#include "kernels/cuda/batch_norm.h"
#include "kernels/cuda/channels.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

int64_t PartNumbers(const ChannelShape& shape) {
  return 2 * shape.channels * ChannelWalk::PartsOf(shape);
}

// The workspace: two numbers for each part of each channel, then the factors of the channels.
struct Scratch {
  static constexpr int kFactors = 3;

  double* parts;
  float* factors[kFactors];

  Scratch(const ChannelShape& shape, void* workspace) : parts(static_cast<double*>(workspace)) {
    auto* next = reinterpret_cast<float*>(parts + PartNumbers(shape));
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
    PartMoments(const ChannelWalk walk, const T* x, double* moments) {
  for (int64_t n = blockIdx.x; n < walk.shape.channels * walk.parts; n += gridDim.x) {
    const int64_t channel = n / walk.parts;
    const int part = static_cast<int>(n % walk.parts);
    const auto count = static_cast<double>(walk.Begin(part + 1) - walk.Begin(part));
    const double mean =
        SumPart(walk, channel, part, [x](int64_t at) { return ToCompute(x[at]); }) / count;
    const double squares = SumPart(walk, channel, part, [x, mean](int64_t at) {
      const double difference = ToCompute(x[at]) - mean;
      return difference * difference;
    });
    if (threadIdx.x != 0) continue;
    moments[2 * n] = mean;
    moments[2 * n + 1] = squares;
  }
}

struct Moments {
  double mean;
  double variance;
};

// The moments of a channel from those of its parts (Chan, Golub and LeVeque, "Algorithms for
// Computing the Sample Variance", 1983).
__device__ Moments JoinParts(const ChannelWalk& walk, int64_t channel, const double* moments) {
  const double* const parts = moments + 2 * channel * walk.parts;
  double mean = parts[0];
  double squares = parts[1];
  for (int part = 1; part < walk.parts; ++part) {
    const auto before = static_cast<double>(walk.Begin(part));
    const auto after = static_cast<double>(walk.Begin(part + 1));
    const double difference = parts[2 * part] - mean;
    mean += difference * ((after - before) / after);
    squares += parts[2 * part + 1] + difference * difference * (before * (after - before) / after);
  }
  return {mean, squares / static_cast<double>(walk.shape.per_channel())};
}

// Statistics of channels and the factors that y = x factor + shift has.
__global__ void __launch_bounds__(kBlockThreads)
    FinishStatistics(const ChannelWalk walk, const BatchNormArguments args, const Scratch scratch) {
  const bool passes = !args.running && walk.shape.per_channel() == 1;
  const double momentum = args.momentum_data != nullptr ? *args.momentum_data : args.momentum;
  for (int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; c < walk.shape.channels;
       c += int64_t{gridDim.x} * blockDim.x) {
    Moments used = {args.mean[c], args.variance[c]};
    Moments running = used;
    if (!args.running && !passes) {
      used = JoinParts(walk, c, scratch.parts);
      running.mean = running.mean * momentum + used.mean * (1 - momentum);
      running.variance = running.variance * momentum + used.variance * (1 - momentum);
    }
    const double inverse = 1 / sqrt(used.variance + static_cast<double>(args.epsilon));
    const double scale = args.scale != nullptr ? args.scale[c] : 1;
    const double bias = args.bias != nullptr ? args.bias[c] : 0;
    scratch.factors[0][c] = passes ? 1.0f : static_cast<float>(scale * inverse);
    scratch.factors[1][c] = passes ? 0.0f : static_cast<float>(bias - used.mean * scale * inverse);
    const bool saves = !args.running && !passes;
    if (args.mean_out != nullptr) args.mean_out[c] = static_cast<float>(running.mean);
    if (args.variance_out != nullptr) args.variance_out[c] = static_cast<float>(running.variance);
    if (args.saved_mean != nullptr)
      args.saved_mean[c] = saves ? static_cast<float>(used.mean) : 0.0f;
    if (args.saved_inverse != nullptr)
      args.saved_inverse[c] = saves ? static_cast<float>(inverse) : 0.0f;
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
    PartGradients(const ChannelWalk walk, const BatchNormGradientArguments args, double* sums) {
  const T* const x = static_cast<const T*>(args.x);
  const T* const grad = static_cast<const T*>(args.y_grad);
  for (int64_t n = blockIdx.x; n < walk.shape.channels * walk.parts; n += gridDim.x) {
    const int64_t channel = n / walk.parts;
    const int part = static_cast<int>(n % walk.parts);
    const float mean = args.mean[channel];
    const double plain =
        SumPart(walk, channel, part, [grad](int64_t at) { return ToCompute(grad[at]); });
    const double product = SumPart(walk, channel, part, [x, grad, mean](int64_t at) {
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
  const auto count = static_cast<double>(walk.shape.per_channel());
  for (int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; c < walk.shape.channels;
       c += int64_t{gridDim.x} * blockDim.x) {
    double plain = 0;
    double product = 0;
    for (int part = 0; part < walk.parts && !passes; ++part) {
      plain += scratch.parts[2 * (c * walk.parts + part)];
      product += scratch.parts[2 * (c * walk.parts + part) + 1];
    }
    const double variance = args.variance[c];
    const double inverse =
        args.running ? 1 / sqrt(variance + static_cast<double>(args.epsilon)) : variance;
    const double scale = args.scale != nullptr ? args.scale[c] : 1;
    const double gradient = passes ? 1 : scale * inverse;
    const bool of_batch = !args.running && !passes;
    const double of_value = of_batch ? -gradient * inverse * inverse * product / count : 0;
    const double shift = of_batch ? -gradient * plain / count : 0;
    scratch.factors[0][c] = static_cast<float>(gradient);
    scratch.factors[1][c] = static_cast<float>(of_value);
    scratch.factors[2][c] = static_cast<float>(shift);
    const double of_scale = passes ? 0 : product * inverse;
    if (args.scale_grad != nullptr) args.scale_grad[c] = static_cast<float>(of_scale);
    if (args.bias_grad != nullptr) args.bias_grad[c] = static_cast<float>(plain);
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

size_t BatchNormWorkspace(const ChannelShape& shape) {
  return static_cast<size_t>(PartNumbers(shape)) * sizeof(double) +
         static_cast<size_t>(Scratch::kFactors * shape.channels) * sizeof(float);
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
