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
      return v == 0 ? 0.0f : v / fabsf(v);
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

__device__ float GeluTanhSlope(float v) {
  const float t = tanhf(kSqrt2OverPi * v * (1.0f + 0.044715f * v * v));
  const float slope = kSqrt2OverPi * (1.0f + 3 * 0.044715f * v * v);
  return 0.5f * (1.0f + t + v * (1.0f - t * t) * slope);
}

__device__ float MishSlope(float threshold, float v) {
  const float curve = (v > 0 ? v : 0.0f) + log1pf(expf(-fabsf(v)));
  const float s = v > threshold ? v : curve;
  const float t = tanhf(s);
  return t - v * (1.0f - t * t) * expm1f(-s);
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
    case UnaryGradientOp::kGeluTanh:
      return GeluTanhSlope(v);
    case UnaryGradientOp::kLogSigmoid:
      return SigmoidOf(-v);
    case UnaryGradientOp::kMish:
      return MishSlope(a, v);
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

// Of exponentials and logarithms.
__device__ float LogarithmGradient(UnaryGradientOp op, float a, float v, float grad) {
  switch (op) {
    case UnaryGradientOp::kErf:
      return grad * kTwoOverSqrtPi * expf(-v * v);
    case UnaryGradientOp::kExp:
      return grad * v;
    case UnaryGradientOp::kExpm1:
      return grad * (v + 1.0f);
    case UnaryGradientOp::kLog10:
      return grad / (v * kLn10);
    case UnaryGradientOp::kLog1p:
      return grad / (v + 1.0f);
    case UnaryGradientOp::kLog2:
      return grad / (v * kLn2);
    case UnaryGradientOp::kLogit:
      if (v < a || v > 1.0f - a) return a > 0 ? 0.0f : std::numeric_limits<float>::quiet_NaN();
      return grad / (v * (1.0f - v));
    default:
      return grad / v;  // kLog
  }
}

__device__ float PowerGradient(UnaryGradientOp op, float a, float v, float grad) {
  switch (op) {
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
    default:
      return grad * 2.0f * v;  // kSquare
  }
}

enum class Family : int8_t { kPieces, kActivations, kTrigonometry, kLogarithms, kPowers, kZero };

// Long because every function is here.
Family FamilyOf(UnaryGradientOp op) {
  switch (op) {
    case UnaryGradientOp::kZero:
      return Family::kZero;
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
      return Family::kTrigonometry;
    case UnaryGradientOp::kErf:
    case UnaryGradientOp::kExp:
    case UnaryGradientOp::kExpm1:
    case UnaryGradientOp::kLog:
    case UnaryGradientOp::kLog10:
    case UnaryGradientOp::kLog1p:
    case UnaryGradientOp::kLog2:
    case UnaryGradientOp::kLogit:
      return Family::kLogarithms;
    case UnaryGradientOp::kPow:
    case UnaryGradientOp::kReciprocal:
    case UnaryGradientOp::kRsqrt:
    case UnaryGradientOp::kSoftsign:
    case UnaryGradientOp::kSqrt:
    case UnaryGradientOp::kSquare:
      return Family::kPowers;
    case UnaryGradientOp::kAbs:
    case UnaryGradientOp::kBRelu:
    case UnaryGradientOp::kHardShrink:
    case UnaryGradientOp::kHardSigmoid:
    case UnaryGradientOp::kHardSwish:
    case UnaryGradientOp::kLeakyRelu:
    case UnaryGradientOp::kRelu:
    case UnaryGradientOp::kRelu6:
    case UnaryGradientOp::kThresholdedRelu:
      return Family::kPieces;
    default:
      return Family::kActivations;
  }
}

__device__ float Gradient(Family family, UnaryGradientOp op, float a, float b, float v,
                          float grad) {
  switch (family) {
    case Family::kPieces: {
      // Where a piece is flat, a gradient that is not finite counts for nothing, but for kAbs.
      const float slope = PieceSlope(op, a, b, v);
      return slope == 0 && op != UnaryGradientOp::kAbs ? 0.0f : grad * slope;
    }
    case Family::kActivations:
      return grad * ActivationSlope(op, a, b, v);
    case Family::kTrigonometry:
      return grad * TrigonometricSlope(op, v);
    case Family::kLogarithms:
      return LogarithmGradient(op, a, v, grad);
    case Family::kPowers:
      return PowerGradient(op, a, v, grad);
    default:
      return 0.0f;
  }
}

template <typename T>
__device__ float BoundOf(const void* data, float value) {
  return data != nullptr ? ToCompute(*static_cast<const T*>(data)) : value;
}

// N elements at a time; both operands are read before the gradient is written over one.
template <typename T, int N>
__global__ void __launch_bounds__(kBlockThreads)
    RunUnaryGradient(const Family family, const UnaryGradientArguments args) {
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
        out[i] = FromCompute<T>(Gradient(family, args.op, a, b, v, ToCompute(grad[i])));
      }
      continue;
    }
    using V = Vector<T, N>;
    const V values = value != nullptr ? *reinterpret_cast<const V*>(value + index) : V{};
    V result = *reinterpret_cast<const V*>(grad + index);
    INTERP_UNROLL
    for (int i = 0; i < N; ++i) {
      result.values[i] = FromCompute<T>(Gradient(family, args.op, a, b, ToCompute(values.values[i]),
                                                 ToCompute(result.values[i])));
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
                  stream, FamilyOf(args.op), args);
  });
}

}  // namespace interp::cuda
