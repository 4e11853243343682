#include "kernels/cuda/launch.h"
#include "kernels/cuda/unary_grad.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

constexpr float kLn2 = 0.693147180559945309F;
constexpr float kLn10 = 2.302585092994045684F;
constexpr float kTwoOverSqrtPi = 1.128379167095512574F;
constexpr float kInverseSqrt2 = 0.707106781186547524F;
constexpr float kInverseSqrt2Pi = 0.398942280401432678F;
constexpr float kSqrt2OverPi = 0.797884560802865356F;

__device__ float SigmoidOf(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ float SquareOf(float x) { return x * x; }

// The slope of the straight ones; where two lines meet, that of the host's op.
__device__ float PieceSlope(UnaryGradientOp op, float a, float b, float v) {
  switch (op) {
    case UnaryGradientOp::kAbs:
      return static_cast<float>((v > 0) - (v < 0));
    case UnaryGradientOp::kBRelu:
      return v > a && v < b ? 1.0f : 0.0f;
    case UnaryGradientOp::kHardShrink:
      return v < -a || v > a ? 1.0f : 0.0f;
    case UnaryGradientOp::kHardSigmoid:
      return v > 0 && v < 1 ? a : 0.0f;
    case UnaryGradientOp::kHardSwish:
      if (!(v + 3.0f < 6.0f)) return 1.0f;
      return v + 3.0f > 0 ? v * (1.0f / 3.0f) + 0.5f : 0.0f;
    case UnaryGradientOp::kLeakyRelu:
      return v < 0 ? a : 1.0f;
    case UnaryGradientOp::kRelu6:
      return v > 0 && v < a ? 1.0f : 0.0f;
    case UnaryGradientOp::kThresholdedRelu:
      return v > a ? 1.0f : 0.0f;
    default:
      return v > 0 ? 1.0f : 0.0f;  // kRelu
  }
}

// Those made of exponentials.
__device__ float ActivationSlope(UnaryGradientOp op, float a, float b, float v) {
  switch (op) {
    case UnaryGradientOp::kCelu:
      return v > 0 ? 1.0f : expf(v / a);
    case UnaryGradientOp::kElu:
      return v > 0 ? 1.0f : a * expf(v);
    case UnaryGradientOp::kGelu:
      return 0.5f * (1.0f + erff(v * kInverseSqrt2)) + v * kInverseSqrt2Pi * expf(-0.5f * v * v);
    case UnaryGradientOp::kGeluTanh: {
      const float t = tanhf(kSqrt2OverPi * v * (1.0f + 0.044715f * v * v));
      const float slope = kSqrt2OverPi * (1.0f + 3 * 0.044715f * v * v);
      return 0.5f * (1.0f + t + v * (1.0f - t * t) * slope);
    }
    case UnaryGradientOp::kLogSigmoid:
      return SigmoidOf(-v);
    case UnaryGradientOp::kMish: {
      const float curve = (v > 0 ? v : 0.0f) + log1pf(expf(-fabsf(v)));
      const float s = v > a ? v : curve;
      const float t = tanhf(s);
      return t - v * (1.0f - t * t) * expm1f(-s);
    }
    case UnaryGradientOp::kSTanh:
      return a * b * (1.0f - SquareOf(tanhf(a * v)));
    case UnaryGradientOp::kSelu:
      return v > 0 ? b : v + a * b;
    case UnaryGradientOp::kSigmoid:
      return v * (1.0f - v);
    case UnaryGradientOp::kSoftRelu:
      return v > -a && v < a ? -expm1f(-v) : 0.0f;
    case UnaryGradientOp::kSoftplus:
      return a * v > b ? 1.0f : SigmoidOf(a * v);
    case UnaryGradientOp::kSwish: {
      const float s = SigmoidOf(a * v);
      return s * (1.0f + a * v * (1.0f - s));
    }
    case UnaryGradientOp::kTanhShrink:
      return SquareOf(tanhf(v));
    default:
      return 1.0f - v * v;  // kTanh
  }
}

__device__ float TrigonometricSlope(UnaryGradientOp op, float v) {
  switch (op) {
    case UnaryGradientOp::kAcos:
      return -1.0f / sqrtf(1.0f - v * v);
    case UnaryGradientOp::kAcosh:
      return 1.0f / sqrtf(v * v - 1.0f);
    case UnaryGradientOp::kAsin:
      return 1.0f / sqrtf(1.0f - v * v);
    case UnaryGradientOp::kAsinh:
      return 1.0f / sqrtf(v * v + 1.0f);
    case UnaryGradientOp::kAtan:
      return 1.0f / (1.0f + v * v);
    case UnaryGradientOp::kAtanh:
      return 1.0f / (1.0f - v * v);
    case UnaryGradientOp::kCos:
      return -sinf(v);
    case UnaryGradientOp::kCosh:
      return sinhf(v);
    case UnaryGradientOp::kSin:
      return cosf(v);
    case UnaryGradientOp::kSinh:
      return coshf(v);
    default:
      return 1.0f / SquareOf(cosf(v));  // kTan
  }
}

// Gradients that are no product of the slope: a quotient is rounded once, and bounds win over a
// gradient that is not finite.
__device__ float Gradient(UnaryGradientOp op, float a, float b, float v, float grad) {
  switch (op) {
    case UnaryGradientOp::kAcos:
    case UnaryGradientOp::kAcosh:
    case UnaryGradientOp::kAsin:
    case UnaryGradientOp::kAsinh:
    case UnaryGradientOp::kAtan:
    case UnaryGradientOp::kAtanh:
    case UnaryGradientOp::kCos:
    case UnaryGradientOp::kCosh:
    case UnaryGradientOp::kSin:
    case UnaryGradientOp::kSinh:
    case UnaryGradientOp::kTan:
      return grad * TrigonometricSlope(op, v);
    case UnaryGradientOp::kErf:
      return grad * kTwoOverSqrtPi * expf(-v * v);
    case UnaryGradientOp::kExp:
      return grad * v;
    case UnaryGradientOp::kExpm1:
      return grad * (v + 1.0f);
    case UnaryGradientOp::kLog:
      return grad / v;
    case UnaryGradientOp::kLog10:
      return grad / (v * kLn10);
    case UnaryGradientOp::kLog1p:
      return grad / (v + 1.0f);
    case UnaryGradientOp::kLog2:
      return grad / (v * kLn2);
    case UnaryGradientOp::kLogit:
      if (v < a || v > 1.0f - a) return a > 0 ? 0.0f : std::numeric_limits<float>::quiet_NaN();
      return grad / (v * (1.0f - v));
    case UnaryGradientOp::kPow:
      if (a == 2.0f) return grad * 2.0f * v;
      return a == 0 ? 0.0f : grad * a * powf(v, a - 1.0f);
    case UnaryGradientOp::kReciprocal:
      return -grad * v * v;
    case UnaryGradientOp::kRsqrt:
      return -0.5f * grad * v * v * v;
    case UnaryGradientOp::kSoftsign:
      return grad / SquareOf(1.0f + fabsf(v));
    case UnaryGradientOp::kSqrt:
      return 0.5f * grad / v;
    case UnaryGradientOp::kSquare:
      return grad * 2.0f * v;
    case UnaryGradientOp::kZero:
      return 0.0f;
    case UnaryGradientOp::kAbs:
      return grad * PieceSlope(op, a, b, v);
    case UnaryGradientOp::kBRelu:
    case UnaryGradientOp::kHardShrink:
    case UnaryGradientOp::kHardSigmoid:
    case UnaryGradientOp::kHardSwish:
    case UnaryGradientOp::kLeakyRelu:
    case UnaryGradientOp::kRelu:
    case UnaryGradientOp::kRelu6:
    case UnaryGradientOp::kThresholdedRelu: {
      const float slope = PieceSlope(op, a, b, v);
      return slope == 0 ? 0.0f : grad * slope;
    }
    default:
      return grad * ActivationSlope(op, a, b, v);
  }
}

template <typename T>
__device__ float BoundOf(const void* data, float value) {
  return data != nullptr ? ToCompute(*static_cast<const T*>(data)) : value;
}

// N elements at a time; both operands are read before the gradient is written over one.
template <typename T, int N>
__global__ void __launch_bounds__(kBlockThreads)
    RunUnaryGradient(const UnaryGradientArguments args) {
  const float a = BoundOf<T>(args.a_data, args.a);
  const float b = BoundOf<T>(args.b_data, args.b);
  const T* const value = static_cast<const T*>(args.value);
  const T* const grad = static_cast<const T*>(args.out_grad);
  T* const out = static_cast<T*>(args.x_grad);
  const int64_t stride = int64_t{gridDim.x} * blockDim.x * N;
  for (int64_t index = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N; index < args.size;
       index += stride) {
    if (args.size - index < N) {
      for (int64_t i = index; i < args.size; ++i) {
        const float v = value != nullptr ? ToCompute(value[i]) : 0.0f;
        out[i] = FromCompute<T>(Gradient(args.op, a, b, v, ToCompute(grad[i])));
      }
      continue;
    }
    using V = Vector<T, N>;
    const V values = value != nullptr ? *reinterpret_cast<const V*>(value + index) : V{};
    V result = *reinterpret_cast<const V*>(grad + index);
    INTERP_UNROLL
    for (int i = 0; i < N; ++i) {
      result.values[i] = FromCompute<T>(
          Gradient(args.op, a, b, ToCompute(values.values[i]), ToCompute(result.values[i])));
    }
    *reinterpret_cast<V*>(out + index) = result;
  }
}

}  // namespace

absl::Status UnaryGradient(DType dtype, const UnaryGradientArguments& arguments,
                           cudaStream_t stream) {
  if (arguments.size == 0) return absl::OkStatus();
  UnaryGradientArguments args = arguments;
  if (args.op == UnaryGradientOp::kZero) args.value = nullptr;
  const bool aligned =
      AlignedTo(args.value, 16) && AlignedTo(args.out_grad, 16) && AlignedTo(args.x_grad, 16);
  return WithFloats("a gradient", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int kWide = 4;  // more would unroll the longest functions too often
    const auto kernel = aligned ? RunUnaryGradient<T, kWide> : RunUnaryGradient<T, 1>;
    const int64_t per_block = int64_t{kBlockThreads} * (aligned ? kWide : 1);
    return Launch(kernel, BlocksFor(args.size, per_block), kBlockThreads, /*shared_bytes=*/0,
                  stream, args);
  });
}

}  // namespace interp::cuda
