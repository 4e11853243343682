#include <algorithm>

#include "kernels/cuda/divisor.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

constexpr int kMaxDims = 6;  // after those are merged that all operands walk alike

// How an operand is read.
enum class Walk : int8_t {
  kSame,      // element i for element i
  kOne,       // one value
  kStrided,   // by the strides; neighbours within the last dimension are neighbours in memory
  kRepeated,  // by the strides; the last dimension repeats one element
};

struct Chain {
  ElementwiseStep steps[kMaxSteps];
  int num_steps;
  const void* data[kMaxOperands];
  Walk walks[kMaxOperands];
  // Of the merged dimensions, last first.
  int num_dims;
  Divisor dims[kMaxDims];
  int64_t strides[kMaxOperands][kMaxDims];
  int64_t size;
  // The last dimension holds whole vectors, so that none crosses its end.
  bool whole_vectors;
};

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

// Functions of one value that integers have, too. Comparisons keep NaN.
template <typename C>
__device__ C ApplyToAny(ElementwiseOp op, C x) {
  switch (op) {
    case ElementwiseOp::kAbs:
      if constexpr (!std::is_integral_v<C>) return fabs(x);
      return x < 0 ? WrapSub(C{0}, x) : x;
    case ElementwiseOp::kRelu:
      return x < 0 ? C{0} : x;
    case ElementwiseOp::kSign:
      return x == x ? static_cast<C>((x > 0) - (x < 0)) : x;
    default:
      return WrapMul(x, x);  // kSquare
  }
}

// Every value through `function`. The loop is unrolled, so that values stay in registers.
template <typename C, int N, typename Function>
__device__ void Each(C (&values)[N], Function function) {
  INTERP_UNROLL
  for (int i = 0; i < N; ++i) values[i] = function(values[i]);
}

// Long because every function of one float is here.
template <typename C, int N>
__device__ void ApplyToFloats(ElementwiseOp op, C a, C b, C (&values)[N]) {
  switch (op) {
    case ElementwiseOp::kCeil:
      return Each(values, [=](C x) { return ceil(x); });
    case ElementwiseOp::kClip:
      return Each(values, [=](C x) { return Clamp(x, a, b); });
    case ElementwiseOp::kCos:
      return Each(values, [=](C x) { return cos(x); });
    case ElementwiseOp::kElu:
      return Each(values, [=](C x) { return x < 0 ? a * expm1(x) : x; });
    case ElementwiseOp::kErf:
      return Each(values, [=](C x) { return erf(x); });
    case ElementwiseOp::kExp:
      return Each(values, [=](C x) { return exp(x); });
    case ElementwiseOp::kFloor:
      return Each(values, [=](C x) { return floor(x); });
    case ElementwiseOp::kGelu:
      return Each(values,
                  [=](C x) { return C(0.5) * x * (C{1} + erf(x * C(0.70710678118654752))); });
    case ElementwiseOp::kGeluTanh:
      return Each(values, [=](C x) {
        return C(0.5) * x * (C{1} + tanh(C(0.79788456080286536) * (x + C(0.044715) * x * x * x)));
      });
    case ElementwiseOp::kHardSigmoid:
      return Each(values, [=](C x) { return Clamp(x * a + b, C{0}, C{1}); });
    case ElementwiseOp::kHardSwish:
      return Each(values, [=](C x) { return x * Clamp(x + C{3}, C{0}, C{6}) * (C{1} / C{6}); });
    case ElementwiseOp::kLeakyRelu:
      return Each(values, [=](C x) { return x < 0 ? x * a : x; });
    case ElementwiseOp::kLog:
      return Each(values, [=](C x) { return log(x); });
    case ElementwiseOp::kMish:
      return Each(values, [=](C x) { return x * tanh(LogOnePlusExp(x)); });
    case ElementwiseOp::kReciprocal:
      return Each(values, [=](C x) { return C{1} / x; });
    case ElementwiseOp::kRsqrt:
      return Each(values, [=](C x) { return C{1} / sqrt(x); });
    case ElementwiseOp::kScale:
      return Each(values, [=](C x) { return a * x + b; });
    case ElementwiseOp::kSigmoid:
      return Each(values, [=](C x) { return Sigmoid(x); });
    case ElementwiseOp::kSin:
      return Each(values, [=](C x) { return sin(x); });
    case ElementwiseOp::kSoftplus:
      return Each(values, [=](C x) { return a * x > b ? x : LogOnePlusExp(a * x) / a; });
    case ElementwiseOp::kSqrt:
      return Each(values, [=](C x) { return sqrt(x); });
    case ElementwiseOp::kSwish:
      return Each(values, [=](C x) { return x * Sigmoid(a * x); });
    case ElementwiseOp::kTanh:
      return Each(values, [=](C x) { return tanh(x); });
    default:
      return Each(values, [=](C x) { return ApplyToAny(op, x); });
  }
}

template <typename C>
__device__ C ApplyToTwo(ElementwiseOp op, C x, C y) {
  if (op == ElementwiseOp::kAdd) return WrapAdd(x, y);
  if (op == ElementwiseOp::kSub) return WrapSub(x, y);
  if (op == ElementwiseOp::kMul) return WrapMul(x, y);
  if constexpr (!std::is_integral_v<C>) {
    if (op == ElementwiseOp::kDiv) return x / y;
    if (op == ElementwiseOp::kPow) return pow(x, y);
    if (x != x) return x;
    if (y != y) return y;
  }
  return (op == ElementwiseOp::kMax) == (x > y) ? x : y;
}

// Where the operand has element `index` of the output.
__device__ int64_t OffsetOf(const Chain& chain, int operand, int64_t index) {
  auto left = static_cast<uint32_t>(index);
  int64_t offset = 0;
  for (int d = 0; d < chain.num_dims; ++d) {
    offset += chain.dims[d].Split(left) * chain.strides[operand][d];
  }
  return offset;
}

