#include "kernels/cuda/cross_entropy.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A line of a tensor, which the threads of a row work on.
struct Line {
  int64_t start;
  int64_t length;
  int64_t step;
};
__device__ Line LineAt(const LineShape& shape, int64_t line) {
  return {line / shape.inner * shape.length * shape.inner + line % shape.inner, shape.length,
          shape.inner};
}

// What the label of a line says.
struct HardLabel {
  int64_t position;  // -1: none
  float otherwise;   // the loss of none
};
// What is behind the point is dropped, as in Paddle. The least integer, which is no position and
// nothing to ignore, where the label is not within 2^30.
template <typename T>
__device__ int64_t WholeLabel(T label) {
  constexpr T kBound = T(1 << 30);
  return label > -kBound && label < kBound ? static_cast<int64_t>(label) : INT64_MIN;
}

__device__ int64_t ReadLabel(const Labels& labels, int64_t line) {
  switch (labels.dtype) {
    case DType::kUInt8:
      return static_cast<const uint8_t*>(labels.data)[line];
    case DType::kInt8:
      return static_cast<const int8_t*>(labels.data)[line];
    case DType::kInt16:
      return static_cast<const int16_t*>(labels.data)[line];
    case DType::kInt32:
      return static_cast<const int32_t*>(labels.data)[line];
    case DType::kFloat32:
      return WholeLabel(static_cast<const float*>(labels.data)[line]);
    case DType::kFloat64:
      return WholeLabel(static_cast<const double*>(labels.data)[line]);
    default:
      return static_cast<const int64_t*>(labels.data)[line];
  }
}
__device__ HardLabel LabelAt(const Labels& labels, int64_t line, int64_t length) {
  const int64_t label = ReadLabel(labels, line);
  if (label == labels.ignored) return {-1, 0.0f};
  if (label < 0 || label >= length) return {-1, kNan};
  return {label, 0.0f};
}

// -1e20 in place of -infinity.
__device__ float BoundedLog(float p) {
  const float log = logf(p);
  return isinf(log) ? (log > 0 ? 1e20f : -1e20f) : log;
}

// The logarithm of a probability from what stands for it: itself, or a logit with what its line has
// in common.
struct LineOfLogits {
  float greatest;
  float sum;
  float log_sum;

  // Keeps NaN.
  __device__ float Shifted(float x) const { return x - greatest < -64.0f ? -64.0f : x - greatest; }
};
__device__ float LogProbability(bool of_logits, const LineOfLogits& logits, float x) {
  return of_logits ? logits.Shifted(x) - logits.log_sum : BoundedLog(x);
}

__device__ LineOfLogits FoldLogits(const float* x, const Line& line) {
  float greatest = Lowest<float>();
  for (int64_t i = threadIdx.x; i < line.length; i += blockDim.x) {
    const float value = x[line.start + i * line.step];
    greatest = value > greatest || value != value ? value : greatest;
  }
  greatest = MaxRow(greatest);
  LineOfLogits logits = {greatest, 0.0f, 0.0f};
  for (int64_t i = threadIdx.x; i < line.length; i += blockDim.x) {
    logits.sum += expf(logits.Shifted(x[line.start + i * line.step]));
  }
  logits.sum = SumRow(logits.sum);
  logits.log_sum = logf(logits.sum);
  return logits;
}

// Each element is read before its probability is written, and by the thread that writes it.
__global__ void __launch_bounds__(kBlockThreads) LossRows(const CrossEntropyArguments args) {
  const int64_t lines = args.shape.outer * args.shape.inner;
  for (int64_t n = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; n < lines;
       n += int64_t{gridDim.x} * blockDim.y) {
    const Line line = LineAt(args.shape, n);
    LineOfLogits logits = {};
    if (args.of_logits) logits = FoldLogits(args.x, line);
    HardLabel label = {-1, 0.0f};
    if (!args.labels.soft) label = LabelAt(args.labels, n, line.length);
    float sum = 0;
    for (int64_t i = threadIdx.x; i < line.length; i += blockDim.x) {
      const int64_t at = line.start + i * line.step;
      const float x = args.x[at];
      const bool labelled = i == label.position;
      float log = 0;
      if (args.of_logits || args.labels.soft || labelled) {
        log = LogProbability(args.of_logits, logits, x);
      }
      const float p = args.of_logits ? expf(logits.Shifted(x)) / logits.sum : x;
      if (args.softmax != nullptr) args.softmax[at] = p;
      if (args.labels.soft) sum += static_cast<const float*>(args.labels.data)[at] * log;
      if (!labelled) continue;
      args.loss[n] = -log;
      if (args.matched != nullptr) args.matched[n] = p;
    }
    if (args.labels.soft) sum = SumRow(sum);
    if (threadIdx.x != 0 || label.position >= 0) continue;
    args.loss[n] = args.labels.soft ? -sum : label.otherwise;
    if (args.matched != nullptr) args.matched[n] = 0;
  }
}

__device__ float SlopeOf(CrossEntropySlope slope, float p, float label, float grad) {
  if (slope == CrossEntropySlope::kLogits) return grad * (p - label);
  if (slope == CrossEntropySlope::kProbabilities && label == 0) return 0.0f;
  return -grad * label / p;
}

