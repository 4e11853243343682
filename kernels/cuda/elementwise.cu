#include <algorithm>

#include "kernels/cuda/chain.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

// log(1 + e^x) without overflow.
template <typename C>
__device__ C LogOnePlusExp(C x) {
  return (x > 0 ? x : C{0}) + log1p(exp(-fabs(x)));
}

template <typename C>
__device__ C Sigmoid(C x) {
  return C{1} / (C{1} + exp(-x));
}

template <typename C>
__device__ C Clamp(C x, C low, C high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

// As on the host, where Paddle's vector code has no root of infinity but NaN in float32.
template <typename C>
__device__ C Root(C x) {
  const bool finite = !std::is_same_v<C, float> || x <= std::numeric_limits<C>::max();
  return finite ? sqrt(x) : std::numeric_limits<C>::quiet_NaN();
}

// log(x / (1 - x)) of x brought into [eps, 1 - eps]; without eps, NaN outside [0, 1].
template <typename C>
__device__ C Logit(C x, C eps) {
  if (eps > 0) x = Clamp(x, eps, C{1} - eps);
  return log(x / (C{1} - x));
}

// Below 1/2 the number that is added keeps the number below 1/2 at 0.
template <typename C>
__device__ C RoundHalfAway(C x) {
  constexpr C kHalf = C(0.5) - std::numeric_limits<C>::epsilon() / 4;
  return trunc(x + copysign(kHalf, x));
}

// Functions of one value that integers have, too. Comparisons keep NaN.
template <typename C>
__device__ C ApplyToAny(ElementwiseOp op, C x) {
  switch (op) {
    case ElementwiseOp::kAbs:
      if constexpr (!std::is_integral_v<C>) return fabs(x);
      return x < 0 ? WrapSub(C{0}, x) : x;
    case ElementwiseOp::kRelu:
      return x > 0 ? x : C{0};
    case ElementwiseOp::kTrunc:
      return x;
    case ElementwiseOp::kSign:
      return x == x ? static_cast<C>((x > 0) - (x < 0)) : x;
    default:
      return WrapMul(x, x);  // kSquare
  }
}

// Long because every function of one float is here.
template <typename C, int N>
__device__ void ApplyToFloats(ElementwiseOp op, C a, C b, C (&values)[N]) {
  switch (op) {
    case ElementwiseOp::kAcos:
      return Each(values, [=](C x) { return acos(x); });
    case ElementwiseOp::kAcosh:
      return Each(values, [=](C x) { return acosh(x); });
    case ElementwiseOp::kAsin:
      return Each(values, [=](C x) { return asin(x); });
    case ElementwiseOp::kAsinh:
      return Each(values, [=](C x) { return asinh(x); });
    case ElementwiseOp::kAtan:
      return Each(values, [=](C x) { return atan(x); });
    case ElementwiseOp::kAtanh:
      return Each(values, [=](C x) { return atanh(x); });
    case ElementwiseOp::kCeil:
      return Each(values, [=](C x) { return ceil(x); });
    case ElementwiseOp::kCelu:
      return Each(values, [=](C x) { return x < 0 ? a * expm1(x / a) : x; });
    case ElementwiseOp::kClip:
      return Each(values, [=](C x) { return Clamp(x, a, b); });
    case ElementwiseOp::kCos:
      return Each(values, [=](C x) { return cos(x); });
    case ElementwiseOp::kCosh:
      return Each(values, [=](C x) { return cosh(x); });
    case ElementwiseOp::kElu:
      return Each(values, [=](C x) { return x < 0 ? a * expm1(x) : x; });
    case ElementwiseOp::kErf:
      return Each(values, [=](C x) { return erf(x); });
    case ElementwiseOp::kExp:
      return Each(values, [=](C x) { return exp(x); });
    case ElementwiseOp::kExpm1:
      return Each(values, [=](C x) { return expm1(x); });
    case ElementwiseOp::kFloor:
      return Each(values, [=](C x) { return floor(x); });
    case ElementwiseOp::kGelu:
      return Each(values,
                  [=](C x) { return C(0.5) * x * (C{1} + erf(x * C(0.70710678118654752))); });
    case ElementwiseOp::kGeluTanh:
      return Each(values, [=](C x) {
        return C(0.5) * x * (C{1} + tanh(C(0.79788456080286536) * (x + C(0.044715) * x * x * x)));
      });
    case ElementwiseOp::kHardShrink:
      return Each(values, [=](C x) { return x >= -a && x <= a ? C{0} : x; });
    case ElementwiseOp::kHardSigmoid:
      return Each(values, [=](C x) { return Clamp(x * a + b, C{0}, C{1}); });
    case ElementwiseOp::kHardSwish:
      return Each(values, [=](C x) { return x * Clamp(x + C{3}, C{0}, C{6}) * (C{1} / C{6}); });
    case ElementwiseOp::kLeakyRelu:
      return Each(values, [=](C x) { return x < 0 ? x * a : x; });
    case ElementwiseOp::kLog:
      return Each(values, [=](C x) { return log(x); });
    case ElementwiseOp::kLog10:
      return Each(values, [=](C x) { return log10(x); });
    case ElementwiseOp::kLog1p:
      return Each(values, [=](C x) { return log1p(x); });
    case ElementwiseOp::kLog2:
      return Each(values, [=](C x) { return log2(x); });
    case ElementwiseOp::kLogit:
      return Each(values, [=](C x) { return Logit(x, a); });
    case ElementwiseOp::kLogSigmoid:
      return Each(values, [=](C x) { return -LogOnePlusExp(-x); });
    case ElementwiseOp::kMish:
      return Each(values, [=](C x) { return x * tanh(LogOnePlusExp(x)); });
    case ElementwiseOp::kPower:
      return Each(values, [=](C x) { return a == C{2} ? x * x : pow(x, a); });
    case ElementwiseOp::kReciprocal:
      return Each(values, [=](C x) { return C{1} / x; });
    case ElementwiseOp::kRound:
      return Each(values, [=](C x) { return RoundHalfAway(x); });
    case ElementwiseOp::kRsqrt:
      return Each(values, [=](C x) { return C{1} / sqrt(x); });
    case ElementwiseOp::kScale:
      return Each(values, [=](C x) { return a * x + b; });
    case ElementwiseOp::kSigmoid:
      return Each(values, [=](C x) { return Sigmoid(x); });
    case ElementwiseOp::kSin:
      return Each(values, [=](C x) { return sin(x); });
    case ElementwiseOp::kSinh:
      return Each(values, [=](C x) { return sinh(x); });
    case ElementwiseOp::kSoftShrink:
      return Each(values, [=](C x) { return x < -a ? x + a : x <= a ? C{0} : x - a; });
    case ElementwiseOp::kSoftsign:
      return Each(values, [=](C x) { return x / (C{1} + fabs(x)); });
    case ElementwiseOp::kSoftplus:
      return Each(values, [=](C x) { return a * x > b ? x : LogOnePlusExp(a * x) / a; });
    case ElementwiseOp::kSqrt:
      return Each(values, [=](C x) { return Root(x); });
    case ElementwiseOp::kSwish:
      return Each(values, [=](C x) { return x * Sigmoid(a * x); });
    case ElementwiseOp::kTan:
      return Each(values, [=](C x) { return tan(x); });
    case ElementwiseOp::kTanhShrink:
      return Each(values, [=](C x) { return x - tanh(x); });
    case ElementwiseOp::kThresholdedRelu:
      return Each(values, [=](C x) { return x <= a ? b : x; });
    case ElementwiseOp::kTrunc:
      return Each(values, [=](C x) { return trunc(x); });
    case ElementwiseOp::kTanh:
      return Each(values, [=](C x) { return tanh(x); });
    default:
      return Each(values, [=](C x) { return ApplyToAny(op, x); });
  }
}

// A NaN in y is the result, one in x is not.
template <typename C>
__device__ C Extreme(bool greatest, C x, C y) {
  return (greatest ? x > y : x < y) ? x : y;
}

// The remainder has the sign of the divisor.
template <typename C>
__device__ C Remainder(C x, C y) {
  const C rest = fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

// Not floor(x / y): the quotient may round up to an integer.
template <typename C>
__device__ C FloorQuotient(C x, C y) {
  if (y == 0) return x / y;
  const C rest = fmod(x, y);  // with the sign of x
  const bool apart = rest != 0 && (rest < 0) != (y < 0);
  const C exact = (x - rest) / y - (apart ? C(1) : C(0));
  const C below = floor(exact);
  return exact - below > C(0.5) ? below + 1 : below;
}

template <typename C>
__device__ C ApplyToTwo(ElementwiseOp op, C x, C y) {
  if (op == ElementwiseOp::kAdd) return WrapAdd(x, y);
  if (op == ElementwiseOp::kSub) return WrapSub(x, y);
  if (op == ElementwiseOp::kMul) return WrapMul(x, y);
  if constexpr (!std::is_integral_v<C>) {
    if (op == ElementwiseOp::kDiv) return x / y;
    if (op == ElementwiseOp::kPow) return pow(x, y);
    if (op == ElementwiseOp::kFloorDiv) return FloorQuotient(x, y);
    if (op == ElementwiseOp::kMod) return Remainder(x, y);
    if (op >= ElementwiseOp::kFmax && y != y) return x;
  }
  return Extreme(op == ElementwiseOp::kMax || op == ElementwiseOp::kFmax, x, y);
}

template <typename C, int N>
__device__ void ApplyStep(const ElementwiseStep& step, const C (&other)[N], C (&values)[N]) {
  if (step.op >= ElementwiseOp::kAdd) {
    INTERP_UNROLL
    for (int i = 0; i < N; ++i) {
      values[i] = step.swapped ? ApplyToTwo(step.op, other[i], values[i])
                               : ApplyToTwo(step.op, values[i], other[i]);
    }
  } else if constexpr (std::is_integral_v<C>) {
    if (step.op == ElementwiseOp::kScale) {
      const C a = Truncate<C>(step.a);
      const C b = Truncate<C>(step.b);
      Each(values, [=](C x) { return WrapAdd(WrapMul(x, a), b); });
    } else {
      Each(values, [&step](C x) { return ApplyToAny(step.op, x); });
    }
  } else {
    ApplyToFloats(step.op, static_cast<C>(step.a), static_cast<C>(step.b), values);
  }
}

// Every operand is read before the output is written, N elements at a time.
template <typename T, int N>
__global__ void __launch_bounds__(kBlockThreads) RunChain(const Chain chain, T* out) {
  using C = ComputeType<T>;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x * N;
  for (int64_t index = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N; index < chain.size;
       index += stride) {
    const int count = chain.size - index < N ? static_cast<int>(chain.size - index) : N;
    C values[N] = {};
    Load<T, N>(chain, 0, index, count, values);
    for (int s = 0; s < chain.num_steps; ++s) {
      const ElementwiseStep& step = chain.steps[s];
      C other[N] = {};
      if (step.operand >= 0) Load<T, N>(chain, step.operand, index, count, other);
      ApplyStep(step, other, values);
    }
    if (count == N) {
      Vector<T, N> result;
      INTERP_UNROLL
      for (int i = 0; i < N; ++i) result.values[i] = FromCompute<T>(values[i]);
      *reinterpret_cast<Vector<T, N>*>(out + index) = result;
    } else {
      INTERP_UNROLL
      for (int i = 0; i < N; ++i) {
        if (i < count) out[index + i] = FromCompute<T>(values[i]);
      }
    }
  }
}

absl::Status CheckSteps(DType dtype, absl::Span<const ElementwiseStep> steps, int num_operands) {
  if (static_cast<int>(steps.size()) > kMaxSteps || num_operands > kMaxOperands ||
      num_operands < 1) {
    return Unimplemented("an element-wise chain of ", steps.size(), " steps and ", num_operands,
                         " operands, expected at most ", kMaxSteps, " and 1 to ", kMaxOperands);
  }
  for (const ElementwiseStep& step : steps) {
    if (TakesTwo(step.op) != (step.operand >= 0) || step.operand >= num_operands) {
      return InvalidArgument("a step of an element-wise chain has operand ", step.operand, " of ",
                             num_operands);
    }
    if (!IsFloating(dtype) && !TakesIntegers(step.op)) {
      return Unimplemented("element-wise op ", static_cast<int>(step.op), " of ", Name(dtype),
                           " on a GPU");
    }
  }
  return absl::OkStatus();
}

template <typename T, int N>
absl::Status LaunchChain(const Chain& chain, void* out, cudaStream_t stream) {
  return Launch(RunChain<T, N>, BlocksFor(chain.size, kBlockThreads * N), kBlockThreads,
                /*shared_bytes=*/0, stream, chain, static_cast<T*>(out));
}

}  // namespace

bool TakesIntegers(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::kAbs:
    case ElementwiseOp::kRelu:
    case ElementwiseOp::kScale:
    case ElementwiseOp::kSign:
    case ElementwiseOp::kSquare:
    case ElementwiseOp::kTrunc:
    case ElementwiseOp::kAdd:
    case ElementwiseOp::kSub:
    case ElementwiseOp::kMul:
    case ElementwiseOp::kMax:
    case ElementwiseOp::kMin:
    case ElementwiseOp::kFmax:
    case ElementwiseOp::kFmin:
      return true;
    default:
      return false;
  }
}