// The operand's elements for `count` elements of the output from `index` on.
template <typename T, int N>
__device__ void Load(const Chain& chain, int operand, int64_t index, int count,
                     ComputeType<T> (&values)[N]) {
  const T* const data = static_cast<const T*>(chain.data[operand]);
  const Walk walk = chain.walks[operand];
  const bool near = walk == Walk::kSame || walk == Walk::kOne || chain.whole_vectors;
  const int64_t first = walk == Walk::kSame  ? index
                        : walk == Walk::kOne ? 0
                                             : OffsetOf(chain, operand, index);
  if (walk == Walk::kOne || (walk == Walk::kRepeated && near)) {
    const ComputeType<T> value = ToCompute(data[first]);
    Each(values, [value](ComputeType<T>) { return value; });
  } else if (near && count == N) {
    const auto loaded = *reinterpret_cast<const Vector<T, N>*>(data + first);
    INTERP_UNROLL
    for (int i = 0; i < N; ++i) values[i] = ToCompute(loaded.values[i]);
  } else {
    INTERP_UNROLL
    for (int i = 0; i < N; ++i) {
      if (i < count)
        values[i] =
            ToCompute(data[walk == Walk::kSame ? index + i : OffsetOf(chain, operand, index + i)]);
    }
  }
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
    Each(values, [&step](C x) { return ApplyToAny(step.op, x); });
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

absl::Status CheckDims(absl::Span<const ElementwiseOperand> operands,
                       absl::Span<const int64_t> out_dims) {
  for (const ElementwiseOperand& operand : operands) {
    bool fits = operand.dims.size() == out_dims.size();
    for (size_t d = 0; fits && d < out_dims.size(); ++d) {
      fits = operand.dims[d] == out_dims[d] || operand.dims[d] == 1;
    }
    if (!fits)
      return InvalidArgument("an operand of an element-wise chain does not fit its result");
  }
  return absl::OkStatus();
}

// Whether dimensions d and d + 1 are repeated by the same operands, so that one walks them as one.
bool Merge(absl::Span<const ElementwiseOperand> operands, absl::Span<const int64_t> out_dims,
           size_t d) {
  return std::all_of(operands.begin(), operands.end(), [&](const ElementwiseOperand& operand) {
    return (operand.dims[d] == out_dims[d]) == (operand.dims[d + 1] == out_dims[d + 1]);
  });
}

// The merged dimensions and everybody's strides, last first, into `chain`; the last dimension.
absl::StatusOr<int64_t> MergeDims(absl::Span<const ElementwiseOperand> operands,
                                  absl::Span<const int64_t> out_dims, Chain& chain) {
  int64_t last = 1;
  int64_t elements[kMaxOperands] = {};  // in the dimensions after the one at hand
  std::fill_n(elements, kMaxOperands, 1);
  for (auto d = static_cast<int>(out_dims.size()); d-- > 0;) {
    int64_t length = out_dims[d];
    const int end = d;
    while (d > 0 && Merge(operands, out_dims, d - 1)) length *= out_dims[--d];
    if (length == 1) continue;
    if (chain.num_dims == kMaxDims || length > kMostElements) {
      return Unimplemented("broadcasting of tensors that differ in more than ", kMaxDims,
                           " dimensions or are of more than ", kMostElements, " elements");
    }
    if (chain.num_dims == 0) last = length;
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool repeated = operands[i].dims[end] == 1 && out_dims[end] != 1;
      chain.strides[i][chain.num_dims] = repeated ? 0 : elements[i];
      if (!repeated) elements[i] *= length;
    }
    chain.dims[chain.num_dims++] = Divisor(static_cast<uint32_t>(length));
  }
  return last;
}

absl::StatusOr<Chain> MakeChain(absl::Span<const ElementwiseStep> steps,
                                absl::Span<const ElementwiseOperand> operands,
                                absl::Span<const int64_t> out_dims, int vector_size) {
  Chain chain = {};
  std::copy(steps.begin(), steps.end(), chain.steps);
  chain.num_steps = static_cast<int>(steps.size());
  chain.size = 1;
  for (const int64_t dim : out_dims) chain.size *= dim;
  bool strided = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    int64_t size = 1;
    for (const int64_t dim : operands[i].dims) size *= dim;
    chain.data[i] = operands[i].data;
    chain.walks[i] = size == chain.size ? Walk::kSame : size == 1 ? Walk::kOne : Walk::kStrided;
    strided |= chain.walks[i] == Walk::kStrided;
  }
  if (!strided) return chain;
  if (chain.size > kMostElements) {
    return Unimplemented("broadcasting to ", chain.size, " elements, expected at most ",
                         kMostElements);
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t last, MergeDims(operands, out_dims, chain));
  chain.whole_vectors = last % vector_size == 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool repeats = chain.walks[i] == Walk::kStrided && chain.strides[i][0] == 0;
    if (repeats) chain.walks[i] = Walk::kRepeated;
  }
  return chain;
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
    case ElementwiseOp::kSign:
    case ElementwiseOp::kSquare:
      return true;
    default:
      return TakesTwo(op) && op != ElementwiseOp::kDiv && op != ElementwiseOp::kPow;
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
    constexpr int kWide = kVectorSize<T>;
    INTERP_ASSIGN_OR_RETURN(const Chain chain,
                            MakeChain(steps, operands, out_dims, aligned ? kWide : 1));
    return aligned ? LaunchChain<T, kWide>(chain, out, stream)
                   : LaunchChain<T, 1>(chain, out, stream);
  });
}

}  // namespace interp::cuda
