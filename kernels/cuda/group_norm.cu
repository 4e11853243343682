#include "kernels/cuda/fold.h"
#include "kernels/cuda/group_norm.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

// A group of one image.
struct Group {
  ChannelShape shape;
  int64_t image;
  int64_t first;  // channel
  int64_t size;   // channels

  __device__ int64_t length() const { return size * shape.pixels; }
  __device__ int64_t ChannelOf(int64_t i) const {
    return first + (shape.channels_last ? i % size : i / shape.pixels);
  }
  __device__ int64_t OffsetOf(int64_t i) const {
    if (!shape.channels_last) return (image * shape.channels + first) * shape.pixels + i;
    return (image * shape.pixels + i / size) * shape.channels + first + i % size;
  }
};
__device__ Group GroupOf(const ChannelShape& shape, int64_t groups, int64_t index) {
  const int64_t size = shape.channels / groups;
  return {shape, index / groups, index % groups * size, size};
}

template <typename T>
__device__ double At(const void* vector, int64_t i, double otherwise) {
  return vector != nullptr ? static_cast<double>(static_cast<const T*>(vector)[i]) : otherwise;
}

// A group for each row of threads.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) NormGroups(const GroupNormArguments args) {
  const T* const x = static_cast<const T*>(args.x);
  for (int64_t index = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
       index < args.shape.images * args.groups; index += int64_t{gridDim.x} * blockDim.y) {
    const Group group = GroupOf(args.shape, args.groups, index);
    const auto count = static_cast<double>(group.length());
    double sum = 0;
    for (int64_t i = threadIdx.x; i < group.length(); i += blockDim.x) {
      sum += static_cast<double>(x[group.OffsetOf(i)]);
    }
    const double mean = SumRow(sum) / count;
    sum = 0;
    for (int64_t i = threadIdx.x; i < group.length(); i += blockDim.x) {
      const double deviation = static_cast<double>(x[group.OffsetOf(i)]) - mean;
      sum += deviation * deviation;
    }
    const double variance = SumRow(sum) / count;
    const double inverse = 1 / sqrt(variance + static_cast<double>(args.epsilon));
    for (int64_t i = threadIdx.x; i < group.length(); i += blockDim.x) {
      const int64_t channel = group.ChannelOf(i);
      const double factor = inverse * At<T>(args.scale, channel, 1.0);
      const auto shift = static_cast<T>(At<T>(args.bias, channel, 0.0) - mean * factor);
      const int64_t at = group.OffsetOf(i);
      static_cast<T*>(args.y)[at] = x[at] * static_cast<T>(factor) + shift;
    }
    if (threadIdx.x != 0) continue;
    if (args.mean != nullptr) static_cast<T*>(args.mean)[index] = static_cast<T>(mean);
    if (args.variance != nullptr) {
      const bool is_inverse = args.stored == StoredVariance::kInverse;
      static_cast<T*>(args.variance)[index] = static_cast<T>(is_inverse ? inverse : variance);
    }
  }
}

template <typename T>
__device__ double InverseOf(const GroupNormGradArguments& args, int64_t group) {
  const auto variance = static_cast<double>(static_cast<const T*>(args.variance)[group]);
  if (args.stored == StoredVariance::kInverse) return variance;
  return 1 / sqrt(variance + static_cast<double>(args.epsilon));
}

// A channel of an image for each row of threads: the sums of y_grad and of y_grad (x - mean).
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) SumChannels(const GroupNormGradArguments args) {
  const T* const x = static_cast<const T*>(args.x);
  const T* const y_grad = static_cast<const T*>(args.y_grad);
  const ChannelShape& shape = args.shape;
  for (int64_t index = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
       index < shape.images * shape.channels; index += int64_t{gridDim.x} * blockDim.y) {
    // As many groups as channels: each is one channel.
    const Group channel = GroupOf(shape, shape.channels, index);
    const int64_t group = index / (shape.channels / args.groups);
    const T mean = static_cast<const T*>(args.mean)[group];
    double gradients = 0;
    double products = 0;
    for (int64_t i = threadIdx.x; i < shape.pixels; i += blockDim.x) {
      const int64_t at = channel.OffsetOf(i);
      gradients += static_cast<double>(y_grad[at]);
      products += static_cast<double>(y_grad[at] * (x[at] - mean));
    }
    gradients = SumRow(gradients);
    products = SumRow(products);
    if (threadIdx.x != 0) continue;
    args.sums[2 * index] = gradients;
    args.sums[2 * index + 1] = products;
  }
}