bool TakesTwo(ElementwiseOp op) { return op >= ElementwiseOp::kAdd; }

absl::Status Elementwise(DType dtype, absl::Span<const ElementwiseStep> steps,
                         absl::Span<const ElementwiseOperand> operands,
                         absl::Span<const int64_t> out_dims, void* out, cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckSteps(dtype, steps, static_cast<int>(operands.size())));
  INTERP_RETURN_IF_ERROR(CheckDims(operands, out_dims));
  if (std::find(out_dims.begin(), out_dims.end(), 0) != out_dims.end()) return absl::OkStatus();
  const bool aligned = AlignedTo(out, 16) && std::all_of(operands.begin(), operands.end(),
                                                         [](const ElementwiseOperand& operand) {
                                                           return AlignedTo(operand.data, 16);
                                                         });
  return WithNumbers("an element-wise chain", dtype, [&](auto type) -> absl::Status {
    using T = typename decltype(type)::type;
    // Sines of doubles are calls, around which a second value would leave its register.
    constexpr int kWide = std::is_same_v<T, double> ? 1 : kVectorSize<T>;
    INTERP_ASSIGN_OR_RETURN(const Chain chain,
                            MakeChain(steps, operands, out_dims, aligned ? kWide : 1));
    return aligned ? LaunchChain<T, kWide>(chain, out, stream)
                   : LaunchChain<T, 1>(chain, out, stream);
  });
}

}  // namespace interp::cuda