__global__ void __launch_bounds__(kBlockThreads)
    LossGradientRows(const CrossEntropyGradientArguments args) {
  const int64_t lines = args.shape.outer * args.shape.inner;
  for (int64_t n = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; n < lines;
       n += int64_t{gridDim.x} * blockDim.y) {
    const Line line = LineAt(args.shape, n);
    HardLabel label = {-1, 0.0f};
    float grad = args.loss_grad[n];
    if (!args.labels.soft) {
      label = LabelAt(args.labels, n, line.length);
      if (label.position < 0) grad = label.otherwise;
    }
    for (int64_t i = threadIdx.x; i < line.length; i += blockDim.x) {
      const int64_t at = line.start + i * line.step;
      const float weight = args.labels.soft ? static_cast<const float*>(args.labels.data)[at]
                                            : (i == label.position ? 1.0f : 0.0f);
      const float p = args.probability != nullptr ? args.probability[at] : args.matched[n];
      const float slope = SlopeOf(args.slope, p, weight, grad);
      args.x_grad[at] = grad != grad ? grad : slope;
    }
  }
}

__device__ bool IsIgnored(float label, int32_t ignored) {
  // Out of the range of an int32, the host's conversion gives its least value.
  const bool fits = label >= -2147483648.0f && label < 2147483648.0f;
  return (fits ? static_cast<int32_t>(label) : std::numeric_limits<int32_t>::min()) == ignored;
}

// Adds to the count, which is the same in any order.
__global__ void __launch_bounds__(kBlockThreads)
    CountLabels(const SigmoidCrossEntropyArguments args) {
  unsigned long long count = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.size;
       i += int64_t{gridDim.x} * blockDim.x) {
    count += fabsf(args.label[i] - static_cast<float>(args.ignored)) > 1e-6f ? 1 : 0;
  }
  count = SumRow(count);
  if (threadIdx.x == 0) atomicAdd(args.count, count);
}

__global__ void __launch_bounds__(kBlockThreads)
    MapSigmoidCrossEntropy(const SigmoidCrossEntropyArguments args) {
  const float count = args.count != nullptr ? static_cast<float>(*args.count) : 1.0f;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.size;
       i += int64_t{gridDim.x} * blockDim.x) {
    const float x = args.x[i];
    const float label = args.label[i];
    const float weight = args.weight != nullptr ? args.weight[i] : 1.0f;
    float value;
    if (args.out_grad == nullptr) {
      value = (x > 0 ? x : 0.0f) - x * label + logf(1.0f + expf(-fabsf(x))) * weight;
      value = (IsIgnored(label, args.ignored) ? 0.0f : value) / count;
    } else {
      value = (weight / (1.0f + expf(-x)) - label) * args.out_grad[i] / count;
      value = IsIgnored(label, args.ignored) ? 0.0f : value;
    }
    args.out[i] = value;
  }
}

// Paddle has no gradient for labels of floats.
absl::Status CheckLabels(const Labels& labels, bool for_gradient) {
  const bool real = labels.dtype == DType::kFloat32 || labels.dtype == DType::kFloat64;
  if (real && !for_gradient) return absl::OkStatus();
  if (labels.soft) return absl::OkStatus();
  switch (labels.dtype) {
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return absl::OkStatus();
    default:
      return InvalidArgument("labels are of ", Name(labels.dtype), ", expected integers");
  }
}

}  // namespace

absl::Status CrossEntropy(const CrossEntropyArguments& arguments, cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckLabels(arguments.labels, /*for_gradient=*/false));
  CrossEntropyArguments args = arguments;
  if (!args.of_logits && args.softmax == args.x) args.softmax = nullptr;
  const int64_t lines = args.shape.outer * args.shape.inner;
  if (lines == 0) return absl::OkStatus();
  return Launch(LossRows, RowBlocks(lines, args.shape.length), RowThreads(args.shape.length),
                /*shared_bytes=*/0, stream, args);
}

absl::Status CrossEntropyGradient(const CrossEntropyGradientArguments& args, cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckLabels(args.labels, /*for_gradient=*/true));
  const int64_t lines = args.shape.outer * args.shape.inner;
  if (lines * args.shape.length == 0) return absl::OkStatus();
  return Launch(LossGradientRows, RowBlocks(lines, args.shape.length),
                RowThreads(args.shape.length), /*shared_bytes=*/0, stream, args);
}

absl::Status SigmoidCrossEntropy(const SigmoidCrossEntropyArguments& args, cudaStream_t stream) {
  if (args.size == 0) return absl::OkStatus();
  if (args.count != nullptr) {
    INTERP_RETURN_IF_ERROR(ToStatus(cudaMemsetAsync(args.count, 0, sizeof(*args.count), stream),
                                    "cannot set the number of labels"));
    INTERP_RETURN_IF_ERROR(LaunchElements(CountLabels, args.size, stream, args));
  }
  return LaunchElements(MapSigmoidCrossEntropy, args.size, stream, args);
}

}  // namespace interp::cuda