// A group for each row of threads.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) GiveImages(const GroupNormGradArguments args) {
  const T* const x = static_cast<const T*>(args.x);
  const T* const y_grad = static_cast<const T*>(args.y_grad);
  for (int64_t index = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
       index < args.shape.images * args.groups; index += int64_t{gridDim.x} * blockDim.y) {
    const Group group = GroupOf(args.shape, args.groups, index);
    const auto count = static_cast<double>(group.length());
    double gradients = 0;
    double products = 0;
    for (int64_t i = threadIdx.x; i < group.size; i += blockDim.x) {
      const double scale = At<T>(args.scale, group.first + i, 1.0);
      const int64_t at = 2 * (index * group.size + i);
      gradients += args.sums[at] * scale;
      products += args.sums[at + 1] * scale;
    }
    gradients = SumRow(gradients);
    products = SumRow(products);
    const double inverse = InverseOf<T>(args, index);
    const T mean = static_cast<const T*>(args.mean)[index];
    const auto of_value = static_cast<T>(-inverse * inverse * inverse * products / count);
    const auto shift = args.centers ? static_cast<T>(-inverse * gradients / count) : T{0};
    for (int64_t i = threadIdx.x; i < group.length(); i += blockDim.x) {
      const auto of_gradient = static_cast<T>(inverse * At<T>(args.scale, group.ChannelOf(i), 1.0));
      const int64_t at = group.OffsetOf(i);
      static_cast<T*>(args.x_grad)[at] =
          y_grad[at] * of_gradient + (x[at] - mean) * of_value + shift;
    }
  }
}

// A channel for each thread.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) GiveVectors(const GroupNormGradArguments args) {
  const int64_t channels = args.shape.channels;
  for (int64_t channel = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; channel < channels;
       channel += int64_t{gridDim.x} * blockDim.x) {
    double gradients = 0;
    double products = 0;
    for (int64_t image = 0; image < args.shape.images; ++image) {
      const int64_t index = image * channels + channel;
      gradients += args.sums[2 * index];
      products += args.sums[2 * index + 1] * InverseOf<T>(args, index / (channels / args.groups));
    }
    if (args.scale_grad != nullptr) {
      static_cast<T*>(args.scale_grad)[channel] = static_cast<T>(products);
    }
    if (args.bias_grad != nullptr) {
      static_cast<T*>(args.bias_grad)[channel] = static_cast<T>(gradients);
    }
  }
}

template <typename T>
absl::Status RunGradient(const GroupNormGradArguments& args, cudaStream_t stream) {
  const ChannelShape& shape = args.shape;
  if (shape.size() > 0) {
    INTERP_RETURN_IF_ERROR(Launch(SumChannels<T>,
                                  RowBlocks(shape.images * shape.channels, shape.pixels),
                                  RowThreads(shape.pixels), /*shared_bytes=*/0, stream, args));
  }
  if (args.scale_grad != nullptr || args.bias_grad != nullptr) {
    GroupNormGradArguments summed = args;
    if (shape.size() == 0) summed.shape.images = 0;
    INTERP_RETURN_IF_ERROR(LaunchElements(GiveVectors<T>, shape.channels, stream, summed));
  }
  if (args.x_grad == nullptr || shape.size() == 0) return absl::OkStatus();
  const int64_t length = shape.channels / args.groups * shape.pixels;
  return Launch(GiveImages<T>, RowBlocks(shape.images * args.groups, length), RowThreads(length),
                /*shared_bytes=*/0, stream, args);
}

absl::Status CheckGroupDType(DType dtype) {
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64) return absl::OkStatus();
  return Unimplemented("group_norm of ", Name(dtype), " on a GPU");
}

}  // namespace

absl::Status GroupNorm(DType dtype, const GroupNormArguments& arguments, cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckGroupDType(dtype));
  const ChannelShape& shape = arguments.shape;
  if (shape.size() == 0) return absl::OkStatus();
  const int64_t length = shape.channels / arguments.groups * shape.pixels;
  return Launch(dtype == DType::kFloat32 ? NormGroups<float> : NormGroups<double>,
                RowBlocks(shape.images * arguments.groups, length), RowThreads(length),
                /*shared_bytes=*/0, stream, arguments);
}

absl::Status GroupNormGrad(DType dtype, const GroupNormGradArguments& arguments,
                           cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckGroupDType(dtype));
  if (arguments.shape.channels == 0) return absl::OkStatus();
  return dtype == DType::kFloat32 ? RunGradient<float>(arguments, stream)
                                  : RunGradient<double>(arguments, stream);
}

}  // namespace interp::cuda
